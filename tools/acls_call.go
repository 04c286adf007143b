package tools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/acl"
	"barnabas/tools/options"
)

// aclCall is what kafka-acls was asked for.
type aclCall struct {
	on         []aclsOn
	filters    []acl.Filter // of a list; none means all
	principals []acl.Principal
}

// aclsOn are the entries that are to be added to, or removed from, what a filter chooses; no entries mean all of them.
type aclsOn struct {
	filter  acl.Filter
	entries []acl.Entry
}

var everyACL = acl.Filter{Resource: kmsg.ACLResourceTypeAny, Type: kmsg.ACLResourcePatternTypeAny, Operation: kmsg.ACLOperationAny, Permission: kmsg.ACLPermissionTypeAny}

var clusterACLs = acl.Filter{Resource: kmsg.ACLResourceTypeCluster, Name: kmsg.StringPtr(acl.ClusterName), Type: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationAny, Permission: kmsg.ACLPermissionTypeAny}

// aclCallMistake tells why options do not go together, "" when they do.
func aclCallMistake(set *options.Set) string {
	switch {
	case set.Has("bootstrap-server") && set.Has("authorizer"):
		return "Only one of --bootstrap-server or --authorizer must be specified"
	case !set.Has("bootstrap-server") && !set.Has("authorizer-properties"):
		return missing("authorizer-properties")
	case set.Has("command-config") && !set.Has("bootstrap-server"):
		return "The --command-config option can only be used with --bootstrap-server option"
	case set.Has("authorizer-properties") && set.Has("bootstrap-server"):
		return "The --authorizer-properties option can only be used with --authorizer option"
	}
	actions := 0
	for _, action := range []string{"add", "remove", "list"} {
		if set.Has(action) {
			actions++
		}
	}
	if actions != 1 {
		return "Command must include exactly one action: --list, --add, --remove. "
	}
	for _, against := range []struct {
		used     string
		excluded []string
	}{
		{"list", []string{"producer", "consumer", "allow-host", "allow-principal", "deny-host", "deny-principal"}},
		{"producer", []string{"operation", "deny-principal", "deny-host"}},
		{"consumer", []string{"operation", "deny-principal", "deny-host"}},
	} {
		for _, other := range against.excluded {
			if set.Has(against.used) && set.Has(other) {
				return notTogether(against.used, other)
			}
		}
	}
	switch {
	case set.Has("principal") && !set.Has("list"):
		return "The --principal option is only available if --list is set"
	case set.Has("producer") && !set.Has("topic"):
		return "With --producer you must specify a --topic"
	case set.Has("idempotent") && !set.Has("producer"):
		return "The --idempotent option is only available if --producer is set"
	case set.Has("consumer") && (!set.Has("topic") || !set.Has("group") || !set.Has("producer") && (set.Has("cluster") || set.Has("transactional-id"))):
		return "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option should be specified."
	}
	return ""
}

// readACLCall reads what is asked for; a badArgument is to be shown with the help.
func readACLCall(set *options.Set) (call aclCall, err error) {
	pattern, err := readPatternType(set)
	if err != nil {
		return call, err
	}
	call.filters = resourceFilters(set, pattern)
	if call.principals, err = readPrincipals(set.Values("principal")); err != nil || set.Has("list") {
		return call, err
	}
	if set.Has("add") && pattern != kmsg.ACLResourcePatternTypeLiteral && pattern != kmsg.ACLResourcePatternTypePrefixed {
		return call, &badArgument{fmt.Sprintf("A '--resource-pattern-type' value of '%s' is not valid when adding acls.", pattern)}
	}
	if len(call.filters) == 0 {
		return call, &badArgument{"You must provide at least one resource: --topic <topic> or --cluster or --group <group> or --delegation-token <Delegation Token ID>"}
	}
	if call.on, err = entriesAsked(set, call.filters); err != nil {
		return call, err
	}
	for _, on := range call.on {
		if err := makesSense(on); err != nil {
			return call, err
		}
		if set.Has("add") && len(on.entries) == 0 {
			return call, &badArgument{"You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."}
		}
	}
	return call, nil
}

func readPatternType(set *options.Set) (kmsg.ACLResourcePatternType, error) {
	text, err := set.Value("resource-pattern-type")
	if err != nil || text == "" {
		return kmsg.ACLResourcePatternTypeLiteral, err
	}
	pattern, err := kmsg.ParseACLResourcePatternType(text)
	if err != nil {
		return 0, &badArgument{"Unknown resource-pattern-type: " + text}
	}
	return pattern, nil
}

// resourceFilters are the resources that options name.
func resourceFilters(set *options.Set, pattern kmsg.ACLResourcePatternType) []acl.Filter {
	var filters []acl.Filter
	add := func(resource kmsg.ACLResourceType, names ...string) {
		for _, name := range names {
			f := everyACL
			f.Resource, f.Name, f.Type = resource, &name, pattern
			filters = append(filters, f)
		}
	}
	trimmed := func(option string) (names []string) {
		for _, name := range set.Values(option) {
			names = append(names, strings.TrimSpace(name))
		}
		return names
	}
	add(kmsg.ACLResourceTypeTopic, trimmed("topic")...)
	if set.Has("idempotent") || set.Has("cluster") && pattern == kmsg.ACLResourcePatternTypeLiteral {
		filters = append(filters, clusterACLs)
	}
	add(kmsg.ACLResourceTypeGroup, trimmed("group")...)
	add(kmsg.ACLResourceTypeTransactionalId, set.Values("transactional-id")...)
	add(kmsg.ACLResourceTypeDelegationToken, trimmed("delegation-token")...)
	add(kmsg.ACLResourceTypeUser, trimmed("user-principal")...)
	return filters
}

