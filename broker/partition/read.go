package partition

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

// bound is up to where a reader may read.
type bound int8

const (
	toHighWatermark bound = iota // consumers
	toLastStable                 // consumers with read_committed
	toLogEnd                     // followers
)

// reader is what decides how a fetch is treated.
type reader struct {
	bound      bound
	leaderOnly bool // this broker must be the leader
	follower   bool // it is a follower of the partition
}

func readerOf(req *FetchRequest) reader {
	if req.ReplicaID >= 0 {
		return reader{bound: toLogEnd, leaderOnly: true, follower: true}
	}
	r := reader{leaderOnly: req.Version < 11} // KIP-392: v11 brought the rack
	if req.ReadCommitted {
		r.bound = toLastStable
	}
	return r
}

// position is the bound with its place, for counting bytes.
func (b bound) position(log *commitlog.Log) commitlog.Position {
	switch b {
	case toLogEnd:
		return log.EndPosition()
	case toLastStable:
		return log.LastStablePosition()
	}
	return log.HighWatermarkPosition()
}

// read is one partition's part of a fetch. maxBytes and oneBatch are what the
// request has left at this point. It returns where in the log the fetch stands.
//
// The four offsets that go into the answer are taken once, before the read: a
// reader never gets records above the high watermark it is told (H42), and an
// append that comes after the follower's fetch began does not keep that follower
// out of sync.
func (p *Partition) read(req *FetchRequest, r reader, in *FetchPartition, out *FetchResult, maxBytes int32, oneBatch, record bool) commitlog.Position {
	p.role.RLock()
	log, err := p.local(in.CurrentLeaderEpoch, r.leaderOnly)
	if err == nil && !in.TopicID.IsZero() {
		if id := log.TopicID(); !id.IsZero() && id != in.TopicID {
			err = kerr.InconsistentTopicID
		}
	}
	if err == nil && r.follower {
		err = p.admitFollower(req, in)
	}
	if err != nil {
		p.role.RUnlock()
		p.refuse(out, err)
		return unknown
	}

	now := p.m.cfg.Now()
	if preferred, ok := p.preferredReplica(req, r, in, log, now); ok {
		out.PreferredReadReplica = preferred
		out.HighWatermark, out.LogStartOffset, out.LastStableOffset = log.HighWatermark(), log.StartOffset(), log.LastStableOffset()
		p.role.RUnlock()
		return unknown
	}

	hw, start, stable, end := log.HighWatermark(), log.StartOffset(), log.LastStableOffset(), log.EndPosition()
	upTo := end.Offset
	switch r.bound {
	case toHighWatermark:
		upTo = hw
	case toLastStable:
		upTo = stable
	}
	if p.held(log, r, req.ReplicaID) {
		upTo = min(upTo, in.FetchOffset)
	}
	found, err := p.readLog(log, in, out, upTo, maxBytes, oneBatch, req.Version)
	if err != nil {
		if errors.Is(err, kerr.OffsetOutOfRange) && p.state.role == roleFollower && !r.follower && in.FetchOffset > end.Offset {
			// The consumer was sent here and is ahead of this follower: it has to go
			// back to the leader, not to reset its position (KIP-392, H39).
			err = kerr.OffsetNotAvailable
		}
		p.role.RUnlock()
		p.refuse(out, err)
		return unknown
	}
	out.HighWatermark, out.LogStartOffset, out.LastStableOffset = hw, start, stable
	if r.bound == toLastStable && out.Records.Length > 0 {
		aborted, err := found.AbortedTransactions(in.FetchOffset, upTo)
		if err != nil {
			p.role.RUnlock()
			out.Records.Release()
			p.refuse(out, err)
			return unknown
		}
		if aborted == nil {
			aborted = []commitlog.AbortedTxn{}
		}
		out.Aborted = aborted
	} else if r.bound == toLastStable {
		out.Aborted = []commitlog.AbortedTxn{}
	}

	var s step
	var broken error
	if record && r.follower && out.DivergingEpoch < 0 {
		position := found.StartPos
		if position.Offset != in.FetchOffset {
			position = commitlog.Position{Offset: in.FetchOffset, SegmentBase: -1}
		}
		minISR := p.minISR()
		p.state.Lock()
		s = p.state.fetched(now, req.ReplicaID, position, in.LogStartOffset, req.ReplicaEpoch, end, minISR)
		broken = p.settle(log, &s)
		p.state.Unlock()
	}
	p.role.RUnlock()
	p.finish(s, broken)
	return found.StartPos
}

