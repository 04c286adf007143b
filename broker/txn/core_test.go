package txn

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/coordinator"
	"barnabas/broker/record"
)

// stage is a core whose log, markers and producer ids are played.
type stage struct {
	t       *testing.T
	core    *Core
	nowMs   int64
	nextID  int64
	fail    error // what appends are answered with
	held    bool  // appends, markers and ids wait in the lists below
	appends []*coordinator.Append
	wanted  []*Wanted
	markers []*Marker // never answered by itself
	log     []record.Batch
}

const minute = int64(60_000)

func newStage(t *testing.T) *stage {
	return &stage{t: t, nowMs: 1_000_000, core: NewCore(CoreConfig{MaxTimeoutMs: 900_000, IDExpirationMs: 7 * 24 * 60 * minute}, 5)}
}

// settle carries out what the core wants until it wants nothing more.
func (s *stage) settle() {
	for {
		out := s.core.Take()
		s.markers = append(s.markers, out.Markers...)
		s.appends = append(s.appends, out.Appends...)
		s.wanted = append(s.wanted, out.Wanted...)
		for _, answer := range out.Answers {
			answer()
		}
		if s.held || len(s.appends)+len(s.wanted) == 0 {
			return
		}
		s.release()
	}
}

// release answers what is held.
func (s *stage) release() {
	appends, wanted := s.appends, s.wanted
	s.appends, s.wanted = nil, nil
	for _, a := range appends {
		if s.fail == nil {
			b := record.NewBuilder(record.BuilderOptions{})
			b.Append(s.nowMs, a.Records[0].Key, a.Records[0].Value)
			batch, err := b.Build()
			require.NoError(s.t, err)
			s.log = append(s.log, batch)
		}
		a.Ended(s.nowMs, 0, s.fail)
	}
	for _, w := range wanted {
		s.nextID++
		s.core.Identified(s.nowMs, w, s.nextID, nil)
	}
}

func (s *stage) init(id string, present *Producer) (r InitResult) {
	s.core.Init(s.nowMs, &InitRequest{ID: id, TimeoutMs: int32(minute), Present: present}, func(x InitResult) { r = x })
	s.settle()
	return r
}

var errNotAnswered = errors.New("not answered")

func (s *stage) add(id string, p Producer, partitions ...TopicPartition) error {
	err := errNotAnswered
	s.core.AddPartitions(s.nowMs, &PartitionsRequest{ID: id, Producer: p, Partitions: partitions}, func(e error) { err = e })
	s.settle()
	return err
}

func (s *stage) end(id string, p Producer, commit bool) error {
	err := errNotAnswered
	s.core.End(s.nowMs, &EndRequest{ID: id, Producer: p, Commit: commit}, func(e error) { err = e })
	s.settle()
	return err
}

func (s *stage) verify(id string, p Producer, partitions ...TopicPartition) (errs []error) {
	s.core.Verify(&PartitionsRequest{ID: id, Producer: p, Partitions: partitions}, func(e []error) { errs = e })
	s.settle()
	return errs
}

// mark answers all markers that were sent.
func (s *stage) mark(err error) {
	markers := s.markers
	s.markers = nil
	for _, m := range markers {
		errs := make([]error, len(m.Partitions))
		for i := range errs {
			errs[i] = err
		}
		s.core.Marked(s.nowMs, m, errs)
	}
	s.settle()
}

func (s *stage) state(id string) State {
	d := s.core.Describe(id)
	require.NoError(s.t, d.Err)
	return d.State
}

// restart is another coordinator that has read the log.
func (s *stage) restart() {
	s.core = NewCore(s.core.cfg, s.core.epoch+1)
	s.appends, s.wanted, s.markers = nil, nil, nil
	l := NewLoader(record.Limits{})
	for _, b := range s.log {
		l.Add(record.Entry(b))
	}
	require.NoError(s.t, l.First)
	s.core.Loaded(s.nowMs, l)
	s.settle()
}

var (
	p0 = TopicPartition{"a", 0}
	p1 = TopicPartition{"a", 1}
	q0 = TopicPartition{"b", 0}
)

