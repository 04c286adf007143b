// Package admin is what the administration of a cluster means in ZooKeeper mode, decided once: creating topics,
// enlarging them, marking them for deletion, changing and describing configurations and quotas. The broker's API
// handlers, the tools under --zookeeper and the controller (which assigns replicas) all use it.
//
// It writes what Kafka writes, in Kafka's order: a topic's configuration before its assignment, because the
// assignment is what the controller watches; a configuration before the notification that makes brokers read it.
// Errors are, or wrap, franz-go's kerr errors, with the text that Kafka 3.9 gives in ZooKeeper mode.
package admin
