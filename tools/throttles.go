package tools

import (
	"cmp"
	"maps"
	"slices"

	"barnabas/admin/cluster"
)

// The settings with which replication is held back while partitions move (KIP-73, KIP-113).
const (
	leaderThrottleRate       = cluster.LeaderThrottleRate
	followerThrottleRate     = cluster.FollowerThrottleRate
	logDirThrottleRate       = cluster.LogDirThrottleRate
	leaderThrottleReplicas   = cluster.LeaderThrottleReplicas
	followerThrottleReplicas = cluster.FollowerThrottleReplicas
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := slices.Collect(maps.Keys(m))
	slices.Sort(keys)
	return keys
}
