package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/tools/subcommands"
)

var clusterCommand = subcommands.Command{
	Name: "kafka-cluster", Doc: "The Kafka cluster tool.",
	Commands: []subcommands.Command{
		{Name: "cluster-id", Doc: "Get information about the ID of a cluster.", Arguments: clusterArguments},
		{Name: "unregister", Doc: "Unregister a broker.", Arguments: append(clusterArguments[:len(clusterArguments):len(clusterArguments)],
			subcommands.Argument{Name: "id", Short: "i", Value: "ID", Doc: "The ID of the broker to unregister."})},
	},
}

var clusterArguments = []subcommands.Argument{
	{Name: "bootstrap-server", Short: "b", Value: "BOOTSTRAP_SERVER", Doc: "Brokers to connect to, as host:port, separated by commas."},
	{Name: "config", Short: "c", Value: "CONFIG", Doc: "Property file with settings of the client."},
}

// errNoControllers refuses --bootstrap-controller.
var errNoControllers = errors.New("This cluster has no controllers of its own: it is coordinated by ZooKeeper. Please specify --bootstrap-server.")

// clusterCommand39 is what 3.9.1 made of the command: it can also ask the controllers of a cluster that has no ZooKeeper, and one of the two has to be given.
func clusterCommand39() subcommands.Command {
	command := clusterCommand
	command.Commands = slices.Clone(command.Commands)
	for i := range command.Commands {
		sub := &command.Commands[i]
		sub.OneOf = [][]string{{"bootstrap-server", "bootstrap-controller"}}
		sub.Arguments = slices.Insert(slices.Clone(sub.Arguments), 1, subcommands.Argument{Name: "bootstrap-controller", Short: "C", Value: "BOOTSTRAP_CONTROLLER",
			Doc: "Controllers of a cluster without ZooKeeper. This one has ZooKeeper."})
	}
	return command
}

// Cluster is kafka-cluster.
func Cluster(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	command := clusterCommand
	if compat39() {
		command = clusterCommand39()
	}
	call, err := command.Parse(args)
	if err != nil {
		return subcommands.Report(err, stdout, stderr)
	}
	settings, err := clientOptions{[]string{"bootstrap-server"}, "config", ""}.settings(callArguments{call})
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if call.Has("bootstrap-controller") {
		fmt.Fprintln(stderr, errNoControllers)
		return 1
	}
	if settings["bootstrap.servers"] == "" {
		fmt.Fprintln(stderr, "Please specify --bootstrap-server.")
		return 1
	}
	client, err := connect(settings)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	defer client.Close()
	if call.Command == "unregister" {
		// Brokers register themselves in ZooKeeper for as long as they live; only clusters without it have registrations to take back.
		fmt.Fprintln(stdout, "The target cluster does not support the broker unregistration API.")
		return 0
	}
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	resp, err := req.RequestWith(context.Background(), client)
	switch {
	case errors.Is(err, kerr.UnsupportedVersion), err == nil && resp.ClusterID == nil:
		fmt.Fprintln(stdout, "No cluster ID found. The Kafka version is probably too old.")
	case err != nil:
		fmt.Fprintf(stderr, "Exception in thread \"main\" %s", stackTrace(err))
		return 1
	default:
		fmt.Fprintf(stdout, "Cluster ID: %s\n", *resp.ClusterID)
	}
	return 0
}
