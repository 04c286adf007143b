// Package ecosystem runs on Barnabas what stands on Kafka in practice: an application of Kafka Streams, Connect in distributed mode and MirrorMaker 2, all of them Apache Kafka's own programs.
// Processes and brokers are killed meanwhile; what comes out has to be exactly right.
package ecosystem