// needs are those of the roles that were named, or the operations that were spelled out.
func needs(set *options.Set) []acl.Need {
	if !set.Has("producer") && !set.Has("consumer") {
		return []acl.Need{{Resource: kmsg.ACLResourceTypeAny, Operations: readOperations(set)}}
	}
	var all []acl.Need
	if set.Has("producer") {
		all = append(all, acl.ProducerNeeds()...)
	}
	if set.Has("idempotent") {
		all = append(all, acl.IdempotentNeed())
	}
	if set.Has("consumer") {
		all = append(all, acl.ConsumerNeeds()...)
	}
	return all
}

// entriesAsked lists the entries of each resource.
func entriesAsked(set *options.Set, filters []acl.Filter) ([]aclsOn, error) {
	var on []aclsOn
	for _, n := range needs(set) {
		entries, err := entriesOf(set, n.Operations)
		if err != nil {
			return nil, err
		}
		for _, f := range filters {
			if f.Resource == n.Resource || n.Resource == kmsg.ACLResourceTypeAny {
				on = withEntries(on, f, entries)
			}
		}
	}
	return on, nil
}

// withEntries adds entries to those of a filter.
func withEntries(on []aclsOn, f acl.Filter, entries []acl.Entry) []aclsOn {
	at := slices.IndexFunc(on, func(o aclsOn) bool { return o.filter.Resource == f.Resource && *o.filter.Name == *f.Name })
	if at < 0 {
		at = len(on)
		on = append(on, aclsOn{filter: f})
	}
	for _, e := range entries {
		if !slices.Contains(on[at].entries, e) {
			on[at].entries = append(on[at].entries, e)
		}
	}
	return on
}

// entriesOf allows and denies operations to whom options name, from the hosts that they name.
func entriesOf(set *options.Set, ops []kmsg.ACLOperation) ([]acl.Entry, error) {
	var entries []acl.Entry
	for _, side := range []struct {
		principals, hosts string
		permission        kmsg.ACLPermissionType
	}{{"allow-principal", "allow-host", kmsg.ACLPermissionTypeAllow}, {"deny-principal", "deny-host", kmsg.ACLPermissionTypeDeny}} {
		principals, err := readPrincipals(set.Values(side.principals))
		if err != nil {
			return nil, err
		}
		hosts := set.Values(side.hosts)
		if len(hosts) == 0 {
			hosts = []string{acl.Wildcard}
		}
		for _, principal := range principals {
			for _, op := range ops {
				for _, host := range hosts {
					entries = append(entries, acl.Entry{Principal: principal.String(), Host: strings.TrimSpace(host), Operation: op, Permission: side.permission})
				}
			}
		}
	}
	return entries, nil
}

func readPrincipals(texts []string) ([]acl.Principal, error) {
	var principals []acl.Principal
	for _, text := range texts {
		p, err := acl.ParsePrincipal(strings.TrimSpace(text))
		if err != nil {
			return nil, &thrown{"java.lang.IllegalArgumentException", err.Error()}
		}
		principals = append(principals, p)
	}
	return principals, nil
}

func readOperations(set *options.Set) []kmsg.ACLOperation {
	texts := set.Values("operation")
	if len(texts) == 0 {
		return []kmsg.ACLOperation{kmsg.ACLOperationAll}
	}
	var ops []kmsg.ACLOperation
	for _, text := range texts {
		op, _ := kmsg.ParseACLOperation(strings.TrimSpace(text)) // what is unknown makes no sense for any resource
		ops = append(ops, op)
	}
	return ops
}

// allOperations are those that may be allowed or denied, in the order of the protocol.
var allOperations = []kmsg.ACLOperation{
	kmsg.ACLOperationAll, kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationCreate, kmsg.ACLOperationDelete, kmsg.ACLOperationAlter,
	kmsg.ACLOperationDescribe, kmsg.ACLOperationClusterAction, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs,
	kmsg.ACLOperationIdempotentWrite, kmsg.ACLOperationCreateTokens, kmsg.ACLOperationDescribeTokens,
}

// operationWords are operations as people write them: AlterConfigs.
func operationWords(ops []kmsg.ACLOperation) []string {
	words := make([]string, len(ops))
	for i, op := range ops {
		words[i] = acl.Word(op.String())
	}
	return words
}

// makesSense tells which operations a resource has, where others were asked for.
func makesSense(on aclsOn) error {
	valid := append(slices.Clone(acl.Operations(on.filter.Resource)), kmsg.ACLOperationAll)
	for _, e := range on.entries {
		if !slices.Contains(valid, e.Operation) {
			return &badArgument{fmt.Sprintf("ResourceType %s only supports operations %s", on.filter.Resource, strings.Join(operationWords(valid), ", "))}
		}
	}
	return nil
}
