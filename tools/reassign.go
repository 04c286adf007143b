package tools

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"barnabas/tools/options"
)

var reassignOptions = []options.Option{
	{Name: "additional", Doc: "With --execute: start although others are running. Also changes the throttle of what is running, when the same file is given again."},
	{Name: "bootstrap-server", Arity: options.One, Value: "String: Server(s) to use for bootstrapping", Doc: "Brokers to connect to, as host:port, separated by commas."},
	{Name: "broker-list", Arity: options.One, Value: "String: brokerlist", Doc: "With --generate: the ids of the brokers that are to hold the topics, as 0,1,2."},
	{Name: "cancel", Doc: "Cancel what is running of the partitions in the file."},
	{Name: "command-config", Arity: options.One, Value: "String: Admin client property file", Doc: "Property file with settings of the client."},
	{Name: "disable-rack-aware", Doc: "With --generate: pay no regard to racks."},
	{Name: "disallow-replication-factor-change", Doc: "With --execute: refuse a file that gives a partition more or fewer replicas than it has."},
	{Name: "execute", Doc: "Start what --reassignment-json-file says."},
	{Name: "generate", Doc: "Propose where the replicas of the topics in --topics-to-move-json-file should be, on the brokers in --broker-list. Nothing is changed."},
	{Name: "help", Doc: "Print this text."},
	{Name: "list", Doc: "List what is running."},
	{Name: "preserve-throttles", Doc: "With --verify and --cancel: leave throttles as they are."},
	{Name: "reassignment-json-file", Arity: options.One, Value: "String: manual assignment json file path", Doc: `Where replicas are to be: {"partitions": [{"topic": "foo", "partition": 1, "replicas": [1,2,3], "log_dirs": ["dir1","dir2","dir3"]}], "version": 1}. log_dirs may be left out; "any" leaves the directory to the broker.`},
	{Name: "replica-alter-log-dirs-throttle", Arity: options.One, Value: "Long: replicaAlterLogDirsThrottle", Doc: "With --execute: limit, in bytes a second, of moves between directories of one broker. (default: -1, none)"},
	{Name: "strategy", Arity: options.One, Value: "String: least|kafka", Doc: "With --generate: least (the default) leaves replicas where they are as far as an even spread allows; kafka deals all of them anew, as the original tool does."},
	{Name: "throttle", Arity: options.One, Value: "Long: throttle", Doc: "With --execute: limit, in bytes a second, of moves between brokers. (default: -1, none)"},
	{Name: "timeout", Arity: options.One, Value: "Long: timeout", Doc: "How many milliseconds moves between directories may take to begin. (default: 10000)"},
	{Name: "topics-to-move-json-file", Arity: options.One, Value: "String: topics to reassign json file path", Doc: `The topics for --generate: {"topics": [{"topic": "foo"},{"topic": "foo1"}], "version": 1}.`},
	{Name: "verify", Doc: "Show how far the partitions in the file are, and remove throttles when nothing is running any more."},
	{Name: "version", Doc: "Print the version."},
	{Name: "wait", Doc: "With --execute and --verify: wait until all is done, showing progress on standard error, then remove throttles."},
	{Name: "zookeeper", Arity: options.One, Value: "String: urls", Doc: "Deprecated: work on ZooKeeper directly, as host:port[,host:port...][/chroot]."},
}

// reassignActions are what the tool does, with the options that each needs and those that it takes beside them and the ways to connect.
var reassignActions = []struct {
	name        string
	needs, also []string
}{
	{"generate", []string{"topics-to-move-json-file", "broker-list"}, []string{"disable-rack-aware", "strategy", "zookeeper"}},
	{"execute", []string{"reassignment-json-file"}, []string{"additional", "throttle", "replica-alter-log-dirs-throttle", "disallow-replication-factor-change", "timeout", "wait", "zookeeper"}},
	{"verify", []string{"reassignment-json-file"}, []string{"preserve-throttles", "wait", "zookeeper"}},
	{"cancel", []string{"reassignment-json-file"}, []string{"preserve-throttles", "timeout"}},
	{"list", nil, nil},
}

