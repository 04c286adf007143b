package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/fetcher"
	"barnabas/broker/partition"
)

// following is a fetcher of the product with the network between it and its leader. Fetch sessions are refused by the
// leader's side here, so every fetch is a full one.
type following struct {
	n      *node
	leader int32
	f      *fetcher.Driven
	out    bool
	turn   int
}

const (
	fetchTimeout = 700 * time.Millisecond
	fetchPause   = 60 * time.Millisecond // a fetch that found nothing waits at the leader
)

var errNoAnswer = errors.New("no answer")

// followings is a broker as its partitions see it: who fetches for them.
type followings broker

// Add implements partition.Fetchers.
func (fs *followings) Add(from []partition.FetchFrom) {
	b := (*broker)(fs)
	for _, f := range from {
		for _, id := range sortedKeys(b.follows) {
			if id != f.Leader.ID {
				b.follows[id].f.Remove([]commitlog.TopicPartition{f.Partition.TP()})
			}
		}
		fo := b.follows[f.Leader.ID]
		if fo == nil {
			d, err := fetcher.NewDriven(fetcher.Config{
				BrokerID: b.n.id, BrokerEpoch: func() int64 { return b.epoch }, IBP: b.n.s.ibp.String(), PartitionMax: 2 << 10, MaxBytes: 8 << 10,
				Backoff: 100 * time.Millisecond, Log: b.n.s.logger(b.n), Now: b.n.s.wallClock,
			}, f.Leader)
			if err != nil {
				panic(err)
			}
			fo = &following{n: b.n, leader: f.Leader.ID, f: d}
			b.follows[f.Leader.ID] = fo
		}
		b.n.s.plants.follows(f)
		fo.f.Add([]partition.FetchFrom{f})
		b.n.later(0, fo.next)
	}
}

// Remove implements partition.Fetchers.
func (fs *followings) Remove(tps []commitlog.TopicPartition) {
	for _, id := range sortedKeys(fs.follows) {
		fs.follows[id].f.Remove(tps)
	}
}

func sortedKeys[V any](m map[int32]V) []int32 {
	keys := make([]int32, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// next asks the leader, if there is something to ask.
func (f *following) next() {
	if f.out || f.n.broker.failed {
		return
	}
	req, sleep := f.f.Next()
	f.turn++
	mine := f.turn
	if req == nil {
		if sleep >= 0 {
			f.n.later(max(sleep, time.Millisecond), func() {
				if f.turn == mine {
					f.next()
				}
			})
		}
		return
	}
	f.out = true
	life := f.n.life
	call(f.n, f.n.s.nodes[f.leader-1], fetchTimeout, func(target *node, answer func(kmsg.Response)) {
		if fetch, ok := req.(*kmsg.FetchRequest); ok && fetch.Version < 15 && f.n.life != life {
			return // the connection died with its process; only from version 15 on does a fetch itself say who sent it
		}
		if resp := target.broker.serve(req); resp != nil {
			answer(resp)
		}
	}, func(resp kmsg.Response) {
		f.out = false
		f.n.s.plants.answer(f, req, resp)
		if resp == nil {
			f.f.Answer(nil, errNoAnswer)
		} else {
			f.f.Answer(resp, nil)
		}
		f.n.broker.afterwards()
		if r, ok := resp.(*kmsg.FetchResponse); ok && len(r.Topics) > 0 && !anyNews(r) {
			f.n.later(fetchPause, f.next)
			return
		}
		f.n.later(time.Millisecond, f.next)
	})
}

func anyNews(r *kmsg.FetchResponse) bool {
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			p := &r.Topics[i].Partitions[j]
			if len(p.RecordBatches) > 0 || p.ErrorCode != 0 || p.DivergingEpoch.EndOffset >= 0 {
				return true
			}
		}
	}
	return false
}

