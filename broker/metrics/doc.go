// Package metrics shows what a broker does, at /metrics for Prometheus.
//
// The names are those that the usual configuration of the JMX exporter
// (kafka-2_0_0.yml) makes of Kafka's MBeans, so that dashboards and alerts made for
// Kafka work on: kafka.server:type=ReplicaManager,name=LeaderCount is
// kafka_server_replicamanager_leadercount, and SomethingPerSec a counter
// ..._something_total. names.go is the whole list; what Kafka measures and this
// broker has not (the idle share of its threads, say) is left out rather than made up.
//
// Nothing is kept for a scrape but the distribution of request times. A Source reads
// the counters that the rooms keep anyway, so what ended with a topic or a partition
// is not shown any more, and what is never scraped costs nothing.
package metrics
