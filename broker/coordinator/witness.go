package coordinator

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Witness is what a Topic may be as well. A broker that is cut off, or wakes up, leads in its own eyes while others have elected another. What it appends is refused then, but what it knows
// by heart may have changed; a Witness tells whether it has to be careful.
type Witness interface {
	// Began and Ended say that this broker begins, in whatever epoch, and ends to
	// lead a partition.
	Began(partition int32)
	Ended(partition int32)
	// Leads tells whether nobody else can lead the partition at this moment. It does
	// not block.
	Leads(partition int32) bool
	// Confirm waits until nobody else can have led at some moment after it was
	// called. false: it does not come to that in time, or ctx ends.
	Confirm(ctx context.Context, partition int32) bool
}

// DoCertainly is Do for what may be answered without an append: not from what somebody else may have changed already. It is refused with NOT_COORDINATOR when this broker cannot find out.
func (sh *Shell[C]) DoCertainly(name string, f func(core C, nowMs int64), refuse func(error)) {
	w, careful := sh.topic.(Witness)
	p := sh.PartitionFor(name)
	s := sh.shard(p)
	if !careful || s == nil || !s.loaded.Load() || w.Leads(p) {
		sh.Do(name, f, refuse)
		return
	}
	ask := func() {
		if w.Confirm(s.ctx, p) {
			s.submit(event[C]{run: f, refuse: refuse})
		} else {
			refuse(kerr.NotCoordinator)
		}
	}
	if !sh.start(ask) {
		refuse(kerr.NotCoordinator)
	}
}

// tell tells a witness of a change of leadership.
func (sh *Shell[C]) tell(partition int32, leads bool) {
	switch w, careful := sh.topic.(Witness); {
	case !careful:
	case leads:
		w.Began(partition)
	default:
		w.Ended(partition)
	}
}
