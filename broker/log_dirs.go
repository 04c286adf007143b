package broker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"barnabas/broker/commitlog"
	"barnabas/broker/vfs"
)

// What becomes of a log directory that fails: its replicas go offline, and the controller is told to ask for all of this broker's replicas, as with Kafka (KIP-112). A directory that was only
// full is opened again when there is room, and the controller is told to ask again (H46).
//
// A broker that has no directory left ends, as Kafka's does, unless room would help: to be started again and again on a full disk, as a supervisor would have it, helps nobody, and while
// it waits it still answers for metadata and may be the controller.

const (
	lookForRoom   = time.Second
	stillFull     = time.Minute // between two lines in the log
	lasting       = 10          // a directory that is full again within so many pauses gets one twice as long
	longestPause  = 5 * time.Minute
	reportBackoff = time.Second
	askAgain      = 5 * time.Second
)

// rooms is how patient to be with directories that fill up.
type rooms struct {
	mu     sync.Mutex
	places map[string]*room
}

type room struct {
	pause    time.Duration
	returned time.Time
}

// full notes that a directory is full and tells how long to leave it alone.
func (r *rooms) full(dir string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.placeLocked(dir)
	if p.returned.IsZero() || now.Sub(p.returned) >= lasting*p.pause {
		p.pause = lookForRoom
	} else {
		p.pause = min(2*p.pause, longestPause)
	}
	return p.pause
}

// back notes that a directory came back.
func (r *rooms) back(dir string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.placeLocked(dir).returned = now
}

func (r *rooms) placeLocked(dir string) *room {
	if r.places == nil {
		r.places = map[string]*room{}
	}
	p := r.places[dir]
	if p == nil {
		p = &room{}
		r.places[dir] = p
	}
	return p
}

// dirFailed runs on the goroutine that met the failure, so all that takes time is left to another.
func (b *Broker) dirFailed(dir string, _ error) {
	if b.replicas == nil {
		return // still opening: the replicas are missing from the start
	}
	b.following.Go(func() {
		b.replicas.LogDirFailed(dir)
		b.reportDirs()
		b.attend(dir)
	})
}

// attendFullDirs looks after the directories that were full when they were opened.
func (b *Broker) attendFullDirs() {
	for _, d := range b.logs.Dirs() {
		if d.Full {
			b.following.Go(func() { b.attend(d.Path) })
		}
	}
}

// attend stays with a directory that is offline until it is back or will not come back.
func (b *Broker) attend(dir string) {
	if b.isFull(dir) && b.awaitRoom(dir) {
		return
	}
	b.log.Errorf("log directory %s stays offline until a restart", dir)
	if !slices.ContainsFunc(b.logs.Dirs(), func(d commitlog.DirInfo) bool { return d.Err == nil || d.Full }) {
		b.log.Error("every log directory has failed: this broker can hold nothing and stops")
		b.homeless.close()
	}
}

func (b *Broker) isFull(dir string) bool {
	return slices.ContainsFunc(b.logs.Dirs(), func(d commitlog.DirInfo) bool { return d.Path == dir && d.Full })
}

// awaitRoom brings a directory back when there is room; false when something else turns out to be wrong with it, true also when the broker stops.
func (b *Broker) awaitRoom(dir string) bool {
	now := time.Now()
	pause := b.rooms.full(dir, now)
	b.log.Warnf("log directory %s is full: its replicas are offline until there is room", dir)
	told := now
	for {
		if !waitFor(b.life, pause) {
			return true
		}
		pause = lookForRoom
		err := b.logs.Reopen(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, commitlog.ErrNoRoom) {
			b.log.WithError(err).Errorf("log directory %s was full", dir)
			return false
		}
		if now := time.Now(); now.Sub(told) >= stillFull {
			told = now
			b.log.WithError(err).Warnf("log directory %s is still offline", dir)
		}
	}
	b.rooms.back(dir, time.Now())
	if err := writeMeta(vfs.OS, b.logs.Dirs(), b.identity); err != nil {
		b.log.WithError(err).Warn("storing this broker's identity in a log directory that came back")
	}
	b.replicas.LogDirReturned(dir)
	b.following.Go(func() {
		// While a controller waits for the answer to its order it takes the replicas to be offline. Apache Kafka's does not tell them whom it elects meanwhile, and one that was just deleting
		// their topic did not ask for them.
		if waitFor(b.life, askAgain) {
			b.reportDirs()
		}
	})
	return true
}

// askForOrders has the controller ask for the replicas of this broker.
func (b *Broker) askForOrders() { b.following.Go(b.reportDirs) }

// reportDirs tells the controller that a log directory failed or came back: there is one notification for both, upon which it sends orders for all replicas of this broker and learns from
// the answers which of them work. A new registration tells it as well.
func (b *Broker) reportDirs() {
	for {
		ctx, cancel := context.WithTimeout(b.life, zkReadTimeout)
		err := b.zk.NotifyLogDirs(ctx, b.brokerID)
		cancel()
		if err == nil || b.life.Err() != nil {
			return
		}
		b.log.WithError(err).Warn("telling the controller of a log directory")
		if !waitFor(b.life, reportBackoff) {
			return
		}
	}
}

// waitFor waits; false when ctx ended meanwhile.
func waitFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Homeless is closed when the last log directory has failed: there is nothing left to serve.
func (b *Broker) Homeless() <-chan struct{} { return b.homeless.done }

// ErrHomeless is why a broker ends that has lost every log directory.
var ErrHomeless = errors.New("every log directory has failed")