func TestATransactionIsCommittedWhenAllMarkersAreWritten(t *testing.T) {
	s := newStage(t)
	r := s.init("id", nil)
	require.NoError(t, r.Err)
	assert.Equal(t, Producer{1, 0}, r.Producer)
	assert.Equal(t, Empty, s.state("id"))
	require.NoError(t, s.add("id", r.Producer, p1, p0))
	require.NoError(t, s.add("id", r.Producer, q0, p0))
	assert.Equal(t, []TopicPartition{p0, p1, q0}, s.core.Describe("id").Partitions)
	require.NoError(t, s.end("id", r.Producer, true))
	assert.Equal(t, PrepareCommit, s.state("id"))
	require.Len(t, s.markers, 1)
	assert.Equal(t, &Marker{ID: "id", Producer: r.Producer, CoordinatorEpoch: 5, Commit: true, Partitions: []TopicPartition{p0, p1, q0}}, s.markers[0])
	assert.ErrorIs(t, s.end("id", r.Producer, true), kerr.ConcurrentTransactions)
	assert.ErrorIs(t, s.add("id", r.Producer, p0), kerr.ConcurrentTransactions)
	assert.ErrorIs(t, s.init("id", nil).Err, kerr.ConcurrentTransactions)

	m := s.markers[0]
	s.markers = nil
	s.core.Marked(s.nowMs, m, []error{nil, kerr.NotLeaderForPartition, nil})
	s.settle()
	assert.Equal(t, PrepareCommit, s.state("id"))
	assert.Equal(t, []TopicPartition{p1}, s.core.Describe("id").Partitions, "those that wait for their marker")
	at, any := s.core.Next()
	require.True(t, any)
	s.core.Tick(at)
	s.settle()
	require.Len(t, s.markers, 1)
	assert.Equal(t, []TopicPartition{p1}, s.markers[0].Partitions)
	s.mark(nil)
	assert.Equal(t, CompleteCommit, s.state("id"))
	assert.NoError(t, s.end("id", r.Producer, true), "a repeated request")
	assert.ErrorIs(t, s.end("id", r.Producer, false), kerr.InvalidTxnState)

	require.NoError(t, s.add("id", r.Producer, p0))
	require.NoError(t, s.end("id", r.Producer, false))
	s.mark(nil)
	assert.Equal(t, CompleteAbort, s.state("id"))
	assert.ErrorIs(t, s.end("id", r.Producer, true), kerr.InvalidTxnState)
}

func TestOnlyThePresentProducerIsHeard(t *testing.T) {
	s := newStage(t)
	old := s.init("id", nil).Producer
	r := s.init("id", nil)
	require.NoError(t, r.Err)
	assert.Equal(t, Producer{1, 1}, r.Producer)
	for name, c := range map[string]struct {
		id   string
		p    Producer
		want error
	}{
		"the one before": {"id", old, kerr.ProducerFenced},
		"one to come":    {"id", Producer{1, 2}, kerr.ProducerFenced},
		"another":        {"id", Producer{7, 1}, kerr.InvalidProducerIDMapping},
		"unknown id":     {"other", r.Producer, kerr.InvalidProducerIDMapping},
		"no id":          {"", r.Producer, kerr.InvalidRequest},
	} {
		assert.ErrorIs(t, s.add(c.id, c.p, p0), c.want, name)
		assert.ErrorIs(t, s.end(c.id, c.p, true), c.want, name)
		assert.ErrorIs(t, s.verify(c.id, c.p, p0)[0], c.want, name)
	}
	assert.ErrorIs(t, s.end("id", r.Producer, true), kerr.InvalidTxnState, "without a transaction")
}

func TestInitAbortsWhatIsOpenAndFencesItsProducer(t *testing.T) {
	s := newStage(t)
	old := s.init("id", nil).Producer
	require.NoError(t, s.add("id", old, p0))
	assert.ErrorIs(t, s.init("id", nil).Err, kerr.ConcurrentTransactions)
	assert.Equal(t, PrepareAbort, s.state("id"))
	require.Len(t, s.markers, 1)
	assert.False(t, s.markers[0].Commit)
	assert.Equal(t, Producer{1, 1}, s.markers[0].Producer, "the epoch of the marker keeps the old producer out of the partition")
	assert.ErrorIs(t, s.end("id", old, true), kerr.ProducerFenced)
	s.mark(nil)
	r := s.init("id", nil)
	require.NoError(t, r.Err)
	assert.Equal(t, Producer{1, 2}, r.Producer)
}

