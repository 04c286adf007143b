// Package interop holds Barnabas against foreign programs: clients of every kind, Apache Kafka's own tools and brokers, and the state that they write.
package interop
