package partition

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"barnabas/broker/commitlog"
)

// Replication throttles (KIP-73). A topic names replicas, as PARTITION:BROKER or
// * for all; a broker has a rate for what it sends as the leader of named
// partitions, and one for what it fetches as a follower of them. Only a replica
// that is behind is held: a member of the ISR at the leader, one that has reached
// the high watermark at the follower, is never slowed, but what it moves counts.
//
// Kafka measures the rate over eleven seconds. Here a balance in bytes grows with
// time; a read takes it below zero by whatever it moved, and the next one waits
// until it is above. The rate over any time is the one that was set, but for a
// burst of burstTime.

// burstTime is how much unused rate is kept. A fetch that waits for a throttle is
// looked at again when its wait ends, half a second by default.
const burstTime = 500 * time.Millisecond

// Throttle is one of the two rates. The zero value lets everything pass.
type Throttle struct {
	mu      sync.Mutex
	rate    float64 // bytes per second; 0: no limit
	balance float64
	at      time.Time // of balance
}

// SetRate sets the rate in bytes per second; 0 ends the limit. An unchanged rate
// keeps its balance.
func (t *Throttle) SetRate(now time.Time, bytesPerSecond int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if rate := float64(bytesPerSecond); rate != t.rate {
		t.rate, t.balance, t.at = rate, 0, now
	}
}

// Take notes that n bytes were moved.
func (t *Throttle) Take(now time.Time, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rate > 0 {
		t.grow(now)
		t.balance -= float64(n)
	}
}

// Wait is how long nothing is to be moved; 0 when it may.
func (t *Throttle) Wait(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rate <= 0 {
		return 0
	}
	t.grow(now)
	if t.balance >= 0 {
		return 0
	}
	return time.Duration(-t.balance / t.rate * float64(time.Second))
}

func (t *Throttle) grow(now time.Time) {
	if d := now.Sub(t.at); d > 0 {
		t.balance = min(t.balance+t.rate*d.Seconds(), t.rate*burstTime.Seconds())
		t.at = now
	}
}

// named tells whether a topic's list of throttled replicas names one.
func named(list string, partition, broker int32) bool {
	if list == "" {
		return false
	}
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "*" {
			return true
		}
		p, b, ok := strings.Cut(item, ":")
		if ok && p == strconv.Itoa(int(partition)) && b == strconv.Itoa(int(broker)) {
			return true
		}
	}
	return false
}

// leaderNamed tells that what followers read of this log counts. Under role.
func (p *Partition) leaderNamed(log *commitlog.Log) bool {
	return named(log.Config().LeaderThrottle, p.tp.Partition, p.m.cfg.BrokerID)
}

// held tells that a follower gets nothing now. Under role.
func (p *Partition) held(log *commitlog.Log, r reader, follower int32) bool {
	if !r.follower || !p.leaderNamed(log) || p.m.LeaderThrottle.Wait(p.m.cfg.Now()) == 0 {
		return false
	}
	p.state.Lock()
	defer p.state.Unlock()
	return !p.state.counts(follower)
}

// FollowerNamed tells that what this replica fetches counts for
// follower.replication.throttled.rate.
func (p *Partition) FollowerNamed() bool {
	p.role.RLock()
	defer p.role.RUnlock()
	return p.role.log != nil && named(p.role.log.Config().FollowerThrottle, p.tp.Partition, p.m.cfg.BrokerID)
}

// charge counts what an answer takes from named partitions to a follower.
func (m *Manager) charge(r reader, results []FetchResult) {
	if !r.follower {
		return
	}
	for i := range results {
		n, p := results[i].Records.Length, results[i].replica
		if n == 0 || p == nil {
			continue
		}
		if log := p.Log(); log != nil && p.leaderNamed(log) {
			m.LeaderThrottle.Take(m.cfg.Now(), n)
		}
	}
}
