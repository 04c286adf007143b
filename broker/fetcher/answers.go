package fetcher

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

// trouble is an error the leader reported for one partition, for the log.
type trouble struct {
	tp  commitlog.TopicPartition
	err error
}

// answerFetch takes the answer to a fetch, and hands out what is to be appended
// and cut. An error of one partition delays that one (H40); an error of the whole
// delays all.
func (c *core) answerFetch(now time.Time, req *fetchRequest, resp *kmsg.FetchResponse, err error) ([]op, []trouble) {
	s := &c.session
	if err != nil {
		s.restart()
		return nil, c.delayAll(now, err)
	}
	switch e := kerr.ErrorForCode(resp.ErrorCode); {
	case e == nil:
	case errors.Is(e, kerr.FetchSessionIDNotFound):
		s.lost()
		return nil, nil
	case errors.Is(e, kerr.InvalidFetchSessionEpoch):
		s.restart()
		return nil, nil
	default:
		s.restart()
		return nil, c.delayAll(now, e)
	}
	if req.req.Version >= 7 {
		defer s.answered(resp.SessionID)
	}

	names := map[commitlog.TopicID]string{}
	if resp.Version >= 13 {
		for tp, a := range s.sent {
			names[a.id] = tp.Topic
		}
	}
	var ops []op
	var bad []trouble
	for i := range resp.Topics {
		t := &resp.Topics[i]
		topic := t.Topic
		if resp.Version >= 13 {
			topic = names[t.TopicID]
		}
		for j := range t.Partitions {
			o, tr := c.answerPartition(now, commitlog.TopicPartition{Topic: topic, Partition: t.Partitions[j].Partition}, &t.Partitions[j])
			if o != nil {
				ops = append(ops, *o)
			}
			if tr != nil {
				bad = append(bad, *tr)
			}
		}
	}
	return ops, bad
}

func (c *core) delayAll(now time.Time, err error) []trouble {
	var bad []trouble
	for _, p := range c.inTurn((*part).ready) {
		c.delay(now, p)
		bad = append(bad, trouble{p.tp, err})
	}
	return bad
}

// answerPartition takes one partition's part of a fetch answer.
func (c *core) answerPartition(now time.Time, tp commitlog.TopicPartition, got *kmsg.FetchResponseTopicPartition) (*op, *trouble) {
	p := c.parts[tp]
	asked, in := c.session.sent[tp]
	if p == nil || !in || asked.epoch != p.leaderEpoch || asked.offset != p.offset || !p.ready() {
		return nil, nil // asked in another life
	}
	err := kerr.ErrorForCode(got.ErrorCode)
	switch {
	case err == nil && c.cutByFetch && got.DivergingEpoch.EndOffset >= 0:
		return &op{part: p, epoch: p.leaderEpoch, kind: cutByEpoch, leaderFound: got.DivergingEpoch.Epoch, leaderEnd: got.DivergingEpoch.EndOffset}, nil
	case err == nil:
		p.lag = max(0, got.HighWatermark-p.offset)
		return &op{part: p, epoch: p.leaderEpoch, kind: appendRecords, offset: p.offset, fetched: partition.Fetched{
			LeaderEpoch: p.leaderEpoch, Offset: p.offset, Records: got.RecordBatches,
			HighWatermark: got.HighWatermark, LogStartOffset: got.LogStartOffset,
		}}, nil
	case errors.Is(err, kerr.OffsetOutOfRange):
		p.state = locatingEnd
		c.touch(p)
		return nil, &trouble{tp, err}
	}
	return nil, c.refused(now, p, err)
}

// refused handles an error that time may heal. A fenced follower will be told of
// the new epoch; asking before is of no use, but a long delay costs little and
// does not depend on it.
func (c *core) refused(now time.Time, p *part, err error) *trouble {
	if errors.Is(err, kerr.FencedLeaderEpoch) {
		p.failures = max(p.failures, 4)
	}
	c.delay(now, p)
	return &trouble{p.tp, err}
}

// epochRequest asks where the latest epochs of the given logs end at the leader.
func (c *core) epochRequest(ps []*part) *kmsg.OffsetForLeaderEpochRequest {
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.Version = c.versions.epochs
	req.ReplicaID = c.self
	for _, p := range ps {
		n := len(req.Topics)
		if n == 0 || req.Topics[n-1].Topic != p.tp.Topic {
			t := kmsg.NewOffsetForLeaderEpochRequestTopic()
			t.Topic = p.tp.Topic
			req.Topics = append(req.Topics, t)
			n++
		}
		q := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		q.Partition = p.tp.Partition
		q.CurrentLeaderEpoch = p.leaderEpoch
		q.LeaderEpoch = p.lastEpoch
		req.Topics[n-1].Partitions = append(req.Topics[n-1].Partitions, q)
	}
	return req
}

