package simulation

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/controller"
)

// plants take guards away at the seams between the product's cores: what flows between them is altered as if the one
// who guards had not looked. The product itself knows nothing of them.
type plants struct {
	s    *Sim
	name string
}

func (s *Sim) planted(names ...string) bool {
	for _, n := range names {
		if s.plants.name == n {
			return true
		}
	}
	return false
}

// order lets orders of the past through.
func (p plants) order(b *broker, controllerEpoch *int32, brokerEpoch *int64) {
	switch p.name {
	case "orders of earlier controllers":
		*controllerEpoch = max(*controllerEpoch, b.obeyed)
	case "orders for earlier registrations":
		*brokerEpoch = -1
	}
}

func (p plants) roles(o *partition.LeaderAndISR) {
	if p.name == "topic ids are not compared" {
		for i := range o.Partitions {
			o.Partitions[i].TopicID = commitlog.TopicID{}
		}
		o.Type = partition.RequestUnknown
	}
}

func (p plants) stops(o *partition.StopReplicas) {
	if p.name == "deletions of earlier leader epochs" {
		for i := range o.Partitions {
			o.Partitions[i].LeaderEpoch = partition.EpochNotGiven
		}
	}
}

// fetch alters what a follower asks of its leader.
func (p plants) fetch(q *partition.FetchRequest) {
	for i := range q.Partitions {
		switch p.name {
		case "fetches are not fenced":
			q.Partitions[i].CurrentLeaderEpoch = -1
		case "followers do not truncate":
			q.Partitions[i].LastFetchedEpoch = -1
		}
	}
}

func (p plants) fence(epoch *int32) {
	if p.name == "fetches are not fenced" {
		*epoch = -1
	}
}

// answer alters what a leader answers its follower.
func (p plants) answer(f *following, req kmsg.Request, resp kmsg.Response) {
	switch r := resp.(type) {
	case *kmsg.OffsetForLeaderEpochResponse:
		if r == nil {
			return
		}
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				e := &r.Topics[i].Partitions[j]
				switch {
				case e.ErrorCode != 0:
				case p.name == "truncation to the high watermark":
					e.LeaderEpoch, e.EndOffset = -1, -1
				case p.name == "epoch lookups without the found epoch":
					e.LeaderEpoch = -1
				case p.name == "followers do not truncate":
					e.LeaderEpoch, e.EndOffset = -1, 1<<40
				}
			}
		}
	case *kmsg.FetchResponse:
		if r == nil || p.name != "the high watermark beside a diverging epoch" {
			return
		}
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				e := &r.Topics[i].Partitions[j]
				if e.DivergingEpoch.EndOffset < 0 {
					continue
				}
				topic := r.Topics[i].Topic
				if r.Version >= 13 {
					topic = f.n.broker.names[r.Topics[i].TopicID]
				}
				if log := f.n.broker.logs.Get(commitlog.TopicPartition{Topic: topic, Partition: e.Partition}); log != nil && e.HighWatermark > log.HighWatermark() {
					log.SetHighWatermark(min(e.HighWatermark, log.EndOffset()))
					f.n.s.inspectPartition(f.n.s.incarnation(controller.TopicPartition{Topic: topic, Partition: e.Partition}))
				}
			}
		}
	}
}
