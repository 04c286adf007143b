package native

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
	"barnabas/broker/acl"
)

func aclCommand() *cli.Command {
	return parent("acl", "show and change who may do what, and ask whether somebody may", aclList(), aclAdd(), aclRemove(), aclCheck(), aclExport())
}

type aclsDocument struct {
	Version int       `json:"version"`
	ACLs    []aclLine `json:"acls"`
}

// aclLine is an entry of an access list. Words are those that the commands take.
type aclLine struct {
	ResourceType string `json:"resource_type"`
	Resource     string `json:"resource"` // literal * is all of the type
	Pattern      string `json:"pattern"`  // literal, or prefixed
	Principal    string `json:"principal"`
	Host         string `json:"host"`
	Operation    string `json:"operation"`
	Permission   string `json:"permission"` // allow or deny
}

const aclFields = `resource_type, resource, pattern (literal or prefixed), principal, host, operation, permission (allow or deny)`

func (d *aclsDocument) show(w io.Writer) {
	rows := [][]string{{"RESOURCE", "PATTERN", "PRINCIPAL", "HOST", "PERMISSION", "OPERATION"}}
	for _, a := range d.ACLs {
		rows = append(rows, []string{a.resource(), a.Pattern, a.Principal, a.Host, a.Permission, a.Operation})
	}
	columns(w, rows)
}

func (a aclLine) resource() string { return a.ResourceType + ":" + a.Resource }

// sentence says what an entry does.
func (a aclLine) sentence() string {
	return fmt.Sprintf("%s %s to %s from %s", a.Permission, a.Operation, a.Principal, a.Host)
}

// kebab is a name of the protocol as the native tools write it: alter-configs for ALTER_CONFIGS.
func kebab(code fmt.Stringer) string {
	return strings.ReplaceAll(strings.ToLower(code.String()), "_", "-")
}

func aclLineOf(b acl.Binding) aclLine {
	return aclLine{kebab(b.Resource), b.Name, kebab(b.Pattern.Type), b.Principal, b.Host, kebab(b.Operation), kebab(b.Permission)}
}

func aclsOf(bindings []acl.Binding) *aclsDocument {
	d := &aclsDocument{documentVersion, []aclLine{}}
	for _, b := range inOrder(bindings) {
		d.ACLs = append(d.ACLs, aclLineOf(b))
	}
	return d
}

// inOrder sorts entries, each once.
func inOrder(bindings []acl.Binding) []acl.Binding {
	list := slices.Clone(bindings)
	slices.SortFunc(list, acl.Binding.Compare)
	return slices.Compact(list)
}

const resourceWords = "topic:NAME, group:NAME, cluster, transactional-id:ID, delegation-token:ID or user:TYPE:NAME"

// readResource reads a resource; the name is nil for all of a type, which counts only where bare is true.
func readResource(text string, bare bool) (kmsg.ACLResourceType, *string, error) {
	word, name, named := strings.Cut(text, ":")
	kind, err := kmsg.ParseACLResourceType(word)
	switch {
	case err != nil || kind == kmsg.ACLResourceTypeAny:
		return 0, nil, wrongUsage("%s is none of %s", text, resourceWords)
	case kind == kmsg.ACLResourceTypeCluster:
		if named && name != acl.ClusterName {
			return 0, nil, wrongUsage("the cluster's name is %s", acl.ClusterName)
		}
		return kind, kmsg.StringPtr(acl.ClusterName), nil
	case named && name != "":
		return kind, &name, nil
	case bare && !named:
		return kind, nil, nil
	}
	return 0, nil, wrongUsage("%s names no %s", text, word)
}

// readPrincipal reads a principal; nil is the word any.
func readPrincipal(text string) (*string, error) {
	if text == "any" {
		return nil, nil
	}
	if _, err := acl.ParsePrincipal(text); err != nil {
		return nil, wrongUsage("the principal %s is not of the form TYPE:NAME, such as User:alice", text)
	}
	return &text, nil
}

// operations reads --op, which may be given many times, also with commas.
func (c *call) operations() ([]kmsg.ACLOperation, error) {
	var ops []kmsg.ACLOperation
	for _, text := range c.values("op") {
		for word := range strings.SplitSeq(text, ",") {
			op, err := readOperation(word)
			if err != nil {
				return nil, err
			}
			ops = append(ops, op)
		}
	}
	return ops, nil
}

func readOperation(word string) (kmsg.ACLOperation, error) {
	op, err := kmsg.ParseACLOperation(strings.TrimSpace(word))
	if err != nil || op == kmsg.ACLOperationAny {
		return 0, wrongUsage("%q is no operation such as read, write, describe or all", word)
	}
	return op, nil
}

// suits refuses an operation that a resource does not have.
func suits(op kmsg.ACLOperation, resource kmsg.ACLResourceType) error {
	valid := append([]kmsg.ACLOperation{kmsg.ACLOperationAll}, acl.Operations(resource)...)
	if slices.Contains(valid, op) {
		return nil
	}
	var words []string
	for _, v := range valid {
		words = append(words, kebab(v))
	}
	return wrongUsage("a %s has no operation %s; it has %s", kebab(resource), kebab(op), strings.Join(words, ", "))
}

