package coordinator

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
)

// H53: what is asked while the partition is loaded; a failure to read it is no
// reason to know nothing.
func TestH53_NothingIsAnsweredBeforeAllIsLoaded(t *testing.T) {
	m := newMemory()
	sh := newShell(t, m, nil)
	assert.ErrorIs(t, (<-add(sh, 0, 5, false)).err, kerr.NotCoordinator)
	sh.Lead(0, 1)
	awaitLoaded(t, sh)
	require.Equal(t, answer{total: 5}, <-add(sh, 0, 5, false))
	sh.Resign(0)
	assert.ErrorIs(t, (<-add(sh, 0, 1, false)).err, kerr.NotCoordinator)

	m.reading, m.readErr = make(chan struct{}), errors.New("bad disk") // the first attempt fails
	sh.Lead(0, 2)
	assert.ErrorIs(t, (<-add(sh, 0, 1, false)).err, kerr.CoordinatorLoadInProgress)
	Collect(sh, func(*sums, int64) []int { return []int{1} }, func(all []int, err error) {
		assert.Empty(t, all)
		assert.ErrorIs(t, err, kerr.CoordinatorLoadInProgress)
	})
	told := make(chan int, 1)
	sh.Tell(0, func(c *sums, _ int64) { told <- c.total })
	close(m.reading)
	assert.Equal(t, 5, <-told, "what is told while it loads is heard afterwards")
	awaitLoaded(t, sh)
	assert.Equal(t, answer{total: 7}, <-add(sh, 0, 2, false))
}

// H54: what a core decides after its broker has given up the partition is not
// appended, even if the broker leads again at once.
func TestH54_ADeposedShardAppendsNothing(t *testing.T) {
	m := newMemory()
	sh := newShell(t, m, nil)
	sh.Lead(0, 1)
	awaitLoaded(t, sh)
	old := sh.shard(0)
	sh.Resign(0)
	sh.Lead(0, 2)
	awaitLoaded(t, sh)
	old.write(1, []*Append{{Records: []KeyValue{{Key: []byte("k")}}}}, func(_ int64, err error) {
		assert.ErrorIs(t, err, kerr.NotLeaderForPartition)
	})
	assert.Zero(t, m.count(0))
}

func TestALeaderInAnotherEpochLoadsAgainOnlyWhereItMatters(t *testing.T) {
	for _, reload := range []bool{false, true} {
		sh := newShell(t, newMemory(), func(c *Config[*sums]) { c.Reload = reload })
		for _, epoch := range []int32{1, 5, 4} {
			sh.Lead(0, epoch)
			awaitLoaded(t, sh)
		}
		want := int32(1)
		if reload {
			want = 5
		}
		assert.Equal(t, want, ask(t, sh, 0, func(c *sums) int32 { return c.epoch }))
	}
}

func TestResigningWaitsForWhatIsInFlight(t *testing.T) {
	m := newMemory()
	sh := newShell(t, m, nil)
	sh.Lead(0, 1)
	awaitLoaded(t, sh)
	m.hold(true)
	sum := add(sh, 0, 1, false)
	require.Eventually(t, func() bool { return m.count(0) == 1 }, time.Minute, time.Millisecond)
	var gone atomic.Bool
	asked := make(chan error, 1)
	s := sh.shard(0)
	started := make(chan struct{})
	s.Tell(func(*sums, int64) {
		s.Go(func(ctx context.Context) func(*sums, int64) {
			close(started)
			<-ctx.Done()
			return func(c *sums, _ int64) { gone.Store(c.gone); asked <- ctx.Err() }
		})
	})
	<-started
	sh.Resign(0)
	assert.ErrorIs(t, <-asked, context.Canceled)
	assert.True(t, gone.Load(), "the core was unloaded before")
	m.hold(false)
	assert.Equal(t, answer{total: 1}, <-sum, "it is committed")
	assert.Empty(t, sum)
}

