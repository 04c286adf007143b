package acl

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Policy is what stands above the table: who may do everything (super.users), and whether everybody may where no
// pattern concerns a resource (allow.everyone.if.no.acl.found).
type Policy struct {
	SuperUsers    map[Principal]bool
	AllowUnlisted bool
}

// ParseSuperUsers reads super.users: principals as Type:name, separated by semicolons, since names may hold commas.
func ParseSuperUsers(text string) (map[Principal]bool, error) {
	users := map[Principal]bool{}
	for one := range strings.SplitSeq(text, ";") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		p, err := ParsePrincipal(one)
		if err != nil {
			return nil, err
		}
		users[p] = true
	}
	return users, nil
}

// Subject is who asks: a principal, and the address of the host it asks from as Java writes it.
type Subject struct {
	Principal
	Host string
}

// Allows tells whether somebody may do an operation on a resource. Any entry that denies counts for more than all that
// allow. READ, WRITE, DELETE and ALTER allow DESCRIBE too, ALTER_CONFIGS allows DESCRIBE_CONFIGS; denying implies
// nothing.
func (p Policy) Allows(t *Table, who Subject, op kmsg.ACLOperation, resource kmsg.ACLResourceType, name string) bool {
	if p.SuperUsers[who.Principal] {
		return true
	}
	v := ask(t.index(resource), &who, op, name)
	if !v.heard {
		return p.AllowUnlisted
	}
	return v.allows.rule != nil && v.denies.rule == nil
}

// Reason is why a question was decided as it was.
type Reason int8

// The reasons.
const (
	NoEntry   Reason = iota // lists concern the resource, and none of their entries speaks of this
	ByEntry                 // an entry denies it, or one allows it and none denies it
	SuperUser               // who asks may do everything
	Unlisted                // no list concerns the resource
)

// Decision is how a question was decided, and by what.
type Decision struct {
	Allowed bool
	Reason  Reason
	By      Binding // the entry; with ByEntry alone
}

// Decide is Allows with the reason.
func (p Policy) Decide(t *Table, who Subject, op kmsg.ACLOperation, resource kmsg.ACLResourceType, name string) Decision {
	d := Decision{Allowed: p.Allows(t, who, op, resource, name)}
	if p.SuperUsers[who.Principal] {
		d.Reason = SuperUser
		return d
	}
	switch v := ask(t.index(resource), &who, op, name); {
	case !v.heard:
		d.Reason = Unlisted
	case v.denies.rule != nil:
		d.Reason, d.By = ByEntry, v.denies.binding(resource)
	case v.allows.rule != nil:
		d.Reason, d.By = ByEntry, v.allows.binding(resource)
	}
	return d
}

// verdict gathers what rules say of one question.
type verdict struct {
	who            *Subject
	op             kmsg.ACLOperation
	heard          bool
	allows, denies witness // the first that does
}

// witness is a rule with the pattern it stands under.
type witness struct {
	rule    *rule
	pattern string
	kind    kmsg.ACLResourcePatternType
}

func (w witness) binding(resource kmsg.ACLResourceType) Binding {
	return Binding{Pattern{resource, w.pattern, w.kind}, w.rule.Entry}
}

// ask hears all rules that concern a resource: those of its name first, then of the wildcard, then of prefixes.
func ask(ix *index, who *Subject, op kmsg.ACLOperation, name string) verdict {
	v := verdict{who: who, op: op}
	v.hear(ix.literal[name], name, kmsg.ACLResourcePatternTypeLiteral)
	if name != Wildcard {
		v.hear(ix.literal[Wildcard], Wildcard, kmsg.ACLResourcePatternTypeLiteral)
	}
	for _, n := range ix.lengths {
		if n > len(name) {
			break
		}
		v.hear(ix.prefixed[name[:n]], name[:n], kmsg.ACLResourcePatternTypePrefixed)
	}
	return v
}

