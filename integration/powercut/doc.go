// Package powercut shows on real processes and a real file system the two promises that Barnabas makes beyond Apache Kafka: what the last replica in sync has acknowledged outlives its power,
// and a follower that came back shorter than it was is not taken back on what it had before. Each scenario is played by Apache Kafka 3.9.1 too, which loses acknowledged records in it.
package powercut
