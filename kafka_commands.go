package main

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"barnabas/tools"
	"barnabas/tools/dumplog"
	"barnabas/tools/zkshell"
)

// kafkaCommand runs one of the tools that people know from Kafka's bin folder. It gets its arguments unparsed, since their rules are not those of this program's own commands,
// and returns the exit code.
type kafkaCommand func(args []string, stdin io.Reader, stdout, stderr io.Writer) int

func kafkaCommands() []*cli.Command {
	table := []struct {
		name, usage string
		run         kafkaCommand
	}{
		{"kafka-topics", "create, delete, describe or change topics", tools.Topics},
		{"kafka-console-producer", "send lines of standard input", tools.ConsoleProducer},
		{"kafka-console-consumer", "print records", tools.ConsoleConsumer},
		{"kafka-acls", "show and change who may do what", tools.ACLs},
		{"kafka-delegation-tokens", "make, renew, end and show delegation tokens", tools.DelegationTokens},
		{"kafka-configs", "show and change settings of topics, brokers, clients, users and addresses", tools.Configs},
		{"kafka-reassign-partitions", "plan and carry out moves of replicas between brokers", tools.ReassignPartitions},
		{"kafka-leader-election", "elect preferred leaders, or unclean ones", tools.LeaderElection},
		{"kafka-preferred-replica-election", "elect preferred leaders (deprecated)", tools.PreferredReplicaElection},
		{"kafka-delete-records", "delete records below an offset", tools.DeleteRecords},
		{"kafka-log-dirs", "print what is in the log directories of brokers", tools.LogDirs},
		{"kafka-cluster", "print the id of the cluster", tools.Cluster},
		{"kafka-producer-perf-test", "measure how fast records are taken in", tools.ProducerPerf},
		{"kafka-consumer-perf-test", "measure how fast records are given out", tools.ConsumerPerf},
		{"kafka-e2e-latency", "measure how long a record takes from a producer to a consumer", tools.E2ELatency},
		{"kafka-replica-verification", "compare what the replicas of partitions hold", tools.ReplicaVerification},
		{"kafka-verifiable-producer", "send numbers and tell what became of each", tools.VerifiableProducer},
		{"kafka-verifiable-consumer", "consume and tell what happens", tools.VerifiableConsumer},
		{"kafka-consumer-groups", "show, reset and delete consumer groups and their offsets", tools.ConsumerGroups},
		{"kafka-streams-application-reset", "reset a Streams application's offsets and delete its own topics", tools.StreamsReset},
		{"kafka-transactions", "show transactions and producers, find and abort transactions that hang", tools.Transactions},
		{"kafka-get-offsets", "print offsets of partitions", tools.GetOffsets},
		{"kafka-broker-api-versions", "print which APIs each broker serves", tools.BrokerAPIVersions},
		{"kafka-features", "show and change the levels of features, of which there are none with ZooKeeper", tools.Features},
		{"kafka-mirror-maker", "copy topics from one cluster into another", tools.MirrorMaker},
		{"kafka-client-metrics", "show and change which metrics clients push, which needs a cluster without ZooKeeper", tools.ClientMetrics},
		{"kafka-metadata-quorum", "tell of a cluster's controllers where there is no ZooKeeper", tools.MetadataQuorum},
		{"kafka-storage", "show the log directories of a broker", tools.Storage},
		{"kafka-jmx", "tell where a broker's figures are, since it has no JMX", tools.JMX},
		{"kafka-dump-log", "print what segment files hold", func(args []string, _ io.Reader, stdout, stderr io.Writer) int {
			return dumplog.Run(args, stdout, stderr)
		}},
		{"zookeeper-security-migration", "give Kafka's znodes access lists, or take them away", tools.SecurityMigration},
		{"zookeeper-shell", "read and write znodes", zkshell.Run},
	}
	byName := map[string]kafkaCommand{}
	for _, c := range table {
		byName[c.name] = c.run
	}
	table = append(table, struct {
		name, usage string
		run         kafkaCommand
	}{"kafka-run-class", "run the tool that a Java main class of Kafka stands for", func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
		if len(args) == 0 {
			fmt.Fprintln(stdout, "USAGE: kafka-run-class.sh classname [opts]")
			return 1
		}
		run := byName[tools.CommandOfClass(args[0])]
		if run == nil {
			fmt.Fprintf(stderr, "Error: Could not find or load main class %s\n", args[0])
			return 1
		}
		return run(args[1:], stdin, stdout, stderr)
	}})
	var commands []*cli.Command
	for _, c := range table {
		commands = append(commands, &cli.Command{
			Name: c.name, Usage: c.usage, Category: "Kafka's tools", SkipFlagParsing: true, HideHelp: true,
			Action: func(ctx *cli.Context) error {
				if code := c.run(ctx.Args().Slice(), os.Stdin, os.Stdout, os.Stderr); code != 0 {
					return exitCode(code)
				}
				return nil
			},
		})
	}
	return commands
}