// errUnfinished makes the exit code 1 where BARNABAS_STRICT asks for it, and prints nothing.
var errUnfinished = errors.New("not all that was asked for is so")

// ReassignPartitions is kafka-reassign-partitions.
func ReassignPartitions(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	known := reassignOptions
	if compat39() {
		known = slices.DeleteFunc(slices.Clone(known), func(o options.Option) bool { return o.Name == "zookeeper" })
	}
	f := face{class: "kafka.admin.ReassignPartitionsCommand$", intro: "This tool helps to move topic partitions between replicas.", options: known, misread: exception, stdout: stdout, stderr: stderr}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	action, reason := reassignAction(set)
	if reason != "" {
		return f.usage(reason)
	}
	if !set.Has("bootstrap-server") {
		for _, option := range []string{"additional", "command-config", "replica-alter-log-dirs-throttle", "timeout"} {
			if set.Has(option) {
				fmt.Fprintf(stderr, "Exception in thread \"main\" java.lang.RuntimeException: You must specify --bootstrap-server when using \"[%s]\"\n", option)
				return 1
			}
		}
	}
	err := reassign(f, set, action)
	var short *terse
	switch {
	case err == nil, errors.Is(err, errUnfinished) && !strict():
		return 0
	case errors.Is(err, errUnfinished):
	case errors.As(err, &short):
		fmt.Fprintln(stdout, short.text)
	case fromBroker(err):
		fmt.Fprintf(stdout, "Error: %s: %s\n%s\n", exceptionClass(err), err, stackTrace(err))
	default:
		fmt.Fprintf(stdout, "Error: %s\n%s\n", err, stackTrace(err))
	}
	return 1
}

// reassignAction says which action was asked for, or what is wrong with the call.
func reassignAction(set *options.Set) (action, reason string) {
	var names []string
	for _, a := range reassignActions {
		names = append(names, "--"+a.name)
		if set.Has(a.name) {
			if action != "" {
				action = "several"
				continue
			}
			action = a.name
		}
	}
	at := slices.IndexFunc(reassignActions, func(a struct {
		name        string
		needs, also []string
	}) bool {
		return a.name == action
	})
	switch {
	case at < 0:
		return "", "Command must include exactly one action: " + strings.Join(names, ", ")
	case !set.Has("zookeeper") && !set.Has("bootstrap-server"):
		return "", "Please specify --bootstrap-server"
	}
	a := reassignActions[at]
	for _, needed := range a.needs {
		if !set.Has(needed) {
			return "", missing(needed)
		}
	}
	for _, option := range set.Names() {
		if option != action && option != "bootstrap-server" && option != "command-config" && !slices.Contains(a.needs, option) && !slices.Contains(a.also, option) {
			return "", fmt.Sprintf("Option \"[%s]\" can't be used with action \"[%s]\"", option, action)
		}
	}
	return action, ""
}

func reassign(f face, set *options.Set, action string) error {
	door, err := openReassignment(f, set)
	if err != nil {
		return err
	}
	defer door.close()
	r := reassigner{f, door}
	switch action {
	case "generate":
		return r.generate(set)
	case "execute":
		return r.execute(set)
	case "verify":
		return r.verify(set)
	case "cancel":
		return r.cancel(set)
	}
	return r.list()
}

func openReassignment(f face, set *options.Set) (reassignmentDoor, error) {
	if set.Has("bootstrap-server") {
		if set.Has("zookeeper") {
			fmt.Fprintln(f.stdout, "Warning: ignoring deprecated --zookeeper option because --bootstrap-server was specified.  The --zookeeper option will be removed in a future version of Kafka.")
		}
		client, err := adminClient.connect(set)
		if err != nil {
			return nil, err
		}
		return &reassignmentByBroker{f, client}, nil
	}
	fmt.Fprintln(f.stdout, "Warning: --zookeeper is deprecated, and will be removed in a future version of Kafka.")
	servers, err := set.Value("zookeeper")
	if err != nil {
		return nil, err
	}
	zk, err := connectZooKeeper(servers, "", "")
	if err != nil {
		return nil, err
	}
	return &reassignmentByZooKeeper{zk}, nil
}
