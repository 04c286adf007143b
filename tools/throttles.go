package tools

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// The settings with which replication is held back while partitions move (KIP-73, KIP-113).
const (
	leaderThrottleRate       = cluster.LeaderThrottleRate
	followerThrottleRate     = cluster.FollowerThrottleRate
	logDirThrottleRate       = cluster.LogDirThrottleRate
	leaderThrottleReplicas   = cluster.LeaderThrottleReplicas
	followerThrottleReplicas = cluster.FollowerThrottleReplicas
)

// throttledReplicas are the values of a topic's two settings: PARTITION:BROKER of the replicas that send and of those that receive.
type throttledReplicas struct{ leaders, followers string }

// throttling says which replicas and which brokers a throttle is for.
type throttling struct {
	topics  map[string]throttledReplicas
	brokers []int32
}

// throttlingOf works out what a throttle is for: all that is moving already, and what is about to. Any of a partition's present replicas may have to send, since the leader may change.
func throttlingOf(active map[plan.Partition]moving, targets, now plan.Assignment) throttling {
	type move struct{ sources, destinations []int32 }
	moves := map[plan.Partition]move{}
	for p, m := range active {
		moves[p] = move{without(m.replicas, m.adding), m.adding}
	}
	for p, replicas := range targets {
		sources := now[p]
		if m, ok := moves[p]; ok {
			sources = m.sources
		}
		moves[p] = move{sources, without(replicas, sources)}
	}
	leaders, followers, brokers := map[string][]string{}, map[string][]string{}, map[int32]bool{}
	for p, m := range moves {
		leaders[p.Topic] = slices.Clip(leaders[p.Topic])
		for _, id := range m.sources {
			leaders[p.Topic] = append(leaders[p.Topic], fmt.Sprintf("%d:%d", p.ID, id))
			brokers[id] = true
		}
		for _, id := range m.destinations {
			followers[p.Topic] = append(followers[p.Topic], fmt.Sprintf("%d:%d", p.ID, id))
			brokers[id] = true
		}
	}
	t := throttling{topics: map[string]throttledReplicas{}, brokers: sortedKeys(brokers)}
	for topic := range leaders {
		t.topics[topic] = throttledReplicas{sortedList(leaders[topic]), sortedList(followers[topic])}
	}
	return t
}

func sortedList(items []string) string {
	slices.Sort(items)
	return strings.Join(slices.Compact(items), ",")
}

// without is a list without the items of another.
func without(list, other []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(list), func(id int32) bool { return slices.Contains(other, id) })
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := slices.Collect(maps.Keys(m))
	slices.Sort(keys)
	return keys
}
