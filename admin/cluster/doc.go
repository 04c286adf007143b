// Package cluster is a cluster as its brokers tell of it and let it be changed over Kafka's protocol: topics, groups, offsets, log directories, moves and transactions.
//
// Both faces of the tools, Kafka's commands and the native ones, call it, so that nothing is decided twice. What decides is a pure function over what was read (how far a group is
// behind, where a reset goes, whether a partition is under-replicated); what reads is a method of Cluster. Errors that a broker answered are *AnswerError; IsUnreachable tells those that
// mean that nobody answered.
package cluster
