package partition

import (
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

// flight is an ISR change that was asked for and not yet answered.
type flight struct {
	serial  int64 // tells answers of this change from those of another
	adds    int32 // the replica an expansion would add; None for a shrink
	want    []ISRMember
	retryAt time.Time // zero: an answer is awaited
	tries   int
}

// Waits between attempts of one change whose answer said nothing certain.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// afterRefusal is how long a leader asks for no expansion after one was refused:
// followers fetch many times a second, and each fetch would ask again.
const afterRefusal = time.Second

// eligible tells whether a replica may be asked into the ISR at all: its broker
// is alive, and the position the leader knows was fetched under the broker's
// present registration (KIP-903; Kafka checks the latter in KRaft mode only).
func (c *core) eligible(r *remote) bool {
	b, alive := c.brokers[r.id]
	if !alive || r.rebooted {
		return false
	}
	return b.Epoch < 0 || r.brokerEpoch < 0 || r.brokerEpoch == b.Epoch
}

// maybeExpand asks for the follower to join when it has reached the high
// watermark and the start of this leader's epoch. The second condition keeps out
// a follower that would lose, as the next leader, what was committed before this
// leader's own high watermark caught up (KAFKA-7128, H11).
func (c *core) maybeExpand(now time.Time, i int) *ISRChange {
	r := &c.remotes[i]
	if c.inFlight != nil || now.Before(c.calmUntil) || slices.Contains(c.isr, r.id) || !c.eligible(r) {
		return nil
	}
	if r.end.Offset < c.hw.Offset || r.end.Offset < c.epochStart {
		return nil
	}
	return c.ask(append(slices.Clone(c.isr), r.id), r.id)
}

// maybeShrink asks for those to leave who have not had everything for too long.
// Members that are not assigned any more leave with them (H19).
func (c *core) maybeShrink(now time.Time, end int64) *ISRChange {
	if c.role != roleLeader || c.inFlight != nil {
		return nil
	}
	keep := make([]int32, 0, len(c.isr))
	for _, id := range c.isr {
		i := findRemote(c.remotes, id)
		if id == c.self || (i >= 0 && c.inSync(&c.remotes[i], end, now)) {
			keep = append(keep, id)
		}
	}
	if len(keep) == len(c.isr) {
		return nil
	}
	return c.ask(keep, None)
}

// expel asks for one member to leave that came back from a restart with less
// than is committed: it must not be elected.
func (c *core) expel(id int32) *ISRChange {
	if c.inFlight != nil || !slices.Contains(c.isr, id) {
		return nil
	}
	keep := slices.DeleteFunc(slices.Clone(c.isr), func(m int32) bool { return m == id })
	return c.ask(keep, None)
}

// ask puts a change in flight. A member is asked for under the registration it fetched under, also when the change is sent again: after a restart that is another (H17).
func (c *core) ask(want []int32, adds int32) *ISRChange {
	c.serials++
	members := make([]ISRMember, len(want))
	for i, id := range want {
		members[i] = ISRMember{ID: id, BrokerEpoch: c.liveEpoch(id)}
		if j := findRemote(c.remotes, id); j >= 0 && id != c.self {
			members[i].BrokerEpoch = c.remotes[j].brokerEpoch
		}
	}
	c.inFlight = &flight{serial: c.serials, adds: adds, want: members}
	return c.request()
}

// request is the change in flight as it is sent.
func (c *core) request() *ISRChange {
	return &ISRChange{
		LeaderID:        c.self,
		LeaderEpoch:     c.leaderEpoch,
		ControllerEpoch: c.controllerEpoch,
		PartitionEpoch:  c.partitionEpoch,
		ISR:             slices.Clone(c.inFlight.want),
		Recovering:      c.recovering,
		serial:          c.inFlight.serial,
		alone:           c.flush != FlushAsKafka && len(c.inFlight.want) == 1 && len(c.remotes) > 0,
	}
}

// changed takes the answer to a change. The change returns to flight, is
// committed, or is given up:
//
//   - a state (one has members): it is the committed one, also when it is not what
//     was asked (the controller may know better)
//   - OPERATION_NOT_ATTEMPTED, INELIGIBLE_REPLICA: certainly not applied, the
//     committed set stands; a fetch a little later asks again (H18)
//   - so it is beside an error, read back after it (H16); a newer leader epoch in
//     it means that this leader was replaced and will be told so
//   - anything else leaves open whether it was applied: the change stays in
//     flight, so that hw and acknowledgements keep using the larger set, and is
//     sent again later. Repeating is safe: who carries it out compares, and an
//     equal state is success
func (c *core) changed(now time.Time, serial int64, got ISRChanged, err error, end commitlog.Position, minISR int32) step {
	f := c.inFlight
	if c.role != roleLeader || f == nil || f.serial != serial {
		return step{}
	}
	var out *ISRChange
	switch {
	case len(got.ISR) > 0 && got.PartitionEpoch >= 0:
		if got.LeaderEpoch != c.leaderEpoch || got.LeaderID != c.self {
			c.retry(now, lastRetry)
			return step{}
		}
		if got.PartitionEpoch < c.partitionEpoch || err != nil && got.PartitionEpoch == c.partitionEpoch {
			// A stale read. The state of before, read back after a lost answer, is one
			// too: a server may not have the write yet (H33). Asked again, the change
			// either happens or meets what stands there.
			c.retry(now, firstRetry)
			return step{}
		}
		c.isr = slices.Clone(got.ISR)
		c.partitionEpoch = got.PartitionEpoch
		c.recovering = got.Recovering
		c.inFlight = nil
		if i := findRemote(c.remotes, f.adds); i >= 0 && c.remotes[i].rebooted {
			// It restarted while the change was on its way, and Apache Kafka's controller does not look at that.
			out = c.expel(f.adds)
		}
	case errors.Is(err, kerr.OperationNotAttempted), errors.Is(err, kerr.IneligibleReplica):
		c.inFlight = nil
		c.calmUntil = now.Add(afterRefusal)
		if i := findRemote(c.remotes, f.adds); i >= 0 {
			c.remotes[i].turnedAway = true
		}
	case errors.Is(err, kerr.FencedLeaderEpoch), errors.Is(err, kerr.InvalidUpdateVersion),
		errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID),
		errors.Is(err, kerr.InvalidRequest), errors.Is(err, kerr.NewLeaderElected):
		// The controller knows something that this leader will be told. Asking
		// slowly meanwhile costs little, and ends the wait if it never tells.
		c.retry(now, lastRetry)
		return step{}
	default:
		c.retry(now, firstRetry)
		return step{}
	}
	return step{highWatermark: c.advance(now, end, minISR), change: out}
}

// retry schedules the change in flight to be sent again.
func (c *core) retry(now time.Time, first time.Duration) {
	wait := first << min(c.inFlight.tries, 10)
	c.inFlight.tries++
	c.inFlight.retryAt = now.Add(min(wait, lastRetry))
}

// due returns the change in flight if it is time to send it again.
func (c *core) due(now time.Time) *ISRChange {
	f := c.inFlight
	if c.role != roleLeader || f == nil || f.retryAt.IsZero() || now.Before(f.retryAt) {
		return nil
	}
	f.retryAt = time.Time{}
	return c.request()
}
