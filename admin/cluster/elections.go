package cluster

import (
	"context"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/plan"
)

// Election is which leader is elected, as the protocol numbers it (KIP-460).
type Election int8

// Preferred makes the first replica leader where it is in sync; Unclean makes another leader where no replica in sync is alive, and what that one lacks is lost.
const (
	Preferred Election = 0
	Unclean   Election = 1
)

func (e Election) String() string {
	if e == Unclean {
		return "UNCLEAN"
	}
	return "PREFERRED"
}

// Elect asks the controller to elect leaders: nil partitions are all. A partition that is not answered for needed nothing.
func (c *Cluster) Elect(ctx context.Context, kind Election, partitions []plan.Partition) (map[plan.Partition]error, error) {
	req := kmsg.NewPtrElectLeadersRequest()
	req.ElectionType, req.TimeoutMillis = int8(kind), TimeoutMs
	if partitions != nil {
		req.Topics = []kmsg.ElectLeadersRequestTopic{}
		byTopic := map[string][]int32{}
		for _, p := range partitions {
			byTopic[p.Topic] = append(byTopic[p.Topic], p.ID)
		}
		for _, topic := range slices.Sorted(maps.Keys(byTopic)) {
			t := kmsg.NewElectLeadersRequestTopic()
			t.Topic, t.Partitions = topic, byTopic[topic]
			req.Topics = append(req.Topics, t)
		}
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return nil, err
	}
	if err := Answered(resp.ErrorCode, nil); err != nil {
		return nil, err
	}
	results := map[plan.Partition]error{}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			results[plan.Partition{Topic: t.Topic, ID: p.Partition}] = Answered(p.ErrorCode, p.ErrorMessage)
		}
	}
	return results, nil
}
