package cluster

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/plan"
)

// Broker is a registered broker.
type Broker struct {
	ID   int32
	Host string
	Port int32
	Rack string // "" without one
}

// Brokers lists the brokers that are registered, by id, and tells which of them is the controller; -1 is none.
func (c *Cluster) Brokers(ctx context.Context) (list []Broker, controller int32, err error) {
	resp, err := c.metadata(ctx, []kmsg.MetadataRequestTopic{})
	if err != nil {
		return nil, -1, err
	}
	return brokersOf(resp), resp.ControllerID, nil
}

func brokersOf(resp *kmsg.MetadataResponse) []Broker {
	var list []Broker
	for _, b := range resp.Brokers {
		alive := Broker{ID: b.NodeID, Host: b.Host, Port: b.Port}
		if b.Rack != nil {
			alive.Rack = *b.Rack
		}
		list = append(list, alive)
	}
	slices.SortFunc(list, func(a, b Broker) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Replicas tells where the partitions of topics are, and the errors of topics about which nothing can be told.
func (c *Cluster) Replicas(ctx context.Context, topics []string) (found plan.Assignment, failed map[string]error, err error) {
	return replicasBy(ctx, c.client, topics)
}

// replicasBy asks one broker, or whichever a client takes.
func replicasBy(ctx context.Context, via kmsg.Requestor, topics []string) (found plan.Assignment, failed map[string]error, err error) {
	found, failed = plan.Assignment{}, map[string]error{}
	if len(topics) == 0 {
		return found, failed, nil
	}
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, via)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range resp.Topics {
		if t.Topic == nil {
			continue
		}
		if err := Answered(t.ErrorCode, nil); err != nil {
			failed[*t.Topic] = err
			continue
		}
		for _, p := range t.Partitions {
			found[plan.Partition{Topic: *t.Topic, ID: p.Partition}] = p.Replicas
		}
	}
	return found, failed, nil
}
