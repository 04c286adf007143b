package cluster

import (
	"context"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/plan"
)

// ElectionType is which leader is elected, as the protocol numbers it (KIP-460).
type ElectionType int8

// ElectPreferred makes the first replica leader where it is in sync; ElectUnclean makes another leader where no replica in sync is alive, and what that one lacks is lost.
const (
	ElectPreferred ElectionType = 0
	ElectUnclean   ElectionType = 1
)

func (e ElectionType) String() string {
	if e == ElectUnclean {
		return "UNCLEAN"
	}
	return "PREFERRED"
}

// Elect asks the controller to elect leaders: nil partitions are all. A partition that is not answered for needed nothing.
func (c *Cluster) Elect(ctx context.Context, kind ElectionType, partitions []plan.Partition) (map[plan.Partition]error, error) {
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