// together has the shard come upon n requests at once.
func together(sh *sumsShell, n int, alone func(i int) bool) (answers []<-chan answer) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	sh.Tell(0, func(*sums, int64) { close(stopped); <-stop })
	<-stopped
	for i := range n {
		answers = append(answers, add(sh, 0, 1, alone(i)))
	}
	close(stop)
	return answers
}

func TestWhatComesTogetherSharesABatch(t *testing.T) {
	m := newMemory()
	sh := newShell(t, m, nil)
	sh.Lead(0, 1)
	awaitLoaded(t, sh)
	never := func(int) bool { return false }
	for _, a := range together(sh, 50, never) {
		require.NoError(t, (<-a).err)
	}
	assert.Equal(t, 1, m.count(0))

	for _, a := range together(sh, 50, func(i int) bool { return i == 20 }) {
		require.NoError(t, (<-a).err)
	}
	assert.Equal(t, 4, m.count(0), "one goes alone")

	m.mu.Lock()
	m.largest = 1
	m.mu.Unlock()
	for _, a := range together(sh, 10, never) {
		require.NoError(t, (<-a).err)
	}
	assert.Equal(t, 14, m.count(0), "what is too large together goes one by one")
	assert.Equal(t, 110, ask(t, sh, 0, func(c *sums) int { return c.total }))
}

func TestABatchIsBounded(t *testing.T) {
	of := func(size, records int) *Append {
		a := &Append{}
		for range records {
			a.Records = append(a.Records, KeyValue{Value: make([]byte, size)})
		}
		return a
	}
	assert.Equal(t, 1, gather([]*Append{of(1<<20, 1), of(1, 1)}), "a large one goes all the same")
	assert.Equal(t, 3, gather([]*Append{of(20<<10, 1), of(20<<10, 1), of(20<<10, 1), of(20<<10, 1)}))
	assert.Equal(t, 2, gather([]*Append{of(1, 500), of(1, 500), of(1, 1)}))
	transactional := of(1, 1)
	transactional.Producer = &Producer{}
	assert.Equal(t, 1, gather([]*Append{transactional, of(1, 1)}))
	assert.Equal(t, 1, gather([]*Append{of(1, 1), transactional}))
}

// Apache Kafka 3.9.1 writes the offsets of a transaction so: each batch begins with sequence 0.
func TestABatchOfATransactionBeginsWithSequenceZero(t *testing.T) {
	m := newMemory()
	sh := newShell(t, m, nil)
	sh.Lead(0, 1)
	awaitLoaded(t, sh)
	list := []*Append{{Records: []KeyValue{{Key: []byte("a")}, {Key: []byte("b")}}, Producer: &Producer{ID: 7, Epoch: 3}}}
	sh.shard(0).write(0, list, func(_ int64, err error) { require.NoError(t, err) })
	b := record.Batch(m.batches[0][0])
	assert.EqualValues(t, 7, b.ProducerID())
	assert.EqualValues(t, 3, b.ProducerEpoch())
	assert.True(t, b.IsTransactional())
	assert.Zero(t, b.BaseSequence())
	assert.EqualValues(t, 1, b.LastSequence())
}

func TestCoresAreCalledWhenTheyWantToBe(t *testing.T) {
	sh := newShell(t, newMemory(), nil)
	sh.Lead(0, 1)
	awaitLoaded(t, sh)
	due := time.Now().Add(20 * time.Millisecond).UnixMilli()
	sh.Tell(0, func(c *sums, _ int64) { c.dueMs = due })
	require.Eventually(t, func() bool { return ask(t, sh, 0, func(c *sums) int64 { return c.ticked }) >= due }, time.Minute, time.Millisecond)

	var calls atomic.Int32
	sh.Every(time.Millisecond, func(*sums, int64) { calls.Add(1) })
	require.Eventually(t, func() bool { return calls.Load() > 3 }, time.Minute, time.Millisecond)
}

