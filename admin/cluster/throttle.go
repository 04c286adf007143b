package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/plan"
)

// ThrottledReplicas are the values of a topic's two settings: PARTITION:BROKER of the replicas that send and of those that receive. "" takes a setting back.
type ThrottledReplicas struct{ Leaders, Followers string }

// Throttling says which replicas and which brokers a throttle is for.
type Throttling struct {
	Topics  map[string]ThrottledReplicas
	Brokers []int32
}

// ThrottlingOf works out what a throttle is for: all that is moving already, and what is about to. Any of a partition's present replicas may have to send, since the leader may change.
func ThrottlingOf(active Moves, targets, now plan.Assignment) Throttling {
	type move struct{ sources, destinations []int32 }
	moves := map[plan.Partition]move{}
	for p, m := range active {
		moves[p] = move{plan.Without(m.Replicas, m.Adding), m.Adding}
	}
	for p, replicas := range targets {
		sources := now[p]
		if m, ok := moves[p]; ok {
			sources = m.sources
		}
		moves[p] = move{sources, plan.Without(replicas, sources)}
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
	t := Throttling{Topics: map[string]ThrottledReplicas{}, Brokers: slices.Sorted(maps.Keys(brokers))}
	for topic := range leaders {
		t.Topics[topic] = ThrottledReplicas{sortedList(leaders[topic]), sortedList(followers[topic])}
	}
	return t
}

func sortedList(items []string) string {
	slices.Sort(items)
	return strings.Join(slices.Compact(items), ",")
}

// SetThrottledReplicas tells topics which of their replicas are held back.
func (c *Cluster) SetThrottledReplicas(ctx context.Context, throttles map[string]ThrottledReplicas) error {
	var resources []kmsg.IncrementalAlterConfigsRequestResource
	for _, topic := range slices.Sorted(maps.Keys(throttles)) {
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		r.Configs = append(r.Configs, setOrTakeBack(LeaderThrottleReplicas, throttles[topic].Leaders), setOrTakeBack(FollowerThrottleReplicas, throttles[topic].Followers))
		resources = append(resources, r)
	}
	return c.AlterConfigs(ctx, false, resources...)
}

// SetRates sets throttles of brokers; a value "" takes one back. Brokers that are not registered are left out and returned: only a broker itself takes its settings.
func (c *Cluster) SetRates(ctx context.Context, brokers []int32, rates map[string]string) (unreachable []int32, err error) {
	alive, _, err := c.Brokers(ctx)
	if err != nil {
		return nil, err
	}
	var resources []kmsg.IncrementalAlterConfigsRequestResource
	for _, id := range brokers {
		if !slices.ContainsFunc(alive, func(b Broker) bool { return b.ID == id }) {
			unreachable = append(unreachable, id)
			continue
		}
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(id))
		for _, key := range slices.Sorted(maps.Keys(rates)) {
			r.Configs = append(r.Configs, setOrTakeBack(key, rates[key]))
		}
		resources = append(resources, r)
	}
	return unreachable, c.AlterConfigs(ctx, false, resources...)
}

// setOrTakeBack is one setting to set, or with an empty value to take back.
func setOrTakeBack(key, value string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
	if value == "" {
		return Change(key, nil)
	}
	return Change(key, &value)
}