func prefixedFlag() cli.Flag {
	return &cli.BoolFlag{Name: "prefixed", Usage: "of all resources whose names begin with NAME"}
}

// patternType is what --prefixed says.
func (c *call) patternType() kmsg.ACLResourcePatternType {
	if c.Bool("prefixed") {
		return kmsg.ACLResourcePatternTypePrefixed
	}
	return kmsg.ACLResourcePatternTypeLiteral
}

// entryFlags choose entries.
func entryFlags() []cli.Flag {
	return []cli.Flag{
		many("op", "only of an `OPERATION`, such as read or alter-configs; any number of times, also with commas"),
		&cli.StringFlag{Name: "host", Usage: "only with the host `ADDRESS`; '*' are those for every host"},
		&cli.StringFlag{Name: "permission", Usage: "only those that allow, or that deny"},
	}
}

// narrowed gives each filter what the options say of entries.
func (c *call) narrowed(filters []acl.Filter) ([]acl.Filter, error) {
	ops, err := c.operations()
	if err != nil {
		return nil, err
	}
	if ops == nil {
		ops = []kmsg.ACLOperation{kmsg.ACLOperationAny}
	}
	permission := kmsg.ACLPermissionTypeAny
	if c.IsSet("permission") {
		if permission, err = kmsg.ParseACLPermissionType(c.String("permission")); err != nil || permission == kmsg.ACLPermissionTypeAny {
			return nil, wrongUsage("--permission %s is neither allow nor deny", c.String("permission"))
		}
	}
	var out []acl.Filter
	for _, f := range filters {
		for _, op := range ops {
			if f.Operation, f.Permission = op, permission; c.IsSet("host") {
				f.Host = kmsg.StringPtr(c.String("host"))
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// chosen are the filters of resources and principals; none of either is any.
func chosen(resources, principals []string, pattern kmsg.ACLResourcePatternType) ([]acl.Filter, error) {
	filters := []acl.Filter{{Resource: kmsg.ACLResourceTypeAny, Type: kmsg.ACLResourcePatternTypeAny}}
	if len(resources) > 0 {
		filters = nil
	}
	for _, text := range resources {
		kind, name, err := readResource(text, true)
		if err != nil {
			return nil, err
		}
		f := acl.Filter{Resource: kind, Name: name, Type: pattern}
		if name == nil {
			f.Type = kmsg.ACLResourcePatternTypeAny
		}
		filters = append(filters, f)
	}
	if len(principals) == 0 {
		return filters, nil
	}
	var out []acl.Filter
	for _, f := range filters {
		for _, text := range principals {
			var err error
			if f.Principal, err = readPrincipal(text); err != nil {
				return nil, err
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// found are the entries that filters choose.
func (c *call) found(filters []acl.Filter) ([]acl.Binding, error) {
	var all []acl.Binding
	for _, f := range filters {
		some, err := c.cluster.ACLs(c.ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return inOrder(all), nil
}

// listFlags choose what is listed and exported.
func listFlags() []cli.Flag {
	return append([]cli.Flag{
		many("principal", "only those for `TYPE:NAME`; any number of times"),
		&cli.BoolFlag{Name: "exact", Usage: "only lists of exactly the names given, whether whole names or prefixes"},
	}, entryFlags()...)
}

// listedACLs are the entries that list and export were asked for.
func (c *call) listedACLs() ([]acl.Binding, error) {
	pattern := kmsg.ACLResourcePatternTypeMatch
	if c.Bool("exact") {
		pattern = kmsg.ACLResourcePatternTypeAny
	}
	filters, err := chosen(c.Args().Slice(), c.values("principal"), pattern)
	if err != nil {
		return nil, err
	}
	if filters, err = c.narrowed(filters); err != nil {
		return nil, err
	}
	return c.found(filters)
}

const resourceArguments = `RESOURCE is ` + resourceWords

func aclList() *cli.Command {
	return command{
		name: "list", usage: "list the access lists of resources or principals", arguments: "[RESOURCE...]", least: 0, most: -1, watched: true,
		help: `Lists all entries, or those that concern the resources that are named: lists of that name, of prefixes of it, and of all. ` + resourceArguments + `; a type alone, as topic, is all of its lists.

Fields: acls (` + aclFields + `).

    barnabas acl list topic:orders
    barnabas acl list --principal User:alice --permission deny -o json`,
		flags: listFlags(),
		run: func(c *call) (document, error) {
			found, err := c.listedACLs()
			if err != nil {
				return nil, err
			}
			return aclsOf(found), nil
		},
	}.build()
}

func aclCheck() *cli.Command {
	return command{
		name: "check", usage: "tell whether somebody may do something, and by which entry", arguments: "PRINCIPAL OPERATION RESOURCE", least: 3, most: 3, watched: true,
		help: `Decides by the rule of brokers over the access lists that hold now: whoever is denied by an entry may not, whoever is allowed by one and denied by none may. Ends with 1 when it is not allowed. Without --host it is asked for a host that no entry names.

What stands above the lists brokers keep to themselves, other than that it is not set: what is not known and could change the answer is in not_known, and can be given.

` + resourceArguments + `.

Fields: principal, host, operation, resource_type, resource, allowed, reason (entry, no_entry, super_user, no_list), entry (` + aclFields + `), not_known.

    barnabas acl check User:alice read topic:orders --host 10.0.0.7`,
		flags: []cli.Flag{
			&cli.StringFlag{Name: "host", Value: acl.Wildcard, Usage: "from which `ADDRESS`"},
			many("super-user", "`TYPE:NAME` of somebody who may do everything; any number of times"),
			&cli.BoolFlag{Name: "allow-unlisted", Usage: "brokers have allow.everyone.if.no.acl.found=true"},
		},
		run: checkACL,
	}.build()
}

type aclAnswer struct {
	Version      int      `json:"version"`
	Principal    string   `json:"principal"`
	Host         string   `json:"host"`
	Operation    string   `json:"operation"`
	ResourceType string   `json:"resource_type"`
	Resource     string   `json:"resource"`
	Allowed      bool     `json:"allowed"`
	Reason       string   `json:"reason"`
	Entry        *aclLine `json:"entry"`
	NotKnown     []string `json:"not_known"`
}

var reasons = map[acl.Reason]string{acl.ByEntry: "entry", acl.NoEntry: "no_entry", acl.SuperUser: "super_user", acl.Unlisted: "no_list"}

func (d *aclAnswer) show(w io.Writer) {
	word, may := "ALLOWED", "may"
	if !d.Allowed {
		word, may = "DENIED", "may not"
	}
	why := map[string]string{
		"no_entry": "no entry of the lists that concern it allows it", "super_user": "super.users has the principal",
		"no_list": "no list concerns it, and allow.everyone.if.no.acl.found decides",
	}[d.Reason]
	if d.Entry != nil {
		why = fmt.Sprintf("%s, on %s (%s)", d.Entry.sentence(), d.Entry.resource(), d.Entry.Pattern)
	}
	columns(w, [][]string{{fmt.Sprintf("%s: %s %s %s %s:%s from %s", word, d.Principal, may, d.Operation, d.ResourceType, d.Resource, d.Host)}, {"    " + why}})
	for _, what := range d.NotKnown {
		fmt.Fprintf(w, "    brokers do not tell %s\n", what)
	}
}

func checkACL(c *call) (document, error) {
	args := c.Args().Slice()
	principal, err := acl.ParsePrincipal(args[0])
	if err != nil {
		return nil, wrongUsage("the principal %s is not of the form TYPE:NAME, such as User:alice", args[0])
	}
	op, err := readOperation(args[1])
	if err != nil {
		return nil, err
	}
	kind, name, err := readResource(args[2], false)
	if err != nil {
		return nil, err
	}
	if err := suits(op, kind); err != nil {
		return nil, err
	}
	super, err := acl.ParseSuperUsers(strings.Join(c.values("super-user"), ";"))
	if err != nil {
		return nil, wrongUsage("--super-user: %v", err)
	}
	policy, err := c.cluster.ACLPolicy(c.ctx)
	if err != nil {
		return nil, err
	}
	if c.IsSet("super-user") {
		policy.SuperUsers, policy.SuperUsersKnown = super, true
	}
	if c.IsSet("allow-unlisted") {
		policy.AllowUnlisted, policy.UnlistedKnown = c.Bool("allow-unlisted"), true
	}
	who := acl.Subject{Principal: principal, Host: c.String("host")}
	decision, err := c.cluster.DecideACL(c.ctx, policy.Policy, who, op, kind, *name)
	if err != nil {
		return nil, err
	}
	d := answerOf(policy, who, decision)
	d.Operation, d.ResourceType, d.Resource = kebab(op), kebab(kind), *name
	if !d.Allowed {
		return d, Failed
	}
	return d, nil
}

// answerOf tells of a decision what it rests on. What is not known is told where it could change the decision.
func answerOf(policy cluster.ACLPolicy, who acl.Subject, decision acl.Decision) *aclAnswer {
	d := &aclAnswer{Version: documentVersion, Principal: who.Principal.String(), Host: who.Host, Allowed: decision.Allowed, Reason: reasons[decision.Reason], NotKnown: []string{}}
	if decision.Reason == acl.ByEntry {
		line := aclLineOf(decision.By)
		d.Entry = &line
	}
	if !policy.SuperUsersKnown && !decision.Allowed {
		d.NotKnown = append(d.NotKnown, "super.users")
	}
	if !policy.UnlistedKnown && decision.Reason == acl.Unlisted {
		d.NotKnown = append(d.NotKnown, "allow.everyone.if.no.acl.found")
	}
	return d
}