func TestClosingAnswersEverything(t *testing.T) {
	sh := newShell(t, newMemory(), nil)
	for p := range int32(2) {
		sh.Lead(p, 1)
	}
	awaitLoaded(t, sh)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			<-add(sh, int32(i%2), 1, false)
			Collect(sh, func(c *sums, _ int64) []int { return []int{c.total} }, func([]int, error) {})
		})
	}
	sh.Close()
	wg.Wait()
	assert.ErrorIs(t, (<-add(sh, 0, 1, false)).err, kerr.NotCoordinator)
}

// An append wakes others that wait for the same partition, and their answers may
// lead back to the shell: the end of a transaction's offsets does.
func TestAnAppendMayLeadBackToTheShellWhileItsShardIsDeposed(t *testing.T) {
	for name, depose := range map[string]func(sh *sumsShell){
		"closed": (*sumsShell).Close, "resigned": func(sh *sumsShell) { sh.Resign(0) }, "led again": func(sh *sumsShell) { sh.Lead(0, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			sh := newShell(t, m, func(c *Config[*sums]) { c.Reload = true })
			sh.Lead(0, 1)
			awaitLoaded(t, sh)
			s := sh.shard(0)
			begun := make(chan struct{})
			m.writing = func() {
				close(begun)
				for s.gate.TryRLock() { // until somebody waits to depose the shard
					s.gate.RUnlock()
					runtime.Gosched()
				}
				back := make(chan struct{})
				go func() {
					defer close(back)
					sh.Tell(0, func(*sums, int64) {})
				}()
				select {
				case <-back:
				case <-time.After(time.Minute):
					t.Error("the shell waits for an append that waits for the shell")
				}
			}
			sum := add(sh, 0, 1, false)
			<-begun
			depose(sh)
			<-sum
			m.mu.Lock()
			m.writing = nil
			m.mu.Unlock()
		})
	}
}

func TestNamesBelongToPartitionsAsInKafka(t *testing.T) {
	for name, want := range map[string]int32{
		"": 0, "a": 97, "id": 3355, "fixture-group": 476472901, "polygenelubricants": 0, "String": 1808118735, "app-0_1": 795167178,
		"ä": 228, "\U0001F600": 1772899, "my-consumer-group": 1513705513,
	} {
		assert.Equal(t, want, hash(name), name)
	}
	assert.Equal(t, int32(1), hash("fixture-group")%3, "Kafka's log of partition 1 of 3 has it")
}

func TestTheNumberOfPartitionsCountsAsItWasFirstSeen(t *testing.T) {
	count, exists := int32(50), false
	sh := newShell(t, newMemory(), func(c *Config[*sums]) { c.Partitions = func() (int32, bool) { return count, exists } })
	require.Equal(t, hash("g")%50, sh.PartitionFor("g"))
	count, exists = 10, true
	require.Equal(t, hash("g")%10, sh.PartitionFor("g"))
	count = 20
	require.Equal(t, hash("g")%10, sh.PartitionFor("g"))
}

// The first to ask wakes the shard, which would run next.
func TestWhoIsReadyGetsIntoOneBatch(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	m := newMemory()
	sh := newShell(t, m, nil)
	sh.Lead(0, 1)
	awaitLoaded(t, sh)
	const askers = 100
	name, start := nameOn(sh, 0), make(chan struct{})
	var asking sync.WaitGroup
	for range askers {
		asking.Go(func() {
			<-start
			answered := make(chan struct{})
			sh.Do(name, func(core *sums, _ int64) {
				core.add(1, false, func(int, error) { close(answered) })
			}, func(error) { close(answered) })
			<-answered
		})
	}
	close(start)
	asking.Wait()
	require.Equal(t, askers, ask(t, sh, 0, func(c *sums) int { return c.total }))
	require.Less(t, m.count(0), askers/4)
}