func TestAFenceThatCannotBeWrittenRaisesTheEpochOnce(t *testing.T) {
	s := newStage(t)
	old := s.init("id", nil).Producer
	require.NoError(t, s.add("id", old, p0))
	for range 3 {
		s.fail = kerr.NotEnoughReplicasAfterAppend
		assert.ErrorIs(t, s.init("id", nil).Err, kerr.CoordinatorNotAvailable)
		assert.Equal(t, Ongoing, s.state("id"))
		assert.Equal(t, int16(1), s.core.Describe("id").Producer.Epoch, "what may be in the log")
		assert.ErrorIs(t, s.end("id", old, true), kerr.ProducerFenced)
		assert.Empty(t, s.markers)
	}
	s.fail = nil
	assert.ErrorIs(t, s.init("id", nil).Err, kerr.ConcurrentTransactions)
	s.mark(nil)
	assert.Equal(t, Producer{1, 2}, s.init("id", nil).Producer)
}

func TestAProducerGetsItsNextEpochOnce(t *testing.T) {
	s := newStage(t)
	first := s.init("id", nil).Producer
	second := s.init("id", &first)
	require.NoError(t, second.Err)
	assert.Equal(t, Producer{1, 1}, second.Producer)
	assert.Equal(t, second, s.init("id", &first), "the answer was lost, and the request is repeated")
	assert.ErrorIs(t, s.init("id", &Producer{9, 1}).Err, kerr.ProducerFenced)
	third := s.init("id", nil).Producer
	assert.Equal(t, Producer{1, 2}, third)
	assert.ErrorIs(t, s.init("id", &second.Producer).Err, kerr.ProducerFenced, "somebody else came in between")
	assert.Equal(t, Producer{1, 3}, s.init("id", &third).Producer)
	assert.Equal(t, Producer{2, 0}, s.init("new", &Producer{77, 4}).Producer, "an id that has expired here")
}

func TestAnExhaustedProducerIDIsReplaced(t *testing.T) {
	for name, present := range map[string]bool{"a new producer": false, "the present one": true} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.init("id", nil)
			s.core.ids["id"].now.producer.Epoch = math.MaxInt16 - 1
			was := Producer{1, math.MaxInt16 - 1}
			if !present {
				r := s.init("id", nil)
				require.NoError(t, r.Err)
				assert.Equal(t, Producer{2, 0}, r.Producer)
				assert.ErrorIs(t, s.init("id", &was).Err, kerr.ProducerFenced)
				return
			}
			r := s.init("id", &was)
			require.NoError(t, r.Err)
			assert.Equal(t, Producer{2, 0}, r.Producer)
			assert.Equal(t, r, s.init("id", &was), "repeated")
			assert.ErrorIs(t, s.init("id", &Producer{1, 5}).Err, kerr.ProducerFenced)
		})
	}
}

func TestTheLastEpochIsKeptForTheFence(t *testing.T) {
	s := newStage(t)
	s.init("id", nil)
	s.core.ids["id"].now.producer.Epoch = math.MaxInt16 - 1
	p := Producer{1, math.MaxInt16 - 1}
	require.NoError(t, s.add("id", p, p0))
	s.nowMs += 2 * minute
	assert.Equal(t, 1, s.core.AbortTimedOut(s.nowMs))
	s.settle()
	assert.Equal(t, int16(math.MaxInt16), s.markers[0].Producer.Epoch)
	s.mark(nil)
	assert.Equal(t, Producer{2, 0}, s.init("id", nil).Producer)
}

func TestTimeoutsAreHeldToTheLimits(t *testing.T) {
	s := newStage(t)
	for _, ms := range []int32{0, -1, 900_001} {
		var r InitResult
		s.core.Init(s.nowMs, &InitRequest{ID: "id", TimeoutMs: ms}, func(x InitResult) { r = x })
		s.settle()
		assert.ErrorIs(t, r.Err, kerr.InvalidTransactionTimeout)
		assert.Equal(t, Producer{-1, -1}, r.Producer)
	}
	assert.ErrorIs(t, s.init("", nil).Err, kerr.InvalidRequest)
}

