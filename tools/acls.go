package tools

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/acl"
	"barnabas/tools/options"
)

var aclsOptions = []options.Option{
	{Name: "add", Doc: "Add access lists."},
	{Name: "allow-host", Arity: options.Many, Value: "String: allow-host", Doc: "Host from which those of --allow-principal have access; every host without it."},
	{Name: "allow-principal", Arity: options.Many, Value: "String: allow-principal", Doc: "Who is allowed, as principalType:name. User:'*' is everybody."},
	{Name: "authorizer", Arity: options.One, Value: "String: authorizer", Doc: "Deprecated: class of the authorizer; kafka.security.authorizer.AclAuthorizer, which is the only one, without it."},
	{Name: "authorizer-properties", Arity: options.Many, Value: "String: authorizer-properties", Doc: "Deprecated: settings of the authorizer, as key=value: zookeeper.connect=localhost:2181. Works on ZooKeeper directly, for clusters whose brokers do not run yet."},
	{Name: "bootstrap-server", Arity: options.One, Value: "String: server to connect to", Doc: "Brokers to connect to, as host:port, separated by commas."},
	{Name: "cluster", Doc: "Access lists of the cluster."},
	{Name: "command-config", Arity: options.Maybe, Value: "String: command-config", Doc: "Property file with settings of the client. Only with --bootstrap-server."},
	{Name: "consumer", Doc: "What a consumer needs: READ and DESCRIBE on topics and READ on groups."},
	{Name: "delegation-token", Arity: options.Many, Value: "String: delegation-token", Doc: "Access lists of a delegation token; '*' is all."},
	{Name: "deny-host", Arity: options.Many, Value: "String: deny-host", Doc: "Host from which those of --deny-principal are denied access; every host without it."},
	{Name: "deny-principal", Arity: options.Many, Value: "String: deny-principal", Doc: "Who is denied, as principalType:name. Whoever is not allowed is denied anyway: this takes from what is allowed to more. Denying counts before allowing."},
	{Name: "force", Doc: "Do not ask for confirmation."},
	{Name: "group", Arity: options.Many, Value: "String: group", Doc: "Access lists of a consumer group; '*' is all."},
	{Name: "help", Doc: "Print this text."},
	{Name: "idempotent", Doc: "With --producer: what an idempotent producer needs. One with a transactional id needs no more than that."},
	{Name: "list", Doc: "Show access lists, of the resources named or of all."},
	{Name: "operation", Arity: options.Many, Value: "String", Doc: "What is allowed or denied: " + strings.Join(operationWords(allOperations), ", ") + ". (default: All)"},
	{Name: "principal", Arity: options.Maybe, Value: "String: principal", Doc: "With --list: only those of a principal, as principalType:name. Any number of times."},
	{Name: "producer", Doc: "What a producer needs: WRITE, DESCRIBE and CREATE on topics."},
	{Name: "remove", Doc: "Remove access lists."},
	{Name: "resource-pattern-type", Arity: options.One, Value: "ANY|MATCH|LITERAL|PREFIXED", Doc: "How names are meant: each as it is, or as a prefix. To list or remove, also any (either type, of exactly that name) and match (all that concern what is called so). (default: LITERAL)"},
	{Name: "topic", Arity: options.Many, Value: "String: topic", Doc: "Access lists of a topic; '*' is all."},
	{Name: "transactional-id", Arity: options.Many, Value: "String: transactional-id", Doc: "Access lists of a transactional id; '*' is all."},
	{Name: "user-principal", Arity: options.Many, Value: "String: user-principal", Doc: "Access lists of a user, for whom tokens may be made or described."},
	{Name: "version", Doc: "Print the version."},
	{Name: "zk-tls-config-file", Arity: options.One, Value: "String: Authorizer ZooKeeper TLS configuration", Doc: "Property file with TLS settings for ZooKeeper."},
}

const throughZooKeeper = "Warning: support for ACL configuration directly through the authorizer is deprecated and will be removed in a future release. Please use --bootstrap-server instead to set ACLs through the admin client."

// aclService reads and changes access lists through one of the two doors.
type aclService interface {
	find(acl.Filter) ([]acl.Binding, error)
	create([]acl.Binding) error
	remove([]acl.Filter) error
	close()
}

// ACLs is kafka-acls.
func ACLs(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "kafka.admin.AclCommand", intro: "This tool helps to manage acls on kafka.", options: aclsOptions, misread: exception, stdout: stdout, stderr: stderr}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	if reason := aclCallMistake(set); reason != "" {
		return f.usage(reason)
	}
	if !set.Has("bootstrap-server") && compat39() {
		fmt.Fprintln(stderr, throughZooKeeper)
	}
	call, err := readACLCall(set)
	var bad *badArgument
	switch {
	case errors.As(err, &bad):
		return f.usage(bad.reason)
	case err == nil:
		err = runACLs(f, set, call, bufio.NewReader(stdin))
	}
	if err != nil {
		fmt.Fprintf(stdout, "Error while executing ACL command: %s\n%s\n", executionFailure(err), stackTrace(err))
		return 1
	}
	return 0
}

