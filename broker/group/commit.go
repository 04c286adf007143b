package group

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/coordinator"
)

func sortPartitions(list []TopicPartition) {
	slices.SortFunc(list, func(a, b TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
}

// Commit stores offsets and answers when they are committed in the log.
func (c *Core) Commit(nowMs int64, req *CommitRequest, reply func(CommitResult)) {
	g := c.groups[req.Group]
	if g == nil && (req.Generation < 0 || req.Producer != nil) {
		g = newGroup(req.Group, nowMs) // it only keeps its offsets here
		c.groups[g.name] = g
	}
	errs := make([]error, len(req.Offsets))
	fail := func(err error) {
		for i := range errs {
			errs[i] = cmp.Or(errs[i], err)
		}
		c.answer(func() { reply(CommitResult{errs}) })
	}
	if g == nil {
		fail(kerr.IllegalGeneration)
		return
	}
	m, err := g.mayCommit(req)
	switch {
	case err != nil:
		fail(err)
		return
	case g.state == CompletingRebalance && req.Producer == nil:
		fail(kerr.RebalanceInProgress)
		return
	}
	if m != nil && req.Producer == nil {
		c.heard(m, nowMs)
	}
	list, records := c.commits(nowMs, g, req, errs)
	if len(records) == 0 {
		fail(nil)
		return
	}
	c.out.Appends = append(c.out.Appends, &coordinator.Append{Records: records, Producer: req.Producer, Done: func(_, first int64, err error) {
		for i := range list {
			list[i].value.at = first + int64(i)
			list[i].end(g, req.Producer, err == nil)
		}
		fail(commitError(err))
	}})
}

// mayCommit tells who may store offsets: anybody while the group is empty,
// members of the present generation otherwise (H56); a transaction of a client
// before KIP-447 says nothing of membership, and may.
func (g *group) mayCommit(req *CommitRequest) (*member, error) {
	switch {
	case req.Generation < 0 && g.state == Empty:
		return nil, nil
	case req.Generation >= 0 || req.MemberID != "" || req.InstanceID != nil:
		m, err := g.known(req.MemberID, req.InstanceID)
		if err == nil && req.Generation != g.generation {
			err = kerr.IllegalGeneration
		}
		return m, err
	case req.Producer == nil:
		return nil, kerr.UnknownMemberID
	}
	return nil, nil
}

// commitUnderway is one offset of a commit whose append is not over.
type commitUnderway struct {
	tp    TopicPartition
	value *offset
}

func (u *commitUnderway) end(g *group, p *Producer, ok bool) {
	switch {
	case g.state == Dead:
	case p == nil:
		g.end(u.tp, u.value, ok)
	case !ok:
		g.failOpen(p.ID, u.tp, u.value)
	}
}

// commits makes the records of a request, and marks its offsets as underway.
func (c *Core) commits(nowMs int64, g *group, req *CommitRequest, errs []error) ([]commitUnderway, []coordinator.KeyValue) {
	list := make([]commitUnderway, 0, len(req.Offsets))
	records := make([]coordinator.KeyValue, 0, len(req.Offsets))
	for i := range req.Offsets {
		in := &req.Offsets[i]
		if lengthUTF16(in.Metadata) > c.cfg.OffsetMetadataMaxBytes {
			errs[i] = kerr.OffsetMetadataTooLarge
			continue
		}
		v := &offset{offset: in.Offset, leaderEpoch: in.LeaderEpoch, metadata: in.Metadata, commitMs: nowMs, expireMs: NoTime, at: notInLog}
		if in.TimeMs != NoTime {
			v.commitMs = in.TimeMs
		}
		if in.RetentionMs != NoTime {
			v.expireMs = nowMs + in.RetentionMs
		}
		if req.Producer != nil {
			c.beginOpen(g, req.Producer.ID, in.TopicPartition, v)
		} else {
			g.begin(in.TopicPartition, v)
		}
		list = append(list, commitUnderway{in.TopicPartition, v})
		records = append(records, coordinator.KeyValue{Key: offsetKey(g.name, in.TopicPartition), Value: c.cfg.Format.offsetValue(v)})
	}
	return list, records
}

// lengthUTF16 is the length as Kafka counts it.
func lengthUTF16(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// EndTransaction makes the commits of a producer's transaction count, or drops
// them. It is called when the marker is committed in the offsets partition.
func (c *Core) EndTransaction(producerID int64, commit bool) {
	for _, name := range c.open[producerID] {
		if g := c.groups[name]; g != nil {
			g.endOpen(producerID, commit)
		}
	}
	delete(c.open, producerID)
}

func (c *Core) beginOpen(g *group, producer int64, tp TopicPartition, v *offset) {
	g.beginOpen(producer, tp, v)
	if !slices.Contains(c.open[producer], g.name) {
		c.open[producer] = append(c.open[producer], g.name)
	}
}

// FetchOffsets answers with committed offsets, whatever the group is doing.
func (c *Core) FetchOffsets(req *FetchOffsetsRequest, reply func(FetchOffsetsResult)) {
	g := c.groups[req.Group]
	partitions := req.Partitions
	if req.All {
		partitions = nil
		if g != nil {
			partitions = g.sorted(every)
		}
	}
	r := FetchOffsetsResult{Offsets: make([]FetchedOffset, len(partitions))}
	for i, tp := range partitions {
		to := &r.Offsets[i]
		*to = FetchedOffset{TopicPartition: tp, Offset: NoOffset, LeaderEpoch: -1}
		if g == nil {
			continue
		}
		if req.RequireStable && g.unstable(tp) {
			to.Err = kerr.UnstableOffsetCommit
			continue
		}
		if v, found := g.committed[tp]; found {
			to.Offset, to.LeaderEpoch, to.Metadata = v.offset, v.leaderEpoch, v.metadata
		}
	}
	c.answer(func() { reply(r) })
}

// storeError is what members are told when the group's metadata could not be
// written.
func storeError(err error) error {
	switch {
	case isAny(err, kerr.UnknownTopicOrPartition, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend):
		return kerr.CoordinatorNotAvailable
	case isAny(err, kerr.NotLeaderForPartition, kerr.KafkaStorageError):
		return kerr.NotCoordinator
	case isAny(err, kerr.RequestTimedOut):
		return kerr.RebalanceInProgress
	case isAny(err, kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidFetchSize):
		return kerr.UnknownServerError
	}
	return err
}

// commitError is what clients are told when their offsets could not be written.
func commitError(err error) error {
	switch {
	case isAny(err, kerr.UnknownTopicOrPartition, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend):
		return kerr.CoordinatorNotAvailable
	case isAny(err, kerr.NotLeaderForPartition, kerr.KafkaStorageError):
		return kerr.NotCoordinator
	case isAny(err, kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidFetchSize):
		return kerr.InvalidCommitOffsetSize
	}
	return err
}
