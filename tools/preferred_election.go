package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/tools/options"
	"barnabas/zkstate"
)

var preferredElectionOptions = []options.Option{
	{Name: "admin.config", Arity: options.One, Value: "String: config file", Doc: "Property file with settings of the client, with --bootstrap-server."},
	{Name: "bootstrap-server", Arity: options.One, Value: "String: host:port", Doc: "Brokers to connect to, as host:port, separated by commas."},
	{Name: "help", Doc: "Print this text."},
	{Name: "path-to-json-file", Arity: options.One, Value: "String: list of partitions for which preferred replica leader election needs to be triggered",
		Doc: `The partitions, all without it: {"partitions": [{"topic": "foo", "partition": 1}, {"topic": "foobar", "partition": 2}]}.`},
	{Name: "version", Doc: "Print the version."},
	{Name: "zookeeper", Arity: options.One, Value: "String: urls", Doc: "Deprecated: work on ZooKeeper directly, as host:port[,host:port...][/chroot]."},
}

// PreferredReplicaElection is kafka-preferred-replica-election.
func PreferredReplicaElection(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fmt.Fprintln(stdout, "This tool is deprecated. Please use kafka-leader-election tool. Tracking issue: KAFKA-8405")
	f := face{class: "kafka.admin.PreferredReplicaLeaderElectionCommand", options: preferredElectionOptions, misread: exception, stdout: stdout, stderr: stderr,
		intro: "This tool helps to causes leadership for each partition to be transferred back to the 'preferred replica', it can be used to balance leadership among the servers."}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	if set.Has("bootstrap-server") == set.Has("zookeeper") {
		return f.usage("Exactly one of '[bootstrap-server]' or '[zookeeper]' must be provided")
	}
	if err := preferredElection(f, set); err != nil {
		return f.uncaught(err)
	}
	return 0
}

func preferredElection(f face, set *options.Set) error {
	var partitions []plan.Partition
	if set.Has("path-to-json-file") {
		var err error
		if partitions, err = readElectionFile(set, "Preferred replica"); err != nil {
			return err
		}
	}
	if set.Has("zookeeper") {
		fmt.Fprintln(f.stdout, "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.")
		fmt.Fprintln(f.stdout, "Use --bootstrap-server instead to specify a broker to connect to.")
		servers, err := set.Value("zookeeper")
		if err != nil {
			return err
		}
		zk, err := connectZooKeeper(servers, "", "")
		if err != nil {
			return err
		}
		defer zk.Close()
		return preferredElectionByZooKeeper(f, zk, partitions)
	}
	client, err := electionClient.connect(set)
	if err != nil {
		return err
	}
	defer client.Close()
	results, err := cluster.New(client).Elect(context.Background(), cluster.ElectPreferred, partitions)
	if err != nil {
		return electionRefused(f, err)
	}
	return printElection(f, results, electionWords{
		done:  "Successfully completed preferred leader election for partitions",
		noop:  "Preferred replica already elected for partitions",
		fault: "Error completing preferred leader election for partition:",
		sum:   "preferred replica(s) could not be elected",
	})
}

// preferredElectionByZooKeeper leaves a node that asks the controller; partitions that are not there are left out, and named.
func preferredElectionByZooKeeper(f face, zk *zkstate.Client, asked []plan.Partition) error {
	ctx := context.Background()
	existing, err := partitionsInZooKeeper(ctx, zk, asked)
	if err != nil {
		return err
	}
	elected, missing := existing.Partitions(), []plan.Partition(nil)
	if asked != nil {
		elected = nil
		for _, p := range asked {
			if _, there := existing[p]; there {
				elected = append(elected, p)
			} else {
				missing = append(missing, p)
			}
		}
	}
	list := make([]zkstate.TopicPartition, len(elected))
	for i, p := range elected {
		list[i] = zkstate.TopicPartition{Topic: p.Topic, Partition: p.ID}
	}
	_, err = zk.One(ctx, zkstate.Create(zkstate.PreferredReplicaElectionPath, zkstate.EncodePreferredReplicaElection(list)))
	if errors.Is(err, zkstate.ErrNodeExists) {
		return &commandFailed{"Admin command failed: Preferred replica leader election currently in progress. Aborting operation"}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(f.stdout, "Created preferred replica election path with %s\n", joinPartitions(elected, ","))
	fmt.Fprintf(f.stdout, "Successfully started preferred replica election for partitions %s\n", scalaSet(elected))
	for _, p := range missing {
		fmt.Fprintf(f.stdout, "Skipping preferred replica leader election for partition %v since it doesn't exist.\n", p)
	}
	return nil
}

// scalaSet shows a set as the original's language does, which has another name for sets of more than four.
func scalaSet(list []plan.Partition) string {
	const small = 4
	name := "Set"
	if len(list) > small {
		name = "HashSet"
	}
	return name + "(" + joinPartitions(list, ", ") + ")"
}

// partitionsInZooKeeper lists the partitions of the topics asked for, or of all topics.
func partitionsInZooKeeper(ctx context.Context, zk *zkstate.Client, asked []plan.Partition) (plan.Assignment, error) {
	topics := map[string]bool{}
	for _, p := range asked {
		if !strings.Contains(p.Topic, "/") {
			topics[p.Topic] = true
		}
	}
	if asked == nil {
		r, err := zk.One(ctx, zkstate.Children(zkstate.TopicsPath))
		if err != nil && !errors.Is(err, zkstate.ErrNoNode) {
			return nil, err
		}
		for _, name := range r.Children {
			topics[name] = true
		}
	}
	door := &reassignmentByZooKeeper{zk}
	found, _, err := door.replicas(sortedKeys(topics))
	return found, err
}
