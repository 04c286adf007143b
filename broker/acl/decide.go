package acl

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Policy is what stands above the table: who may do everything (super.users), and whether everybody may where no
// pattern concerns a resource (allow.everyone.if.no.acl.found).
type Policy struct {
	SuperUsers    map[Principal]bool
	AllowUnlisted bool
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
	ix := t.index(resource)
	v := verdict{who: &who, op: op}
	v.hear(ix.literal[Wildcard])
	if name != Wildcard {
		v.hear(ix.literal[name])
	}
	for _, n := range ix.lengths {
		if n > len(name) {
			break
		}
		v.hear(ix.prefixed[name[:n]])
	}
	if !v.heard {
		return p.AllowUnlisted
	}
	return v.allowed && !v.denied
}

// verdict gathers what rules say of one question.
type verdict struct {
	who                    *Subject
	op                     kmsg.ACLOperation
	heard, allowed, denied bool
}

func (v *verdict) hear(rules []rule) {
	for i := range rules {
		r := &rules[i]
		v.heard = true
		if !r.concerns(v.who) {
			continue
		}
		switch r.Permission {
		case kmsg.ACLPermissionTypeDeny:
			v.denied = v.denied || r.names(v.op)
		case kmsg.ACLPermissionTypeAllow:
			v.allowed = v.allowed || r.names(v.op) || implies(r.Operation, v.op)
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
