package partition

import (
	"errors"
	"fmt"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
)

// ErrStale is returned to a fetcher that acts for a leader epoch which is not
// the present one here: the order that changed it also changed the fetcher, and
// this is a late answer (H04).
var ErrStale = errors.New("the replica no longer follows in this leader epoch")

// FollowerState is where a follower's log stands.
type FollowerState struct {
	Start, End    int64
	HighWatermark int64
	LatestEpoch   int32 // -1: the log knows none
}

// Fetched is what a fetcher brings from the leader.
type Fetched struct {
	LeaderEpoch    int32  // in which it was asked for
	Offset         int64  // that was asked for
	Records        []byte // whole batches
	HighWatermark  int64
	LogStartOffset int64 // of the leader
}

// following returns the log if this replica follows in the given epoch. Under role.
func (p *Partition) following(epoch int32) (*commitlog.Log, error) {
	log, err := p.local(None, false)
	if err != nil {
		return nil, err
	}
	if p.state.role != roleFollower || p.state.leaderEpoch != epoch {
		return nil, ErrStale
	}
	return log, nil
}

// FollowerState returns where the log of a follower stands. The leader takes the offset that is fetched next for what this
// replica has, so with FlushAlways that is on the disk, also what a crash or a former leadership left behind.
func (p *Partition) FollowerState(epoch int32) (FollowerState, error) {
	p.role.RLock()
	defer p.role.RUnlock()
	log, err := p.following(epoch)
	if err != nil {
		return FollowerState{}, err
	}
	s := stateOf(log)
	if p.m.cfg.Flush == FlushAlways && log.RecoveryPoint() < s.End {
		err = log.Flush()
	}
	return s, err
}

func stateOf(log *commitlog.Log) FollowerState {
	s := FollowerState{Start: log.StartOffset(), End: log.EndOffset(), HighWatermark: log.HighWatermark(), LatestEpoch: None}
	if e, ok := log.LatestEpoch(); ok {
		s.LatestEpoch = e
	}
	return s
}

// EndOffsetForEpoch is commitlog.Log.EndOffsetForEpoch of a follower.
func (p *Partition) EndOffsetForEpoch(epoch, asked int32) (found int32, end int64, err error) {
	p.role.RLock()
	defer p.role.RUnlock()
	log, err := p.following(epoch)
	if err != nil {
		return None, None, err
	}
	found, end = log.EndOffsetForEpoch(asked)
	return found, end, nil
}

// AppendFetched appends what came from the leader, then moves the high watermark
// and the log start to where the leader has them, as far as this log reaches.
func (p *Partition) AppendFetched(f Fetched) (FollowerState, error) {
	p.role.RLock()
	s, moved, err := p.appendFetched(f)
	p.role.RUnlock()
	if moved {
		p.consumers.Wake()
	}
	return s, p.report(err)
}

func (p *Partition) appendFetched(f Fetched) (FollowerState, bool, error) {
	log, err := p.following(f.LeaderEpoch)
	if err != nil {
		return FollowerState{}, false, err
	}
	if end := log.EndOffset(); f.Offset != end {
		return stateOf(log), false, fmt.Errorf("fetched from offset %d, the log ends at %d", f.Offset, end)
	}
	if len(f.Records) > 0 {
		if err := p.beginInsideBatch(log, f); err != nil {
			return stateOf(log), false, err
		}
		if _, err := log.AppendAsFollower(f.Records); err != nil {
			return stateOf(log), false, err
		}
		p.countFollowed(len(f.Records))
		if p.m.cfg.Flush == FlushAlways { // the next fetch says that this replica has it
			if err := log.Flush(); err != nil {
				return stateOf(log), false, err
			}
		}
	}
	// The high watermark never falls by an answer: below it everything is
	// committed, whatever a new leader knows yet. It moves after the append, and
	// before the log start, which must not pass it (H09).
	hw := log.HighWatermark()
	moved := false
	if to := followed(f.HighWatermark, log.StartOffset(), log.EndOffset()); to > hw {
		log.SetHighWatermark(to)
		moved = true
	}
	if start := min(f.LogStartOffset, log.HighWatermark()); start > log.StartOffset() {
		if _, err := log.AdvanceStartOffset(start, "leader offset increment"); err != nil {
			return stateOf(log), moved, err
		}
	}
	if err := checkOffsets(log); err != nil {
		return stateOf(log), moved, broken{err}
	}
	return stateOf(log), moved, nil
}

// beginInsideBatch moves a log of which nothing is left at the leader back to the start of the first batch it is to hold.
// After DeleteRecords the leader's log may start inside a batch; a follower that begins there gets the whole batch (BR-034).
// One that ends there with records of its own, perhaps of another history, begins anew: no cut by epoch takes them away,
// since the leader has nothing left to compare them with.
func (p *Partition) beginInsideBatch(log *commitlog.Log, f Fetched) error {
	end := log.EndOffset()
	if max(log.StartOffset(), f.LogStartOffset) < end {
		return nil
	}
	first, _, err := record.NextEntry(f.Records)
	if err != nil {
		return nil // the append says what is wrong
	}
	b, ok := first.Batch() // a message that wraps others is taken as it is: it says its last offset only
	if !ok || b.BaseOffset() >= end || b.LastOffset() < end {
		return nil
	}
	p.role.cutting.Lock()
	defer p.role.cutting.Unlock()
	return log.TruncateFullyAndStartAt(b.BaseOffset(), None)
}

// TruncateTo cuts a follower's log to where the leader's history and its own
// part.
func (p *Partition) TruncateTo(epoch int32, offset int64) (FollowerState, error) {
	return p.cut(epoch, func(log *commitlog.Log) error { return log.TruncateTo(offset) })
}

// TruncateFully empties a follower's log to go on at offset, the leader's log
// start: nothing the follower has is there any more.
func (p *Partition) TruncateFully(epoch int32, offset int64) (FollowerState, error) {
	return p.cut(epoch, func(log *commitlog.Log) error { return log.TruncateFullyAndStartAt(offset, None) })
}

func (p *Partition) cut(epoch int32, do func(*commitlog.Log) error) (FollowerState, error) {
	p.role.RLock()
	log, err := p.following(epoch)
	var s FollowerState
	if err == nil {
		p.role.cutting.Lock()
		err = do(log)
		p.role.cutting.Unlock()
		s = stateOf(log)
		if err == nil {
			if e := checkOffsets(log); e != nil {
				err = broken{e}
			}
		}
	}
	p.role.RUnlock()
	return s, p.report(err)
}

// broken marks an error as a violated invariant.
type broken struct{ error }

// report takes a partition with a violated invariant offline.
func (p *Partition) report(err error) error {
	var b broken
	if errors.As(err, &b) {
		p.m.breakdown(p, b.error)
	}
	return err
}
