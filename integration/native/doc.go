// Package native runs the native tools as programs: what they print is compared with files, on brokers of our own and, from the same files, on Apache Kafka's.
package native
