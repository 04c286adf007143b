package controller

import (
	"cmp"
	"slices"
)

// sortedKeys is the only way in which the core walks a map whose order could show in an effect.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func sortedPartitions[V any](m map[TopicPartition]V) []TopicPartition {
	keys := make([]TopicPartition, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, comparePartitions)
	return keys
}

func sortedStrings(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return names
}
