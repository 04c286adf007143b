package coordinator

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
)

// sums is a core that adds up what it is given: a number counts when its record is
// committed.
type sums struct {
	epoch  int32
	total  int
	loaded int // records
	gone   bool
	dueMs  int64 // 0: never
	ticked int64
	out    Effects
}

func (c *sums) add(n int, alone bool, reply func(total int, err error)) {
	c.out.Appends = append(c.out.Appends, &Append{
		Records: []KeyValue{{Key: []byte("n"), Value: make([]byte, n)}}, Alone: alone,
		Done: func(_, _ int64, err error) {
			if err == nil {
				c.total += n
			}
			total := c.total
			c.out.Answers = append(c.out.Answers, func() { reply(total, err) })
		},
	})
}

func (c *sums) Tick(nowMs int64) {
	if c.dueMs != 0 && nowMs >= c.dueMs {
		c.dueMs, c.ticked = 0, nowMs
	}
}
func (c *sums) Next() (int64, bool) { return c.dueMs, c.dueMs != 0 }
func (c *sums) Shift(byMs int64)    { c.dueMs += byMs }
func (c *sums) Unload(int64)        { c.gone = true }

type sumsLoader struct{ total, records int }

func (l *sumsLoader) Add(e record.Entry) {
	for r, err := range e.Records(record.Limits{}) {
		if err == nil {
			l.total += len(r.Value)
			l.records++
		}
	}
}

func (l *sumsLoader) Load(core *sums, _ int64) string {
	core.total, core.loaded = l.total, l.records
	return fmt.Sprint(l.records, " numbers")
}

// memory is a topic. While held, appends are not answered.
type memory struct {
	mu      sync.Mutex
	batches map[int32][]record.Batch
	held    bool
	waiting []func()
	largest int           // records of a batch; 0: any
	reading chan struct{} // not nil: Read waits for it
	readErr error         // of the next Read
	writing func()        // called in each Append
}

func (m *memory) Append(p int32, b []byte, _ *commitlog.VerificationGuard, done func(int64, error)) {
	m.mu.Lock()
	if writing := m.writing; writing != nil {
		m.mu.Unlock()
		writing()
		m.mu.Lock()
	}
	if batch := record.Batch(b); m.largest > 0 && int(batch.Count()) > m.largest {
		m.mu.Unlock()
		done(-1, kerr.MessageTooLarge)
		return
	}
	m.batches[p] = append(m.batches[p], b)
	if m.held {
		m.waiting = append(m.waiting, func() { done(0, nil) })
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	done(0, nil)
}

func (m *memory) hold(on bool) {
	m.mu.Lock()
	m.held = on
	waiting := m.waiting
	m.waiting = nil
	m.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}

func (m *memory) Read(ctx context.Context, p int32, each func(record.Entry)) error {
	m.mu.Lock()
	batches, err, reading := m.batches[p], m.readErr, m.reading
	m.readErr = nil
	m.mu.Unlock()
	if reading != nil {
		select {
		case <-reading:
		case <-ctx.Done():
		}
	}
	for _, b := range batches {
		each(record.Entry(b))
	}
	return err
}

func (m *memory) count(p int32) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.batches[p])
}

type sumsShell = Shell[*sums]

func newShell(t *testing.T, m *memory, change func(*Config[*sums])) *sumsShell {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	cfg := Config[*sums]{
		NewCore:   func(epoch int32) *sums { return &sums{epoch: epoch} },
		NewLoader: func() Loader[*sums] { return &sumsLoader{} },
		Take: func(_ *Shard[*sums], c *sums) Effects {
			out := c.out
			c.out = Effects{}
			return out
		},
		Partitions: func() (int32, bool) { return 2, true }, Now: time.Now, Log: logrus.NewEntry(quiet),
	}
	if change != nil {
		change(&cfg)
	}
	sh := New(cfg, m)
	t.Cleanup(func() {
		m.hold(false)
		sh.Close()
	})
	return sh
}

func newMemory() *memory { return &memory{batches: map[int32][]record.Batch{}} }

// nameOn is a name that belongs to a partition.
func nameOn(sh *sumsShell, p int32) string {
	for i := 0; ; i++ {
		if name := fmt.Sprint("n", i); sh.PartitionFor(name) == p {
			return name
		}
	}
}

// add asks for a sum; the answer comes once.
func add(sh *sumsShell, p int32, n int, alone bool) <-chan answer {
	c := make(chan answer, 2)
	sh.Do(nameOn(sh, p), func(core *sums, _ int64) {
		core.add(n, alone, func(total int, err error) { c <- answer{total, err} })
	}, func(err error) { c <- answer{err: err} })
	return c
}

type answer struct {
	total int
	err   error
}

// ask looks into a core.
func ask[T any](t *testing.T, sh *sumsShell, p int32, f func(*sums) T) T {
	c := make(chan T, 1)
	sh.Tell(p, func(core *sums, _ int64) { c <- f(core) })
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("the core does not answer")
		panic("unreachable")
	}
}

func awaitLoaded(t *testing.T, sh *sumsShell) {
	require.Eventually(t, func() bool { _, loading := sh.all(); return !loading }, time.Minute, time.Millisecond)
}
