package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/cluster"
	"barnabas/tools/subcommands"
)

// A metadata quorum keeps what ZooKeeper keeps, in clusters without it. Here there is none, and that is what brokers say.

// brokersOrControllers is how the commands that know clusters without ZooKeeper are told where to ask.
var brokersOrControllers = []subcommands.Argument{
	{Name: "bootstrap-server", Value: "BOOTSTRAP_SERVER", Doc: "Brokers to connect to, as host:port, separated by commas."},
	{Name: "bootstrap-controller", Value: "BOOTSTRAP_CONTROLLER", Doc: "Controllers of a cluster without ZooKeeper. This one has ZooKeeper."},
	{Name: "command-config", Value: "COMMAND_CONFIG", Doc: "Property file with settings of the client."},
}

var metadataQuorumCommand = subcommands.Command{
	Name: "kafka-metadata-quorum", Doc: "This tool tells of the controllers that keep a cluster's metadata where there is no ZooKeeper.", OneOf: [][]string{{"bootstrap-server", "bootstrap-controller"}},
	Arguments: brokersOrControllers,
	Commands: []subcommands.Command{
		{Name: "describe", Doc: "Describe the quorum.", Arguments: []subcommands.Argument{
			{Name: "status", Doc: "In short."},
			{Name: "replication", Doc: "How far each of its members is."},
			{Name: "human-readable", Doc: "With --replication: times as people read them."}}},
		{Name: "add-controller", Doc: "Add a controller.", Arguments: []subcommands.Argument{
			{Name: "dry-run", Doc: "Only print what would be done."}}},
		{Name: "remove-controller", Doc: "Remove a controller.", Arguments: []subcommands.Argument{
			{Name: "controller-id", Short: "i", Value: "CONTROLLER_ID", Number: subcommands.Integer, Required: true, Doc: "Its id."},
			{Name: "controller-directory-id", Short: "d", Value: "CONTROLLER_DIRECTORY_ID", Required: true, Doc: "The id of its directory."},
			{Name: "dry-run", Doc: "Only print what would be done."}}},
	},
}

// quorumRequests are the requests of the sub-commands, under the names that errors give them.
var quorumRequests = map[string]struct {
	key  int16
	name string
}{
	"describe":          {kmsg.DescribeQuorum.Int16(), "DESCRIBE_QUORUM"},
	"add-controller":    {kmsg.AddRaftVoter.Int16(), "ADD_RAFT_VOTER"},
	"remove-controller": {kmsg.RemoveRaftVoter.Int16(), "REMOVE_RAFT_VOTER"},
}

// MetadataQuorum is kafka-metadata-quorum, which came with 3.3: there is one text.
func MetadataQuorum(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	call, err := metadataQuorumCommand.Parse(args)
	if err != nil {
		return helpIsNoFailure(err, subcommands.Report(err, stdout, stderr))
	}
	err = metadataQuorum(call)
	var unsupported *notSupported
	switch {
	case err == nil:
		return 0
	case errors.As(err, &unsupported):
		text := exceptionClass(err) + ": " + err.Error()
		fmt.Fprintf(stderr, "%s\njava.util.concurrent.ExecutionException: %s\nCaused by: %s\n", text, text, text)
	default:
		fmt.Fprintln(stderr, err)
	}
	return 1
}

// helpIsNoFailure is the exit code of the tools that end well when only their help was asked for.
func helpIsNoFailure(err error, code int) int {
	var help *subcommands.HelpError
	if errors.As(err, &help) {
		return 0
	}
	return code
}

func metadataQuorum(call *subcommands.Call) error {
	const patience = 30 * time.Second
	if file := call.Value("command-config"); file != "" {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("Properties file %s does not exists!", file)
		}
	}
	if call.Has("bootstrap-controller") {
		return errNoControllers
	}
	status, replication := call.Has("status"), call.Has("replication")
	switch {
	case call.Command == "add-controller" && !call.Has("command-config"):
		return errors.New("You must supply the configuration file of the controller you are adding when using add-controller.")
	case call.Command == "remove-controller" && call.Int("controller-id") < 0:
		return fmt.Errorf("Invalid negative --controller-id: %d", call.Int("controller-id"))
	case call.Command != "describe":
	case status && replication:
		return errors.New("Only one of --status or --replication should be specified with describe sub-command")
	case status && call.Has("human-readable"):
		return errors.New("The option --human-readable is only supported along with --replication")
	case !status && !replication:
		return errors.New("One of --status or --replication must be specified with describe sub-command")
	}
	client, err := adminClient.connect(callArguments{call})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	asked := quorumRequests[call.Command]
	served, err := cluster.Serves(ctx, client, asked.key)
	switch {
	case err != nil:
		return err
	case served:
		return errors.New("This cluster keeps its metadata in a quorum of controllers and not in ZooKeeper: ask it by the kafka-metadata-quorum of its own release.")
	}
	return &notSupported{asked.name}
}
