package plan

import "slices"

// counts says how many units, replicas or leaders, each broker has, of each topic and in all.
type counts struct {
	total  map[int32]int
	topics map[string]map[int32]int
}

func newCounts() counts { return counts{map[int32]int{}, map[string]map[int32]int{}} }

func (c counts) add(topic string, broker int32) {
	if c.topics[topic] == nil {
		c.topics[topic] = map[int32]int{}
	}
	c.total[broker]++
	c.topics[topic][broker]++
}

func allOf(replicas []int32) []int32   { return replicas }
func firstOf(replicas []int32) []int32 { return replicas[:1] }

// expecting adds what will come of partitions that are planned later: what is on a broker that stays is taken to stay there, and what has to move to go where there is least.
func (c counts) expecting(later []Placed, brokers []Broker, units func([]int32) []int32) counts {
	out := newCounts()
	for broker, n := range c.total {
		out.total[broker] = n
	}
	for topic, of := range c.topics {
		out.topics[topic] = map[int32]int{}
		for broker, n := range of {
			out.topics[topic][broker] = n
		}
	}
	homeless := 0
	for _, p := range later {
		for _, id := range units(p.Replicas) {
			if slices.ContainsFunc(brokers, func(b Broker) bool { return b.ID == id }) {
				out.add(p.Topic, id)
			} else {
				homeless++
			}
		}
	}
	for range homeless { // all of one topic
		topic := later[0].Topic
		least := brokers[0].ID
		for _, b := range brokers {
			if out.topics[topic][b.ID] < out.topics[topic][least] {
				least = b.ID
			}
		}
		out.add(topic, least)
	}
	return out
}
