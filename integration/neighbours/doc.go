// Package neighbours runs the programs that operators keep beside a Kafka coordinated by ZooKeeper: monitors that read its wire and its tree, and managers that write
// znodes behind the brokers' backs. Each is asked the same of a cluster of Barnabas and of one of Apache Kafka, and has to say the same and leave the same.
package neighbours
