package tools

// commandsOfClasses names the tools of Java's main classes, which scripts run by kafka-run-class.sh: by the names that they had while they were Scala, and by those that they have since.
var commandsOfClasses = map[string]string{
	"kafka.admin.TopicCommand":                                   "kafka-topics",
	"org.apache.kafka.tools.TopicCommand":                        "kafka-topics",
	"kafka.admin.ConfigCommand":                                  "kafka-configs",
	"kafka.admin.ReassignPartitionsCommand":                      "kafka-reassign-partitions",
	"org.apache.kafka.tools.reassign.ReassignPartitionsCommand":  "kafka-reassign-partitions",
	"kafka.admin.LeaderElectionCommand":                          "kafka-leader-election",
	"org.apache.kafka.tools.LeaderElectionCommand":               "kafka-leader-election",
	"kafka.admin.PreferredReplicaLeaderElectionCommand":          "kafka-preferred-replica-election",
	"kafka.admin.DeleteRecordsCommand":                           "kafka-delete-records",
	"org.apache.kafka.tools.DeleteRecordsCommand":                "kafka-delete-records",
	"kafka.admin.LogDirsCommand":                                 "kafka-log-dirs",
	"org.apache.kafka.tools.LogDirsCommand":                      "kafka-log-dirs",
	"kafka.tools.ClusterTool":                                    "kafka-cluster",
	"org.apache.kafka.tools.ClusterTool":                         "kafka-cluster",
	"kafka.admin.ConsumerGroupCommand":                           "kafka-consumer-groups",
	"org.apache.kafka.tools.consumer.group.ConsumerGroupCommand": "kafka-consumer-groups",
	"kafka.admin.BrokerApiVersionsCommand":                       "kafka-broker-api-versions",
	"kafka.tools.GetOffsetShell":                                 "kafka-get-offsets",
	"org.apache.kafka.tools.GetOffsetShell":                      "kafka-get-offsets",
	"kafka.tools.ConsoleProducer":                                "kafka-console-producer",
	"org.apache.kafka.tools.ConsoleProducer":                     "kafka-console-producer",
	"kafka.tools.ConsoleConsumer":                                "kafka-console-consumer",
	"org.apache.kafka.tools.consumer.ConsoleConsumer":            "kafka-console-consumer",
	"org.apache.kafka.tools.ProducerPerformance":                 "kafka-producer-perf-test",
	"org.apache.kafka.tools.VerifiableProducer":                  "kafka-verifiable-producer",
	"org.apache.kafka.tools.TransactionsCommand":                 "kafka-transactions",
	"org.apache.kafka.tools.VerifiableConsumer":                  "kafka-verifiable-consumer",
	"kafka.tools.ConsumerPerformance":                            "kafka-consumer-perf-test",
	"org.apache.kafka.tools.ConsumerPerformance":                 "kafka-consumer-perf-test",
	"kafka.tools.EndToEndLatency":                                "kafka-e2e-latency",
	"org.apache.kafka.tools.EndToEndLatency":                     "kafka-e2e-latency",
	"kafka.tools.ReplicaVerificationTool":                        "kafka-replica-verification",
	"org.apache.kafka.tools.ReplicaVerificationTool":             "kafka-replica-verification",
	"kafka.tools.DumpLogSegments":                                "kafka-dump-log",
	"org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka":   "zookeeper-shell",
	"org.apache.zookeeper.ZooKeeperMain":                         "zookeeper-shell",
}

// CommandOfClass names the tool that a Java main class stands for, "" for a class that is not known.
func CommandOfClass(class string) string { return commandsOfClasses[class] }
