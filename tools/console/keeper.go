package console

import (
	"context"
	"sync"
	"time"

	"barnabas/admin/cluster"
)

// keeper keeps what one look does not tell: what has changed (events.go) and how lag went (history.go). It looks every ten seconds while somebody has been here within the hour, and what pages
// read anyway counts too; the rest of the time nothing is asked, and history has a gap.
type keeper struct {
	mu      sync.Mutex
	last    time.Time // when somebody was here
	running bool
	seen    *cluster.Snapshot
	events  events
	lags    history
	pace    cluster.Pace // of the moves under way
}

const (
	keepPace  = 10 * time.Second
	keepAfter = time.Hour
)

func (k *keeper) init() { k.lags.init() }

func (k *keeper) visited() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = time.Now()
}

// saw compares a snapshot with the one before it.
func (k *keeper) saw(s *cluster.Snapshot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen != nil {
		for _, e := range changes(k.seen, s) {
			k.events.add(e)
		}
	}
	k.seen = s
	if len(s.Moves) == 0 {
		k.pace = cluster.Pace{}
		return
	}
	left := int64(0)
	for _, bytes := range cluster.BytesLeft(storedOf(s), s.Moves) {
		left += bytes
	}
	k.pace.See(s.Taken, left)
}

// progress is how fast moves go, by bytes a second, and how long they will take; 0 and "" where that cannot be said.
func (k *keeper) progress() (rate int64, remaining string, stalled bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if left, known := k.pace.Remaining(); known {
		remaining = left.String()
	}
	return int64(k.pace.Rate()), remaining, k.pace.Stalled()
}

// measured notes the lags of all groups.
func (k *keeper) measured(g *groupsPicture) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lags.note(g)
}

// did notes what somebody did here.
func (k *keeper) did(e event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events.add(e)
}

// recent are the last events, the newest first.
func (k *keeper) recent(most int) []event {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.events.recent(most)
}

// lagOf is how the lag of a group went, and of one of its topics; "" is all of them.
func (k *keeper) lagOf(group, topic string) []sample {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lags.of(group, topic)
}

// startKeeper begins to look regularly, unless that goes on already.
func (c *Console) startKeeper() {
	c.keeper.mu.Lock()
	defer c.keeper.mu.Unlock()
	if !c.keeper.running {
		c.keeper.running = c.crew.start(c.keep)
	}
}

// rests tells whether nobody has been here for long, and then lets another keeper begin.
func (k *keeper) rests() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.last) > keepAfter {
		k.running = false
	}
	return !k.running
}

func (c *Console) keep() {
	pace := time.NewTicker(keepPace)
	defer pace.Stop()
	for !c.keeper.rests() {
		ctx, cancel := context.WithTimeout(c.running, readTime)
		// What fails shows on the pages that are looked at.
		_, _ = c.snapshot(ctx, keepPace)
		_, _ = c.allGroups(ctx, keepPace)
		cancel()
		select {
		case <-pace.C:
		case <-c.running.Done():
			return
		}
	}
}
