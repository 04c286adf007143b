package txn

import (
	"context"
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

// memory is a transaction topic, a supply of ids and a cluster of brokers 1 and 2,
// of which 1 is the coordinator of everything and 2 leads every partition.
type memory struct {
	mu      sync.Mutex
	logs    map[int32][]record.Batch
	next    int64
	markers [][]*Marker // by request
	asked   [][]*PartitionsRequest
	hold    chan struct{} // requests to broker 2 wait for it to be closed; nil: they do not
	coord   int32
}

func (m *memory) Append(p int32, batch []byte, _ *commitlog.VerificationGuard, done func(int64, error)) {
	m.mu.Lock()
	m.logs[p] = append(m.logs[p], record.Batch(batch))
	m.mu.Unlock()
	done(0, nil)
}

func (m *memory) Read(_ context.Context, p int32, each func(record.Entry)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.logs[p] {
		each(record.Entry(b))
	}
	return nil
}

func (m *memory) Next(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next++
	return m.next, nil
}

func (m *memory) Leader(tp TopicPartition) (int32, bool) { return 2, tp.Topic != "deleted" }

func (m *memory) Coordinator(int32) int32 { return m.coord }

func (m *memory) wait(ctx context.Context) error {
	if m.hold == nil {
		return nil
	}
	select {
	case <-m.hold:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *memory) WriteMarkers(ctx context.Context, _ int32, markers []*Marker) [][]error {
	m.mu.Lock()
	m.markers = append(m.markers, markers)
	m.mu.Unlock()
	err := m.wait(ctx)
	results := make([][]error, len(markers))
	for i := range results {
		results[i] = make([]error, len(markers[i].Partitions))
		for j := range results[i] {
			results[i][j] = err
		}
	}
	return results
}

func (m *memory) Verify(ctx context.Context, _ int32, reqs []*PartitionsRequest) [][]error {
	m.mu.Lock()
	m.asked = append(m.asked, reqs)
	m.mu.Unlock()
	err := m.wait(ctx)
	results := make([][]error, len(reqs))
	for i := range results {
		results[i] = []error{err}
	}
	return results
}

func quietLog() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}

func newMemory() *memory { return &memory{logs: map[int32][]record.Batch{}, coord: 1} }

func (m *memory) coordinator(t *testing.T) *Coordinator { return m.coordinatorOver(t, m) }

func (m *memory) coordinatorOver(t *testing.T, topic coordinator.Topic) *Coordinator {
	c := New(Config{
		BrokerID: 1, Core: CoreConfig{MaxTimeoutMs: 900_000, IDExpirationMs: time.Hour.Milliseconds()}, AbortCheck: 5 * time.Millisecond, ExpiryCheck: time.Hour,
		Partitions: func() (int32, bool) { return 3, true }, Now: time.Now, Log: quietLog(),
	}, topic, m, m)
	t.Cleanup(c.Close)
	return c
}

// answered waits for the answer to a request.
func answered[T any](t *testing.T, ask func(reply func(T))) T {
	t.Helper()
	got := make(chan T, 1)
	ask(func(x T) { got <- x })
	select {
	case x := <-got:
		return x
	case <-time.After(time.Minute):
		t.Fatal("no answer")
		panic("unreachable")
	}
}

func initialised(t *testing.T, c *Coordinator, id string, timeoutMs int32) InitResult {
	return answered(t, func(reply func(InitResult)) { c.Init(&InitRequest{ID: id, TimeoutMs: timeoutMs}, reply) })
}

func leadAll(t *testing.T, c *Coordinator, epoch int32) {
	for p := range int32(3) {
		c.Lead(p, epoch)
	}
	require.Eventually(t, func() bool {
		return answered(t, func(reply func(error)) {
			c.List(&ListRequest{LongerMs: -1}, func(_ []Listed, err error) { reply(err) })
		}) == nil
	}, time.Minute, time.Millisecond)
}

func stateOf(t *testing.T, c *Coordinator, id string) string {
	d := answered(t, func(reply func(Description)) { c.Describe(id, reply) })
	if d.Err != nil {
		return d.Err.Error()
	}
	return d.State.String()
}

func TestACoordinatorThatIsElectedAgainGoesOnWhereTheLogEnds(t *testing.T) {
	m := newMemory()
	m.hold = make(chan struct{})
	c := m.coordinator(t)
	assert.ErrorIs(t, initialised(t, c, "id", 60_000).Err, kerr.NotCoordinator)
	leadAll(t, c, 0)
	p := initialised(t, c, "id", 60_000)
	require.NoError(t, p.Err)
	require.NoError(t, answered(t, func(reply func(error)) {
		c.AddPartitions(&PartitionsRequest{ID: "id", Producer: p.Producer, Partitions: []TopicPartition{p0}}, reply)
	}))
	require.NoError(t, answered(t, func(reply func(error)) {
		c.End(&EndRequest{ID: "id", Producer: p.Producer, Commit: true}, reply)
	}))
	assert.Equal(t, "PrepareCommit", stateOf(t, c, "id"))
	c.Resign(c.PartitionFor("id"))
	assert.ErrorIs(t, initialised(t, c, "id", 60_000).Err, kerr.NotCoordinator)
	leadAll(t, c, 7)
	assert.Equal(t, "PrepareCommit", stateOf(t, c, "id"))
	close(m.hold)
	require.Eventually(t, func() bool { return stateOf(t, c, "id") == "CompleteCommit" }, time.Minute, time.Millisecond)
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.markers[len(m.markers)-1]
	assert.Equal(t, int32(7), last[len(last)-1].CoordinatorEpoch)
}

// deposed is led by another broker, which this one has not heard of.
type deposed struct {
	*memory
	since atomic.Bool
}

func (*deposed) Began(int32)                         {}
func (*deposed) Ended(int32)                         {}
func (d *deposed) Leads(int32) bool                  { return !d.since.Load() }
func (*deposed) Confirm(context.Context, int32) bool { return false }

// What it remembers is the transaction before: it would tell a producer that the one which it has open at the successor is committed, and let through writes of one that is over.
func TestADeposedCoordinatorNeitherEndsNorVouches(t *testing.T) {
	d := &deposed{memory: newMemory()}
	c := d.coordinatorOver(t, d)
	leadAll(t, c, 0)
	p := initialised(t, c, "id", 60_000)
	req := &PartitionsRequest{ID: "id", Producer: p.Producer, Partitions: []TopicPartition{p0}}
	end := func() error {
		return answered(t, func(reply func(error)) { c.End(&EndRequest{ID: "id", Producer: p.Producer, Commit: true}, reply) })
	}
	verify := func() error { return answered(t, func(reply func([]error)) { c.Verify(req, reply) })[0] }
	require.NoError(t, answered(t, func(reply func(error)) { c.AddPartitions(req, reply) }))
	require.NoError(t, verify())
	require.NoError(t, end())
	require.Eventually(t, func() bool { return stateOf(t, c, "id") == "CompleteCommit" }, time.Minute, time.Millisecond)
	require.NoError(t, end(), "it is repeated")
	d.since.Store(true)
	require.ErrorIs(t, end(), kerr.NotCoordinator)
	require.ErrorIs(t, verify(), kerr.NotCoordinator)
}

func TestTransactionsThatTakeTooLongAreFound(t *testing.T) {
	m := newMemory()
	c := m.coordinator(t)
	leadAll(t, c, 0)
	p := initialised(t, c, "id", 20)
	require.NoError(t, answered(t, func(reply func(error)) {
		c.AddPartitions(&PartitionsRequest{ID: "id", Producer: p.Producer, Partitions: []TopicPartition{p0}}, reply)
	}))
	require.Eventually(t, func() bool { return stateOf(t, c, "id") == "CompleteAbort" }, time.Minute, time.Millisecond)
}

func TestOneRequestToABrokerIsUnderwayAtATime(t *testing.T) {
	m := newMemory()
	m.hold, m.coord = make(chan struct{}), 2
	c := m.coordinator(t)
	const n = 50
	answers := make(chan error, 2*n)
	ask := func(id string) {
		c.Confirm(&PartitionsRequest{ID: id, Partitions: []TopicPartition{p0}}, func(errs []error) { answers <- errs[0] })
	}
	for i := range n {
		ask(fmt.Sprint("id", i))
	}
	ask("id0")
	close(m.hold)
	for range n + 1 {
		require.NoError(t, <-answers)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	assert.LessOrEqual(t, len(m.asked), 4)
	for _, reqs := range m.asked {
		seen := map[string]bool{}
		for _, r := range reqs {
			assert.False(t, seen[r.ID], "an id is in a request once")
			seen[r.ID] = true
		}
	}
}

func TestWhoIsFencedIsToldSoInTheTermsOfProducers(t *testing.T) {
	m := newMemory()
	c := m.coordinator(t)
	leadAll(t, c, 0)
	p := initialised(t, c, "id", 60_000)
	p.Producer.Epoch++
	errs := answered(t, func(reply func([]error)) {
		c.Confirm(&PartitionsRequest{ID: "id", Producer: p.Producer, Partitions: []TopicPartition{p0}}, reply)
	})
	assert.ErrorIs(t, errs[0], kerr.InvalidProducerEpoch)
	m.coord = NoBroker
	errs = answered(t, func(reply func([]error)) {
		c.Confirm(&PartitionsRequest{ID: "id", Producer: p.Producer, Partitions: []TopicPartition{p0}}, reply)
	})
	assert.ErrorIs(t, errs[0], kerr.CoordinatorNotAvailable)
}

func TestCloseAnswersWhatIsUnderway(t *testing.T) {
	m := newMemory()
	m.hold, m.coord = make(chan struct{}), 2
	c := m.coordinator(t)
	leadAll(t, c, 0)
	p := initialised(t, c, "id", 60_000)
	require.NoError(t, answered(t, func(reply func(error)) {
		c.AddPartitions(&PartitionsRequest{ID: "id", Producer: p.Producer, Partitions: []TopicPartition{p0, {"deleted", 0}}}, reply)
	}))
	require.NoError(t, answered(t, func(reply func(error)) { c.End(&EndRequest{ID: "id", Producer: p.Producer}, reply) }))
	asked := make(chan []error, 1)
	c.Confirm(&PartitionsRequest{ID: "id", Partitions: []TopicPartition{p0}}, func(errs []error) { asked <- errs })
	c.Close()
	assert.Error(t, (<-asked)[0])
	assert.ErrorIs(t, initialised(t, c, "id", 60_000).Err, kerr.NotCoordinator)
}
