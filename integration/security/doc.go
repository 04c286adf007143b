// Package security asks whether clients and brokers that encrypt and authenticate find Barnabas as they find Apache Kafka: the
// consoles, librdkafka and sarama, clusters of both kinds of brokers, and strangers who do not keep to the exchange.
package security
