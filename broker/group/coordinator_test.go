package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/coordinator"
	"barnabas/broker/record"
)

// heldLog is an offsets topic in memory. While held, appends are not answered.
type heldLog struct {
	mu      sync.Mutex
	batches map[int32][]record.Batch
	next    map[int32]int64
	held    bool
	waiting []func()
	err     error
	largest int           // records of a batch; 0: any
	reading chan struct{} // not nil: Read waits for it
	readErr error
}

func newHeldLog() *heldLog {
	return &heldLog{batches: map[int32][]record.Batch{}, next: map[int32]int64{}}
}

func (l *heldLog) Append(p int32, b []byte, _ *commitlog.VerificationGuard, done func(int64, error)) {
	l.mu.Lock()
	batch := record.Batch(b)
	if l.err != nil || l.largest > 0 && int(batch.Count()) > l.largest {
		err := l.err
		if err == nil {
			err = kerr.MessageTooLarge
		}
		l.mu.Unlock()
		done(-1, err)
		return
	}
	first := l.next[p]
	batch.SetBaseOffset(first)
	l.batches[p] = append(l.batches[p], batch)
	l.next[p] = first + int64(batch.Count())
	if l.held {
		l.waiting = append(l.waiting, func() { done(first, nil) })
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	done(first, nil)
}

func (l *heldLog) hold(on bool) {
	l.mu.Lock()
	l.held = on
	waiting := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}

func (l *heldLog) count(p int32) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.batches[p])
}

