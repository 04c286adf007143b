package tools

import (
	"context"
	"errors"
	"fmt"
	"io"

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

// Cluster is kafka-cluster.
func Cluster(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	call, err := clusterCommand.Parse(args)
	if err != nil {
		return subcommands.Report(err, stdout, stderr)
	}
	settings, err := clientOptions{[]string{"bootstrap-server"}, "config", ""}.settings(callArguments{call})
	if err != nil {
		fmt.Fprintln(stderr, err)
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