// Somebody sets the clock of the coordinator, or the next one has another: a transaction is open for as long as it is.
func TestH49_ClocksThatJumpNeitherEndATransactionNorKeepItOpen(t *testing.T) {
	const year = 365 * 24 * 60 * minute
	s := newStage(t)
	p := s.init("id", nil).Producer
	require.NoError(t, s.add("id", p, p0))
	s.nowMs += year
	s.core.Shift(year)
	assert.Zero(t, s.core.AbortTimedOut(s.nowMs), "it has just begun")

	next := NewLoader(record.Limits{MaxDecompressed: 1 << 20})
	for _, b := range s.log {
		next.Add(record.Entry(b))
	}
	s.core = NewCore(s.core.cfg, 6)
	s.nowMs -= 2 * year
	s.core.Loaded(s.nowMs, next)
	assert.Zero(t, s.core.AbortTimedOut(s.nowMs))
	s.nowMs += minute + 1
	assert.Equal(t, 1, s.core.AbortTimedOut(s.nowMs), "it began in two years")
}

func TestATransactionThatTakesTooLongIsAborted(t *testing.T) {
	s := newStage(t)
	p := s.init("id", nil).Producer
	require.NoError(t, s.add("id", p, p0))
	s.nowMs += minute
	require.NoError(t, s.add("id", p, p1), "activity does not prolong it")
	assert.Zero(t, s.core.AbortTimedOut(s.nowMs))
	s.nowMs++
	assert.Equal(t, 1, s.core.AbortTimedOut(s.nowMs))
	s.settle()
	assert.Zero(t, s.core.AbortTimedOut(s.nowMs))
	s.mark(nil)
	assert.Equal(t, CompleteAbort, s.state("id"))
	assert.ErrorIs(t, s.end("id", p, true), kerr.ProducerFenced)
}

func TestIdleIDsExpire(t *testing.T) {
	s := newStage(t)
	p := s.init("open", nil).Producer
	require.NoError(t, s.add("open", p, p0))
	s.init("idle", nil)
	s.nowMs += s.core.cfg.IDExpirationMs - 1
	assert.Zero(t, s.core.Expire(s.nowMs))
	s.nowMs++
	s.held = true
	assert.Equal(t, 1, s.core.Expire(s.nowMs))
	s.settle()
	assert.ErrorIs(t, s.init("idle", nil).Err, kerr.ConcurrentTransactions)
	s.held, s.fail = false, kerr.NotEnoughReplicas
	s.settle()
	assert.Equal(t, Empty, s.state("idle"))
	s.fail = nil
	assert.Equal(t, 1, s.core.Expire(s.nowMs))
	s.settle()
	assert.ErrorIs(t, s.core.Describe("idle").Err, kerr.TransactionalIDNotFound)
	assert.Equal(t, Ongoing, s.state("open"))
	s.restart()
	assert.ErrorIs(t, s.core.Describe("idle").Err, kerr.TransactionalIDNotFound)
}

func TestAnIDThatIsBeingWrittenWaits(t *testing.T) {
	s := newStage(t)
	p := s.init("id", nil).Producer
	s.held = true
	assert.ErrorIs(t, s.add("id", p, p0), errNotAnswered)
	assert.ErrorIs(t, s.add("id", p, p0), kerr.ConcurrentTransactions)
	assert.ErrorIs(t, s.end("id", p, true), kerr.ConcurrentTransactions)
	assert.ErrorIs(t, s.init("id", nil).Err, kerr.ConcurrentTransactions)
	assert.Equal(t, []error{kerr.TransactionAbortable}, s.verify("id", p, p0), "not committed in the log yet")
	s.held = false
	s.settle()
	assert.Equal(t, []error{nil, kerr.TransactionAbortable}, s.verify("id", p, p0, p1))
}

