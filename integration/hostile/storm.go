package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
)

// Target is the broker to attack, and what it has to withstand.
type Target struct {
	Addr string // host:port of a plaintext listener
	PID  int    // of the broker, for its memory and descriptors; 0: they are not looked at

	Duration     time.Duration // of the storm; 0: 10 s
	Malformed    int64         // frames that no client would send: however slow the machine, the storm does not end before there were so many
	MemoryGrowth int64         // bytes of resident memory that it may add; 0: 128 MiB
	Patience     time.Duration // that the healthy client has with one record, there and back; 0: 1 min
	Seed         uint64        // of everything random
}

// Report counts what a storm did.
type Report struct {
	Frames      map[string]int64 // hostile frames sent, by kind of attack
	Connections int64            // opened to attack
	Healthy     int64            // records that went there and back meanwhile
	Slowest     time.Duration
	MemoryStart int64 // resident bytes before the storm
	MemoryPeak  int64
}

// attack is one kind of attacker: it works on connections of its own until ctx is done.
type attack struct {
	name    string
	workers int
	whole   bool // it sends what a client may send
	run     func(a *attacker, ctx context.Context)
}

// attacks are all kinds of attackers.
func attacks() []attack {
	return []attack{
		{"random bytes", 1, false, (*attacker).randomBytes},
		{"frames cut off", 1, false, (*attacker).cutFrames},
		{"impossible lengths", 1, false, (*attacker).impossibleLengths},
		{"impossible counts", 1, false, (*attacker).impossibleCounts},
		{"unknown APIs and versions", 1, false, (*attacker).unknownVersions},
		{"mutated requests", 2, false, (*attacker).mutatedRequests},
		{"broken batches", 1, false, (*attacker).brokenBatches},
		{"compressed bombs", 1, false, (*attacker).bombs},
		{"one byte at a time", 1, false, (*attacker).slowSenders},
		{"never reading", 1, true, (*attacker).neverReading},
		{"connecting and leaving", 1, true, (*attacker).comeAndGo},
	}
}

// Storm attacks the target with every kind of attacker at once. It fails t when the healthy client meets an error or
// runs out of patience, or when memory or descriptors are not bounded.
func Storm(t *testing.T, target Target) Report {
	t.Helper()
	target = withDefaults(target)
	healthy := newHealthyClient(t, target)
	for range 20 { // connections, buffers and caches of ordinary life are there before the storm
		healthy.roundTrip(t)
	}
	process := watch(t, target.PID)
	healthy.slowest = 0

	ctx, cancel := context.WithCancel(lane.Patience(t))
	defer cancel()
	var connections atomic.Int64
	var storm sync.WaitGroup
	kinds := attacks()
	frames := make([]atomic.Int64, len(kinds))
	for i, kind := range kinds {
		for worker := range kind.workers {
			a := &attacker{
				target: target, rnd: rand.New(rand.NewPCG(target.Seed, uint64(i*100+worker))),
				frames: &frames[i], connections: &connections,
			}
			storm.Go(func() { kind.run(a, ctx) })
		}
	}
	malformed := func() (sum int64) {
		for i, kind := range kinds {
			if !kind.whole {
				sum += frames[i].Load()
			}
		}
		return sum
	}
	records := int64(0)
	for began := time.Now(); (time.Since(began) < target.Duration || malformed() < target.Malformed) && ctx.Err() == nil && !t.Failed(); {
		healthy.roundTrip(t)
		records++
	}
	cancel()
	storm.Wait()
	healthy.roundTrip(t)

	report := Report{Frames: make(map[string]int64), Connections: connections.Load(), Healthy: records, Slowest: healthy.slowest}
	report.MemoryStart, report.MemoryPeak = process.memory()
	t.Logf("%d connections in %s; %d healthy records, the slowest %s; memory %d MiB, at most %d MiB",
		report.Connections, target.Duration, report.Healthy, report.Slowest, report.MemoryStart>>20, report.MemoryPeak>>20)
	for i, kind := range kinds {
		report.Frames[kind.name] = frames[i].Load()
		t.Logf("%9d frames: %s", report.Frames[kind.name], kind.name)
		require.Positive(t, report.Frames[kind.name], "an attack that did nothing: %s", kind.name)
	}
	require.GreaterOrEqual(t, malformed(), target.Malformed, "frames that no client would send")
	require.LessOrEqual(t, report.MemoryPeak-report.MemoryStart, target.MemoryGrowth, "bytes of resident memory added by the storm")
	process.requireDescriptorsBack(t)
	return report
}

func withDefaults(target Target) Target {
	if target.Duration == 0 {
		target.Duration = 10 * time.Second
	}
	if target.MemoryGrowth == 0 {
		target.MemoryGrowth = 128 << 20
	}
	if target.Patience == 0 {
		target.Patience = time.Minute
	}
	return target
}

// attacker is one worker of an attack.
type attacker struct {
	target              Target
	rnd                 *rand.Rand
	frames, connections *atomic.Int64
}

// dial opens a connection; nil when the broker refuses, which is its right.
func (a *attacker) dial() net.Conn {
	socket, err := net.DialTimeout("tcp", a.target.Addr, time.Second)
	if err != nil {
		return nil
	}
	a.connections.Add(1)
	_ = socket.SetDeadline(time.Now().Add(2 * time.Second)) // so that no attacker outlives the storm for long
	return socket
}

// oneShot sends bytes on a connection of their own and hears what comes back, for a moment.
func (a *attacker) oneShot(bytes []byte) {
	socket := a.dial()
	if socket == nil {
		return
	}
	defer socket.Close()
	_, _ = socket.Write(bytes) // the broker may have hung up already
	a.frames.Add(1)
	_ = socket.SetReadDeadline(time.Now().Add(time.Duration(a.rnd.IntN(20)) * time.Millisecond))
	_, _ = socket.Read(make([]byte, 512))
}

// session sends frames, one after the other, on one connection for as long as the broker takes them, and reads what
// is answered. It gives the number of frames sent.
func (a *attacker) session(ctx context.Context, next func() []byte) int {
	socket := a.dial()
	if socket == nil {
		return 0
	}
	defer socket.Close()
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		sink := make([]byte, 64<<10)
		for {
			if _, err := socket.Read(sink); err != nil {
				return
			}
		}
	}()
	sent := 0
	for ; sent < 200 && ctx.Err() == nil; sent++ {
		if _, err := socket.Write(next()); err != nil {
			break
		}
		a.frames.Add(1)
	}
	_ = socket.Close()
	<-answers
	return sent
}

// String makes failures of a storm repeatable.
func (target Target) String() string { return fmt.Sprintf("%s, seed %d", target.Addr, target.Seed) }