// answerEpochs takes the answer.
func (c *core) answerEpochs(now time.Time, req *kmsg.OffsetForLeaderEpochRequest, resp *kmsg.OffsetForLeaderEpochResponse, err error) ([]op, []trouble) {
	type key struct{ epoch, last int32 }
	sent := map[commitlog.TopicPartition]key{}
	for i := range req.Topics {
		for _, q := range req.Topics[i].Partitions {
			sent[commitlog.TopicPartition{Topic: req.Topics[i].Topic, Partition: q.Partition}] = key{q.CurrentLeaderEpoch, q.LeaderEpoch}
		}
	}
	current := func(p *part) bool {
		k, ok := sent[p.tp]
		return ok && p.state == truncating && k == key{p.leaderEpoch, p.lastEpoch}
	}
	var ops []op
	var bad []trouble
	answered := map[commitlog.TopicPartition]bool{}
	if err == nil {
		for i := range resp.Topics {
			for j := range resp.Topics[i].Partitions {
				got := &resp.Topics[i].Partitions[j]
				p := c.parts[commitlog.TopicPartition{Topic: resp.Topics[i].Topic, Partition: got.Partition}]
				if p == nil || !current(p) || answered[p.tp] {
					continue
				}
				answered[p.tp] = true
				if e := kerr.ErrorForCode(got.ErrorCode); e != nil {
					bad = append(bad, *c.refused(now, p, e))
					continue
				}
				ops = append(ops, op{part: p, epoch: p.leaderEpoch, kind: cutByEpoch, offset: p.offset, leaderFound: got.LeaderEpoch, leaderEnd: got.EndOffset})
			}
		}
		err = errNoAnswer
	}
	for _, p := range c.inTurn(current) {
		if !answered[p.tp] {
			bad = append(bad, *c.refused(now, p, err))
		}
	}
	return ops, bad
}

var errNoAnswer = errors.New("the leader's answer leaves the partition out")

// Timestamps of ListOffsets.
const (
	latest   = int64(-1)
	earliest = int64(-2)
)

// offsetsRequest asks for the leader's log ends, or starts.
func (c *core) offsetsRequest(ps []*part, ends bool) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version = c.listOffsets
	req.ReplicaID = c.self
	for _, p := range ps {
		n := len(req.Topics)
		if n == 0 || req.Topics[n-1].Topic != p.tp.Topic {
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = p.tp.Topic
			req.Topics = append(req.Topics, t)
			n++
		}
		q := kmsg.NewListOffsetsRequestTopicPartition()
		q.Partition = p.tp.Partition
		q.CurrentLeaderEpoch = p.leaderEpoch
		q.MaxNumOffsets = 1
		q.Timestamp = earliest
		if ends {
			q.Timestamp = latest
		}
		req.Topics[n-1].Partitions = append(req.Topics[n-1].Partitions, q)
	}
	return req
}

// answerOffsets takes the answer.
//
// When the leader's log ends before the follower's, the follower has what an
// unclean election gave up, and cuts. When the leader's log starts after the
// follower's ends, nothing the follower has is of use, and it begins anew there.
// Else it stays as it is and asks again from its own end.
func (c *core) answerOffsets(now time.Time, req *kmsg.ListOffsetsRequest, ends bool, resp *kmsg.ListOffsetsResponse, err error) ([]op, []trouble) {
	want := locatingStart
	if ends {
		want = locatingEnd
	}
	sent := map[commitlog.TopicPartition]int32{}
	for i := range req.Topics {
		for _, q := range req.Topics[i].Partitions {
			sent[commitlog.TopicPartition{Topic: req.Topics[i].Topic, Partition: q.Partition}] = q.CurrentLeaderEpoch
		}
	}
	current := func(p *part) bool {
		epoch, ok := sent[p.tp]
		return ok && p.state == want && epoch == p.leaderEpoch
	}
	var ops []op
	var bad []trouble
	answered := map[commitlog.TopicPartition]bool{}
	if err == nil {
		for i := range resp.Topics {
			for j := range resp.Topics[i].Partitions {
				got := &resp.Topics[i].Partitions[j]
				p := c.parts[commitlog.TopicPartition{Topic: resp.Topics[i].Topic, Partition: got.Partition}]
				if p == nil || answered[p.tp] || !current(p) {
					continue
				}
				answered[p.tp] = true
				e := kerr.ErrorForCode(got.ErrorCode)
				offset := got.Offset
				if req.Version == 0 && len(got.OldStyleOffsets) > 0 {
					offset = got.OldStyleOffsets[0]
				}
				switch {
				case e != nil:
					bad = append(bad, *c.refused(now, p, e))
				case offset < 0:
					bad = append(bad, *c.refused(now, p, errNoAnswer))
				case ends && offset < p.logEnd:
					ops = append(ops, op{part: p, epoch: p.leaderEpoch, kind: cutAt, offset: offset, finished: true})
				case ends:
					p.state, p.leaderEnd = locatingStart, offset
				case offset > p.logEnd:
					ops = append(ops, op{part: p, epoch: p.leaderEpoch, kind: emptyAt, offset: offset, finished: true})
				default:
					p.state, p.offset = fetching, p.logEnd
					c.delay(now, p) // the leader's answers do not fit together; they may in a while
				}
			}
		}
		err = errNoAnswer
	}
	for _, p := range c.inTurn(current) {
		if !answered[p.tp] {
			bad = append(bad, *c.refused(now, p, err))
		}
	}
	return ops, bad
}