func TestErrorsOfTheLogAreToldAsErrorsOfTheCoordinator(t *testing.T) {
	for in, want := range map[error]error{
		kerr.UnknownTopicOrPartition:      kerr.CoordinatorNotAvailable,
		kerr.NotEnoughReplicas:            kerr.CoordinatorNotAvailable,
		kerr.NotEnoughReplicasAfterAppend: kerr.CoordinatorNotAvailable,
		kerr.RequestTimedOut:              kerr.CoordinatorNotAvailable,
		kerr.NotLeaderForPartition:        kerr.NotCoordinator,
		kerr.KafkaStorageError:            kerr.NotCoordinator,
		kerr.MessageTooLarge:              kerr.UnknownServerError,
		kerr.RecordListTooLarge:           kerr.UnknownServerError,
	} {
		s := newStage(t)
		p := s.init("id", nil).Producer
		s.fail = in
		assert.ErrorIs(t, s.add("id", p, p0), want)
		assert.Equal(t, Empty, s.state("id"), "nothing has changed")
	}
}

func TestOutcomesOfMarkers(t *testing.T) {
	for err, want := range map[error]State{
		kerr.InvalidProducerEpoch:         CompleteAbort, // somebody ended it there
		kerr.UnsupportedForMessageFormat:  CompleteAbort,
		kerr.UnknownTopicOrPartition:      PrepareAbort, // the leader may not know of it yet
		kerr.NotLeaderForPartition:        PrepareAbort,
		kerr.LeaderNotAvailable:           PrepareAbort,
		kerr.RequestTimedOut:              PrepareAbort,
		ErrNoPartition:                    PrepareAbort,
		kerr.TransactionCoordinatorFenced: PrepareAbort,
		kerr.CorruptMessage:               PrepareAbort,
		errors.New("connection lost"):     PrepareAbort,
	} {
		s := newStage(t)
		p := s.init("id", nil).Producer
		require.NoError(t, s.add("id", p, p0, p1))
		require.NoError(t, s.end("id", p, false))
		s.mark(err)
		assert.Equal(t, want, s.state("id"), err.Error())
		_, again := s.core.Next()
		assert.Equal(t, want == PrepareAbort && !errors.Is(err, kerr.TransactionCoordinatorFenced), again, err.Error())
	}
}

func TestADeletedPartitionDoesNotHoldUpATransaction(t *testing.T) {
	s := newStage(t)
	p := s.init("id", nil).Producer
	require.NoError(t, s.add("id", p, p0))
	require.NoError(t, s.end("id", p, true))
	began := s.nowMs
	for s.state("id") == PrepareCommit {
		s.mark(ErrNoPartition)
		if at, any := s.core.Next(); any {
			s.nowMs = at
			s.core.Tick(at)
			s.settle()
		}
		require.LessOrEqual(t, s.nowMs-began, int64(2*deletedMs))
	}
	assert.Equal(t, CompleteCommit, s.state("id"))
	assert.GreaterOrEqual(t, s.nowMs-began, int64(deletedMs), "a new coordinator may not know the partition yet")
}

// H49. A clock that is set a year ahead makes nothing missing for longer: the marker is written when the metadata know the partition again.
func TestNoPartitionIsTakenForDeletedByAClockThatIsSet(t *testing.T) {
	s := newStage(t)
	p := s.init("id", nil).Producer
	require.NoError(t, s.add("id", p, p0))
	require.NoError(t, s.end("id", p, false))
	const year = 365 * 24 * 3600 * 1000
	for range 3 {
		s.mark(ErrNoPartition)
		s.nowMs += year
		s.core.Shift(year)
		at, any := s.core.Next()
		require.True(t, any)
		s.nowMs = at
		s.core.Tick(at)
		s.settle()
	}
	require.Equal(t, PrepareAbort, s.state("id"))
	s.mark(nil)
	require.Equal(t, CompleteAbort, s.state("id"))
}

func TestCompletionIsWrittenUntilItIsInTheLog(t *testing.T) {
	s := newStage(t)
	p := s.init("id", nil).Producer
	require.NoError(t, s.add("id", p, p0))
	require.NoError(t, s.end("id", p, true))
	s.fail = kerr.NotEnoughReplicas
	s.mark(nil)
	for range 3 {
		assert.Equal(t, PrepareCommit, s.state("id"))
		at, any := s.core.Next()
		require.True(t, any)
		s.nowMs = at
		s.core.Tick(at)
		s.settle()
	}
	s.fail = nil
	s.nowMs += retryMs
	s.core.Tick(s.nowMs)
	s.settle()
	assert.Equal(t, CompleteCommit, s.state("id"))
}

