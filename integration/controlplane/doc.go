// Package controlplane puts Apache Kafka's brokers under Barnabas' controller, and Barnabas' brokers under Kafka's: the
// orders that one gives the other obeys, and the words that one asks the other answers.
package controlplane