func runACLs(f face, set *options.Set, call aclCall, stdin *bufio.Reader) error {
	service, err := openACLs(set)
	if err != nil {
		return err
	}
	defer service.close()
	switch {
	case set.Has("add"):
		err = addACLs(f, service, call)
	case set.Has("remove"):
		err = removeACLs(f, service, call, set.Has("force"), stdin)
	default:
		return listACLs(f, service, call)
	}
	if err != nil || compat39() {
		return err
	}
	return listACLs(f, service, call) // the older release shows what is there now
}

func addACLs(f face, service aclService, call aclCall) error {
	for _, on := range call.on {
		pattern := acl.Pattern{Resource: on.filter.Resource, Name: *on.filter.Name, Type: on.filter.Type}
		fmt.Fprintf(f.stdout, "Adding ACLs for resource `%s`: \n %s \n\n", patternText(pattern.Resource, pattern.Name, pattern.Type), entryLines(on.entries))
		var bindings []acl.Binding
		for _, e := range on.entries {
			bindings = append(bindings, acl.Binding{Pattern: pattern, Entry: e})
		}
		if err := service.create(bindings); err != nil {
			return err
		}
	}
	return nil
}

func removeACLs(f face, service aclService, call aclCall, force bool, stdin *bufio.Reader) error {
	for _, on := range call.on {
		resource := patternText(on.filter.Resource, *on.filter.Name, on.filter.Type)
		question := fmt.Sprintf("Are you sure you want to remove ACLs: \n %s \n from resource filter `%s`? (y/n)", entryLines(on.entries), resource)
		if len(on.entries) == 0 {
			question = fmt.Sprintf("Are you sure you want to delete all ACLs for resource filter `%s`? (y/n)", resource)
		}
		if !force && !confirmed(f, question, stdin) {
			continue
		}
		filters := []acl.Filter{on.filter}
		if len(on.entries) > 0 {
			filters = nil
		}
		for _, e := range on.entries {
			exact := on.filter
			exact.Principal, exact.Host, exact.Operation, exact.Permission = &e.Principal, &e.Host, e.Operation, e.Permission
			filters = append(filters, exact)
		}
		if err := service.remove(filters); err != nil {
			return err
		}
	}
	return nil
}

func confirmed(f face, question string, stdin *bufio.Reader) bool {
	fmt.Fprintln(f.stdout, question)
	line, _ := stdin.ReadString('\n')
	return strings.EqualFold(strings.TrimRight(line, "\r\n"), "y")
}

func listACLs(f face, service aclService, call aclCall) error {
	filters := call.filters
	if len(filters) == 0 {
		filters = []acl.Filter{everyACL}
	}
	var all []acl.Binding
	for _, filter := range filters {
		found, err := service.find(filter)
		if err != nil {
			return err
		}
		for _, b := range found {
			if !slices.Contains(all, b) {
				all = append(all, b)
			}
		}
	}
	if len(call.principals) == 0 {
		printACLs(f, all)
	}
	for _, principal := range call.principals {
		fmt.Fprintf(f.stdout, "ACLs for principal `%s`\n", principal)
		printACLs(f, slices.DeleteFunc(slices.Clone(all), func(b acl.Binding) bool { return b.Principal != principal.String() }))
	}
	return nil
}

func printACLs(f face, bindings []acl.Binding) {
	var patterns []acl.Pattern
	entries := map[acl.Pattern][]acl.Entry{}
	for _, b := range bindings {
		if entries[b.Pattern] == nil {
			patterns = append(patterns, b.Pattern)
		}
		entries[b.Pattern] = append(entries[b.Pattern], b.Entry)
	}
	for _, p := range patterns {
		fmt.Fprintf(f.stdout, "Current ACLs for resource `%s`: \n %s \n\n", patternText(p.Resource, p.Name, p.Type), entryLines(entries[p]))
	}
}

func patternText(resource kmsg.ACLResourceType, name string, pattern kmsg.ACLResourcePatternType) string {
	return fmt.Sprintf("ResourcePattern(resourceType=%s, name=%s, patternType=%s)", resource, name, pattern)
}

func entryLines(entries []acl.Entry) string {
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = fmt.Sprintf("\t(principal=%s, host=%s, operation=%s, permissionType=%s)", e.Principal, e.Host, e.Operation, e.Permission)
	}
	return strings.Join(lines, "\n")
}
