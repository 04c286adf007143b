// Package quotas holds clients of a running broker to their limits, and does the same on Apache Kafka.
package quotas