func (l *heldLog) Read(ctx context.Context, p int32, each func(record.Entry)) error {
	l.mu.Lock()
	batches, err, reading := l.batches[p], l.readErr, l.reading
	l.readErr = nil
	l.mu.Unlock()
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

func newShell(t *testing.T, l *heldLog) *Coordinator { return newShellOver(t, l, l) }

func newShellOver(t *testing.T, l *heldLog, topic coordinator.Topic) *Coordinator {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	cfg := deskConfig()
	cfg.InitialRebalanceDelayMs = 0
	c := New(Config{
		Core: cfg, MinSessionTimeoutMs: 1000, MaxSessionTimeoutMs: 60_000, ExpiryCheck: time.Hour,
		Partitions: func() (int32, bool) { return 2, true }, Now: time.Now, Log: logrus.NewEntry(quiet),
	}, topic)
	t.Cleanup(func() {
		l.hold(false)
		c.Close()
	})
	return c
}

// groupOn is a group of an offsets partition.
func groupOn(c *Coordinator, p int32, n int) string {
	for i := 0; ; i++ {
		if g := fmt.Sprintf("g%d", i); c.PartitionFor(g) == p {
			if n == 0 {
				return g
			}
			n--
		}
	}
}

func commitTo(c *Coordinator, group string, offset int64) <-chan error {
	answer := make(chan error, 2)
	c.Commit(commitOne(group, NoGeneration, "", "t", offset), func(r CommitResult) { answer <- r.Errs[0] })
	return answer
}

func fetchFrom(c *Coordinator, group string) (int64, error) {
	answer := make(chan FetchOffsetsResult, 1)
	c.FetchOffsets(&FetchOffsetsRequest{Group: group, Partitions: []TopicPartition{{"t", 0}}}, func(r FetchOffsetsResult) { answer <- r })
	r := <-answer
	if r.Err != nil {
		return 0, r.Err
	}
	return r.Offsets[0].Offset, nil
}

func loaded(t *testing.T, c *Coordinator, p int32) {
	require.Eventually(t, func() bool {
		_, err := fetchFrom(c, groupOn(c, p, 0))
		return err == nil
	}, time.Minute, time.Millisecond)
}

// deposedLog is led by another broker, which this one has not heard of; until then it is sure.
type deposedLog struct {
	*heldLog
	deposed atomic.Bool
}

func (*deposedLog) Began(int32)                         {}
func (*deposedLog) Ended(int32)                         {}
func (l *deposedLog) Leads(int32) bool                  { return !l.deposed.Load() }
func (*deposedLog) Confirm(context.Context, int32) bool { return false }

func TestADeposedCoordinatorTellsNoOffsets(t *testing.T) {
	l := &deposedLog{heldLog: newHeldLog()}
	c := newShellOver(t, l.heldLog, l)
	c.Lead(0, 1)
	loaded(t, c, 0)
	g := groupOn(c, 0, 0)
	require.NoError(t, <-commitTo(c, g, 10))
	offset, err := fetchFrom(c, g)
	require.NoError(t, err)
	require.EqualValues(t, 10, offset)
	l.deposed.Store(true)
	_, err = fetchFrom(c, g)
	require.ErrorIs(t, err, kerr.NotCoordinator, "its successor may know of a later commit")
	require.NoError(t, <-commitTo(c, g, 20), "an append shows by itself who leads")
}

// H53: what is fetched while the partition is loaded.
func TestH53_NothingIsAnsweredWhileLoading(t *testing.T) {
	l := newHeldLog()
	c := newShell(t, l)
	g := groupOn(c, 0, 0)
	_, err := fetchFrom(c, g)
	require.ErrorIs(t, err, kerr.NotCoordinator)
	l.reading = make(chan struct{})
	l.readErr = errors.New("bad disk") // the first attempt fails
	c.Lead(0, 1)
	for _, want := range []error{kerr.CoordinatorLoadInProgress} {
		_, err = fetchFrom(c, g)
		require.ErrorIs(t, err, want)
		require.ErrorIs(t, <-commitTo(c, g, 1), want)
	}
	var beat later[error]
	c.Heartbeat(&HeartbeatRequest{Group: g}, beat.take)
	assert.NoError(t, *beat.value)
	var s later[SyncResult]
	c.Sync(&SyncRequest{Group: g}, s.take)
	assert.ErrorIs(t, s.value.Err, kerr.RebalanceInProgress)
	c.List(func(_ []Listed, err error) { assert.ErrorIs(t, err, kerr.CoordinatorLoadInProgress) })
	close(l.reading)
	loaded(t, c, 0)
	require.NoError(t, <-commitTo(c, g, 7))

	c.Resign(0)
	_, err = fetchFrom(c, g)
	require.ErrorIs(t, err, kerr.NotCoordinator)
	c.Lead(0, 3)
	loaded(t, c, 0)
	offset, err := fetchFrom(c, g)
	require.NoError(t, err)
	assert.Equal(t, int64(7), offset)
}

func TestResigningAnswersWhatWaits(t *testing.T) {
	l := newHeldLog()
	c := newShell(t, l)
	c.Lead(0, 1)
	loaded(t, c, 0)
	l.hold(true)
	answer := commitTo(c, groupOn(c, 0, 0), 1)
	joined := make(chan JoinResult, 2)
	g := groupOn(c, 0, 1)
	first := make(chan JoinResult, 1)
	c.Join(joinRequest(g, "", "t"), func(r JoinResult) { first <- r })
	require.NoError(t, (<-first).Err)
	c.Join(joinRequest(g, "", "t"), func(r JoinResult) { joined <- r }) // waits for the first member
	require.Eventually(t, func() bool { return l.count(0) == 1 }, time.Minute, time.Millisecond)
	c.Resign(0)
	assert.ErrorIs(t, (<-joined).Err, kerr.NotCoordinator)
	l.hold(false)
	assert.NoError(t, <-answer, "it is committed")
	assert.Empty(t, answer)
}

func TestCommitsThatComeTogetherShareABatch(t *testing.T) {
	l := newHeldLog()
	c := newShell(t, l)
	c.Lead(0, 1)
	loaded(t, c, 0)
	run := func(n int) []<-chan error {
		stop, stopped := make(chan struct{}), make(chan struct{})
		c.Tell(0, func(*Core, int64) { close(stopped); <-stop })
		<-stopped
		var answers []<-chan error
		for i := range n {
			answers = append(answers, commitTo(c, groupOn(c, 0, i), int64(i)))
		}
		close(stop)
		return answers
	}
	for _, a := range run(50) {
		require.NoError(t, <-a)
	}
	assert.LessOrEqual(t, l.count(0), 2)

	l.mu.Lock()
	l.largest = 1 // what is too large together goes one by one
	l.mu.Unlock()
	for _, a := range run(10) {
		require.NoError(t, <-a)
	}
	for i := range 10 {
		offset, err := fetchFrom(c, groupOn(c, 0, i))
		require.NoError(t, err)
		assert.Equal(t, int64(i), offset)
	}
}

func TestClosingAnswersEverything(t *testing.T) {
	l := newHeldLog()
	c := newShell(t, l)
	for p := range int32(2) {
		c.Lead(p, 1)
		loaded(t, c, p)
	}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			<-commitTo(c, fmt.Sprint("group", i), 1)
			c.List(func([]Listed, error) {})
		}()
	}
	c.Close()
	wg.Wait()
	assert.ErrorIs(t, <-commitTo(c, "g", 1), kerr.NotCoordinator)
}

func BenchmarkCommits(b *testing.B) {
	l := newHeldLog()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	c := New(Config{Core: deskConfig(), ExpiryCheck: time.Hour, Partitions: func() (int32, bool) { return 2, true }, Now: time.Now, Log: logrus.NewEntry(quiet)}, l)
	defer c.Close()
	c.Lead(0, 1)
	c.Lead(1, 1)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		done := make(chan struct{}, 1)
		for i := int64(0); pb.Next(); i++ {
			c.Commit(commitOne(fmt.Sprint("g", i%100), NoGeneration, "", "t", i), func(CommitResult) { done <- struct{}{} })
			<-done
		}
	})
}
