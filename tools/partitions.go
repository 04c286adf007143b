package tools

import (
	"strings"

	"barnabas/admin/plan"
)

// joinPartitions lists partitions as topic-number.
func joinPartitions(list []plan.Partition, separator string) string {
	parts := make([]string, len(list))
	for i, p := range list {
		parts[i] = p.String()
	}
	return strings.Join(parts, separator)
}

// javaList is a list as Java prints it.
func javaList(list []string) string { return "[" + strings.Join(list, ", ") + "]" }

// plural is the ending of a noun that counts n things.
func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// readPartition reads {"topic": ..., "partition": ...}.
func readPartition(j jsonValue) (plan.Partition, error) {
	topic, err := j.need("topic")
	if err != nil {
		return plan.Partition{}, err
	}
	name, err := topic.text()
	if err != nil {
		return plan.Partition{}, err
	}
	number, err := j.need("partition")
	if err != nil {
		return plan.Partition{}, err
	}
	id, err := number.id()
	return plan.Partition{Topic: name, ID: id}, err
}
