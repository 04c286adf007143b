package partition

import (
	"slices"
	"time"

	"barnabas/broker/commitlog"
)

// The high watermark of a leader is the smallest log end among
//
//   - the leader itself,
//   - every member of the maximal ISR: the committed one plus the replica that an
//     expansion in flight would add. A leader cannot know whether the controller
//     has already committed the expansion; counting the newcomer is the stricter
//     and therefore safe reading (KIP-497, H12). For a shrink in flight the old,
//     larger set counts for the same reason,
//   - every assigned live replica that is caught up although it is not in the
//     ISR. Without it the watermark of an ISR of one would run ahead of a newcomer
//     for ever and it could never join. One that was turned away does not count
//     until it may be asked in again: a broker that shuts down has everything, will
//     not fetch any more, and would hold up whoever waits for acks=all.
//
// A leader that stands alone counts itself by what is on its disk (thin.go).
//
// It does not move while the committed ISR has a member that is not assigned to
// this leader any more. A reassignment is under way, nothing is known of what that
// member holds, and as long as it stands in the ISR a controller that takes over
// may elect it (H19). Kafka leaves such a member out of account. It leaves soon: the
// controller takes it out, or this leader asks for it.
//
// It does not move while the committed ISR is below the enforceable minimum: a
// consumer must not see what fewer replicas hold than the topic asks for (KIP-966).

// advance raises the high watermark as far as the rules allow and tells whether
// it moved. end is the leader's log end. Whatever the rules look at has it called
// when it changes, the set of live brokers and the time among them: who waits for
// the watermark may be the only one who would append.
func (c *core) advance(now time.Time, end commitlog.Position, minISR int32) bool {
	if c.role != roleLeader || c.underMin(minISR) || c.foreign() {
		return false
	}
	to := end
	if c.byDisk() && c.durable.Offset < to.Offset {
		to = c.durable
	}
	for i := range c.remotes {
		r := &c.remotes[i]
		if r.end.Offset < to.Offset && (c.counts(r.id) || c.aboutToJoin(r, end, now)) {
			to = r.end
		}
	}
	if to.Offset <= c.hw.Offset {
		return false
	}
	c.hw = to
	return true
}

// foreign tells that the committed ISR has a member which is not assigned here.
func (c *core) foreign() bool {
	for _, id := range c.isr {
		if id != c.self && findRemote(c.remotes, id) < 0 {
			return true
		}
	}
	return false
}

// counts tells whether a replica is in the maximal ISR.
func (c *core) counts(id int32) bool {
	return slices.Contains(c.isr, id) || (c.inFlight != nil && c.inFlight.adds == id)
}

// maximal is the set that hw and acknowledgements use.
func (c *core) maximal() []int32 {
	if c.inFlight == nil || c.inFlight.adds == None || slices.Contains(c.isr, c.inFlight.adds) {
		return c.isr
	}
	return append(slices.Clone(c.isr), c.inFlight.adds)
}

func (c *core) aboutToJoin(r *remote, end commitlog.Position, now time.Time) bool {
	return !r.turnedAway && c.inSync(r, end.Offset, now) && c.eligible(r)
}

// inSync tells that a follower has everything, or had so recently enough. An
// idle partition's follower stays in sync however long nothing was fetched
// (H15: its end equals the leader's).
func (c *core) inSync(r *remote, end int64, now time.Time) bool {
	if r.end.Offset == end {
		return true
	}
	return !r.caughtUp.IsZero() && now.Sub(r.caughtUp) <= c.maxLag
}

// followed is the high watermark of a follower after a fetch: what the leader
// says, bounded by what is here.
func followed(leaderHW, logStart, end int64) int64 {
	return max(logStart, min(leaderHW, end))
}

// lowWatermark is the smallest log start among the leader and its live
// followers: DeleteRecords has done its work when it has come this far. A live
// follower that was not heard of counts as -1.
func (c *core) lowWatermark(logStart int64) int64 {
	low := logStart
	for i := range c.remotes {
		r := &c.remotes[i]
		if _, alive := c.brokers[r.id]; alive && r.logStart < low {
			low = r.logStart
		}
	}
	return low
}