// readLog compares epochs if the request asks for it (KIP-595), then reads.
func (p *Partition) readLog(log *commitlog.Log, in *FetchPartition, out *FetchResult, upTo int64, maxBytes int32, oneBatch bool, version int16) (commitlog.ReadResult, error) {
	nowhere := commitlog.ReadResult{StartPos: unknown}
	if in.LastFetchedEpoch >= 0 {
		epoch, endOffset := log.EndOffsetForEpoch(in.LastFetchedEpoch)
		if epoch < 0 || endOffset < 0 {
			return nowhere, kerr.OffsetOutOfRange
		}
		if in.FetchOffset < log.StartOffset() {
			return nowhere, kerr.OffsetOutOfRange
		}
		if epoch < in.LastFetchedEpoch || endOffset < in.FetchOffset {
			out.DivergingEpoch, out.DivergingEndOffset = epoch, endOffset
			return nowhere, nil
		}
	}
	res, err := log.Read(in.FetchOffset, commitlog.ReadOptions{MaxBytes: int(maxBytes), MinOneBatch: oneBatch, UpTo: upTo})
	if err != nil {
		return nowhere, err
	}
	if res.FirstEntryIncomplete && version > 2 {
		// A cut-off batch is of use to nobody since clients can ask for one whole
		// batch whatever its size (KIP-74).
		res.Range.Release()
		return res, nil
	}
	out.Records = res.Range
	return res, nil
}

// admitFollower checks that a fetching replica is one of this partition, and that
// its registration is the present one. Under role.
func (p *Partition) admitFollower(req *FetchRequest, in *FetchPartition) error {
	p.state.Lock()
	defer p.state.Unlock()
	if findRemote(p.state.remotes, req.ReplicaID) < 0 {
		if in.CurrentLeaderEpoch >= 0 {
			return fmt.Errorf("replica %d is not assigned here: %w", req.ReplicaID, kerr.UnknownLeaderEpoch)
		}
		return fmt.Errorf("replica %d is not assigned here: %w", req.ReplicaID, kerr.NotLeaderForPartition)
	}
	if p.state.stale(req.ReplicaID, req.ReplicaEpoch) {
		return fmt.Errorf("replica %d fetched under an old broker epoch: %w", req.ReplicaID, kerr.NotLeaderForPartition)
	}
	return nil
}

// refuse makes out the answer of an error.
func (p *Partition) refuse(out *FetchResult, err error) {
	out.clear(err)
	if errors.Is(err, kerr.NotLeaderForPartition) || errors.Is(err, kerr.FencedLeaderEpoch) {
		out.LeaderID, out.LeaderEpoch = p.leaderHint()
	}
}

// clear sets the fields of an answer without records.
func (out *FetchResult) clear(err error) {
	out.Err = err
	out.HighWatermark, out.LastStableOffset, out.LogStartOffset = None, None, None
	out.Aborted = nil
	out.PreferredReadReplica = None
	out.DivergingEpoch, out.DivergingEndOffset = None, None
	out.LeaderID, out.LeaderEpoch = None, None
}

// preferredReplica asks the selector where a consumer should read (KIP-392).
// Only members of the ISR whose log holds the wanted offset are offered. Under
// role.
func (p *Partition) preferredReplica(req *FetchRequest, r reader, in *FetchPartition, log *commitlog.Log, now time.Time) (int32, bool) {
	if p.m.cfg.Selector == nil || r.follower || r.leaderOnly || p.state.role != roleLeader {
		return None, false
	}
	p.state.Lock()
	c := &p.state.core
	views := []ReplicaView{{ID: c.self, Rack: c.brokers[c.self].Rack, LogEndOffset: log.EndOffset()}}
	for i := range c.remotes {
		f := &c.remotes[i]
		b, alive := c.brokers[f.id]
		if !alive || !c.counts(f.id) || f.end.Offset < in.FetchOffset || f.logStart > in.FetchOffset {
			continue
		}
		views = append(views, ReplicaView{ID: f.id, Rack: b.Rack, LogEndOffset: f.end.Offset, CaughtUpAgoMs: now.Sub(f.caughtUp).Milliseconds()})
	}
	self := c.self
	p.state.Unlock()
	id, ok := p.m.cfg.Selector.Select(Reader{RackID: req.RackID, ClientID: req.ClientID, ClientAddr: req.ClientAddr}, self, views)
	return id, ok && id != self
}