func TestANewCoordinatorCarriesOutWhatWasDecided(t *testing.T) {
	for _, commit := range []bool{true, false} {
		s := newStage(t)
		p := s.init("id", nil).Producer
		require.NoError(t, s.add("id", p, p0, q0))
		require.NoError(t, s.end("id", p, commit))
		s.restart()
		assert.ErrorIs(t, s.add("id", p, p0), kerr.ConcurrentTransactions)
		require.Len(t, s.markers, 1)
		assert.Equal(t, &Marker{ID: "id", Producer: p, CoordinatorEpoch: 6, Commit: commit, Partitions: []TopicPartition{p0, q0}}, s.markers[0])
		s.mark(nil)
		assert.True(t, s.state("id") == CompleteCommit == commit)
	}
}

func TestAnUnloadedCoreAnswersWhatItHas(t *testing.T) {
	s := newStage(t)
	p := s.init("id", nil).Producer
	s.held = true
	err := errNotAnswered
	s.core.AddPartitions(s.nowMs, &PartitionsRequest{ID: "id", Producer: p, Partitions: []TopicPartition{p0}}, func(e error) { err = e })
	var r InitResult
	s.core.Init(s.nowMs, &InitRequest{ID: "new", TimeoutMs: 1}, func(x InitResult) { r = x })
	s.settle()
	s.core.Unload(s.nowMs)
	s.held = false
	s.settle()
	assert.ErrorIs(t, err, kerr.NotCoordinator)
	assert.ErrorIs(t, r.Err, kerr.NotCoordinator)
	assert.Empty(t, s.markers)
}

func TestListsAreFiltered(t *testing.T) {
	s := newStage(t)
	a := s.init("a", nil).Producer
	s.init("b", nil)
	require.NoError(t, s.add("a", a, p0))
	ids := func(req ListRequest) (list []string) {
		for _, l := range s.core.List(s.nowMs, &req) {
			list = append(list, l.ID)
		}
		return list
	}
	assert.Equal(t, []string{"a", "b"}, ids(ListRequest{LongerMs: -1}))
	assert.Equal(t, []string{"a"}, ids(ListRequest{LongerMs: -1, States: []State{Ongoing}}))
	assert.Equal(t, []string{"b"}, ids(ListRequest{LongerMs: -1, ProducerIDs: []int64{2}}))
	assert.Empty(t, ids(ListRequest{LongerMs: -1, NoState: true}))
	assert.Equal(t, []string{"a"}, ids(ListRequest{LongerMs: -1, NoState: true, States: []State{Ongoing}}), "states that there are count beside one that there is not")
	s.nowMs += 10
	assert.Equal(t, []string{"b"}, ids(ListRequest{LongerMs: 10}), "without a start it is as old as time, as in Kafka")
	assert.Equal(t, []string{"a", "b"}, ids(ListRequest{LongerMs: 9}))
}

func TestLegalTransitions(t *testing.T) {
	legal := map[State]string{
		Empty: "Empty Ongoing Dead", Ongoing: "Ongoing PrepareCommit PrepareAbort PrepareEpochFence", PrepareCommit: "CompleteCommit", PrepareAbort: "CompleteAbort",
		CompleteCommit: "Empty Ongoing Dead", CompleteAbort: "Empty Ongoing Dead", Dead: "", PrepareEpochFence: "PrepareAbort",
	}
	for from := Empty; from <= PrepareEpochFence; from++ {
		got := ""
		for to := Empty; to <= PrepareEpochFence; to++ {
			if mayFollow(from, to) {
				got += " " + to.String()
			}
		}
		if got != "" {
			got = got[1:]
		}
		assert.Equal(t, legal[from], got, from.String())
		known, ok := ParseState(from.String())
		assert.True(t, ok)
		assert.Equal(t, from, known)
	}
	assert.Panics(t, func() { mustFollow("id", Empty, PrepareCommit) })
}