// serve answers what followers ask; nil: not registered yet.
func (b *broker) serve(req kmsg.Request) kmsg.Response {
	if b.epoch == 0 || b.logs == nil || b.failed {
		return nil
	}
	defer b.afterwards()
	switch req := req.(type) {
	case *kmsg.FetchRequest:
		return b.serveFetch(req)
	case *kmsg.OffsetForLeaderEpochRequest:
		return b.serveEpochs(req)
	case *kmsg.ListOffsetsRequest:
		return b.serveOffsets(req)
	}
	return nil
}

func (b *broker) serveFetch(req *kmsg.FetchRequest) kmsg.Response {
	q := partition.FetchRequest{ReplicaID: req.ReplicaID, ReplicaEpoch: -1, Version: req.Version, MinBytes: 0, MaxBytes: req.MaxBytes}
	if req.Version >= 15 {
		q.ReplicaID, q.ReplicaEpoch = req.ReplicaState.ID, req.ReplicaState.Epoch
	}
	for _, t := range req.Topics {
		name, known := t.Topic, true
		if req.Version >= 13 {
			name, known = b.names[t.TopicID]
		}
		for _, p := range t.Partitions {
			ask := partition.FetchPartition{Topic: name, TopicID: t.TopicID, Partition: p.Partition, FetchOffset: p.FetchOffset, LogStartOffset: p.LogStartOffset,
				MaxBytes: p.PartitionMaxBytes, CurrentLeaderEpoch: p.CurrentLeaderEpoch, LastFetchedEpoch: p.LastFetchedEpoch}
			if !known {
				ask.Err = kerr.UnknownTopicID
			}
			q.Partitions = append(q.Partitions, ask)
		}
	}
	b.n.s.plants.fetch(&q)
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	b.replicas.Fetch(&q, func(results []partition.FetchResult) {
		for i := range results {
			r := &results[i]
			records, err := r.Records.ReadAll()
			if err != nil {
				r.Err = kerr.KafkaStorageError
			}
			r.Records.Release()
			t := kmsg.NewFetchResponseTopic()
			t.Topic, t.TopicID = r.Topic, r.TopicID
			p := kmsg.NewFetchResponseTopicPartition()
			p.Partition, p.ErrorCode, p.HighWatermark, p.LastStableOffset, p.LogStartOffset = r.Partition, codeOf(r.Err), r.HighWatermark, r.LastStableOffset, r.LogStartOffset
			p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = r.DivergingEpoch, r.DivergingEndOffset
			p.RecordBatches = records
			t.Partitions = append(t.Partitions, p)
			resp.Topics = append(resp.Topics, t)
		}
	})
	return resp
}

func (b *broker) serveEpochs(req *kmsg.OffsetForLeaderEpochRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for _, t := range req.Topics {
		to := kmsg.OffsetForLeaderEpochResponseTopic{Topic: t.Topic}
		for _, q := range t.Partitions {
			p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			current := q.CurrentLeaderEpoch
			b.n.s.plants.fence(&current)
			epoch, end, err := b.replicas.OffsetForLeaderEpoch(t.Topic, q.Partition, current, q.LeaderEpoch)
			p.Partition, p.ErrorCode, p.LeaderEpoch, p.EndOffset = q.Partition, codeOf(err), epoch, end
			to.Partitions = append(to.Partitions, p)
		}
		resp.Topics = append(resp.Topics, to)
	}
	return resp
}

func (b *broker) serveOffsets(req *kmsg.ListOffsetsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, t := range req.Topics {
		to := kmsg.ListOffsetsResponseTopic{Topic: t.Topic}
		for _, q := range t.Partitions {
			p := kmsg.NewListOffsetsResponseTopicPartition()
			ts, offset, epoch, err := b.replicas.ListOffset(t.Topic, q.Partition, q.Timestamp, false, req.ReplicaID, q.CurrentLeaderEpoch, req.Version)
			p.Partition, p.ErrorCode, p.Timestamp, p.Offset, p.LeaderEpoch = q.Partition, codeOf(err), ts, offset, epoch
			to.Partitions = append(to.Partitions, p)
		}
		resp.Topics = append(resp.Topics, to)
	}
	return resp
}