func (v *verdict) hear(rules []rule, pattern string, kind kmsg.ACLResourcePatternType) {
	for i := range rules {
		r := &rules[i]
		v.heard = true
		if !r.concerns(v.who) {
			continue
		}
		switch {
		case r.Permission == kmsg.ACLPermissionTypeDeny && v.denies.rule == nil && r.names(v.op):
			v.denies = witness{r, pattern, kind}
		case r.Permission == kmsg.ACLPermissionTypeAllow && v.allows.rule == nil && (r.names(v.op) || implies(r.Operation, v.op)):
			v.allows = witness{r, pattern, kind}
		}
	}
}

func (r *rule) concerns(who *Subject) bool {
	return (r.principal == who.Principal || r.principal == everybody) && (r.Host == who.Host || r.Host == Wildcard)
}

func (r *rule) names(op kmsg.ACLOperation) bool {
	return r.Operation == op || r.Operation == kmsg.ACLOperationAll
}

func implies(allowed, op kmsg.ACLOperation) bool {
	switch op {
	case kmsg.ACLOperationDescribe:
		switch allowed {
		case kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDelete, kmsg.ACLOperationAlter:
			return true
		}
	case kmsg.ACLOperationDescribeConfigs:
		return allowed == kmsg.ACLOperationAlterConfigs
	}
	return false
}

// AllowsAny tells whether there can be a resource of the type on which somebody may do the operation (KIP-679): a pattern
// that allows it, and is not within one that denies it. What an operation implies does not count here.
func (p Policy) AllowsAny(t *Table, who Subject, op kmsg.ACLOperation, resource kmsg.ACLResourceType) bool {
	if p.SuperUsers[who.Principal] {
		return true
	}
	ix := t.index(resource)
	says := func(rules []rule, permission kmsg.ACLPermissionType) bool {
		for i := range rules {
			if r := &rules[i]; r.Permission == permission && r.names(op) && r.concerns(&who) {
				return true
			}
		}
		return false
	}
	if says(ix.literal[Wildcard], kmsg.ACLPermissionTypeDeny) {
		return false
	}
	if p.AllowUnlisted {
		return true
	}
	denied := func(name string) bool {
		for _, n := range ix.lengths {
			if n > len(name) {
				break
			}
			if says(ix.prefixed[name[:n]], kmsg.ACLPermissionTypeDeny) {
				return true
			}
		}
		return false
	}
	for prefix, rules := range ix.prefixed {
		if says(rules, kmsg.ACLPermissionTypeAllow) && !denied(prefix) {
			return true
		}
	}
	for name, rules := range ix.literal {
		if says(rules, kmsg.ACLPermissionTypeAllow) && (name == Wildcard || !says(rules, kmsg.ACLPermissionTypeDeny) && !denied(name)) {
			return true
		}
	}
	return false
}

// operations are those that make sense for each type of resource.
var operations = map[kmsg.ACLResourceType][]kmsg.ACLOperation{
	kmsg.ACLResourceTypeTopic: {kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationCreate, kmsg.ACLOperationDescribe, kmsg.ACLOperationDelete,
		kmsg.ACLOperationAlter, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs},
	kmsg.ACLResourceTypeGroup: {kmsg.ACLOperationRead, kmsg.ACLOperationDescribe, kmsg.ACLOperationDelete},
	kmsg.ACLResourceTypeCluster: {kmsg.ACLOperationCreate, kmsg.ACLOperationClusterAction, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs,
		kmsg.ACLOperationIdempotentWrite, kmsg.ACLOperationAlter, kmsg.ACLOperationDescribe},
	kmsg.ACLResourceTypeTransactionalId: {kmsg.ACLOperationDescribe, kmsg.ACLOperationWrite},
	kmsg.ACLResourceTypeDelegationToken: {kmsg.ACLOperationDescribe},
	kmsg.ACLResourceTypeUser:            {kmsg.ACLOperationCreateTokens, kmsg.ACLOperationDescribeTokens},
}

// Operations are those that make sense for a type of resource; an ACL may also name ALL.
func Operations(resource kmsg.ACLResourceType) []kmsg.ACLOperation { return operations[resource] }
