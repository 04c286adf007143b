package txn

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/coordinator"
	"barnabas/broker/record"
)

// A cluster of one coordinator at a time, a few partitions and a few producers,
// all from one seed: appends that fail or are lost with the coordinator that made
// them, markers that fail or arrive late, producers that crash and leave writes
// behind that arrive later. The judge reads as a read_committed consumer does.

// attempt is one transaction of one producer, as its application knows it.
type attempt struct {
	serial  int
	writes  []write // acknowledged
	asked   bool    // EndTxn(commit) was sent
	told    error   // what EndTxn was answered, with success or with something final
	outcome string  // "committed", "aborted", "" not known
}

// write is one record.
type write struct {
	tp     TopicPartition
	serial int // of the attempt
	number int
}

type entry struct {
	write
	producer int64
	marker   bool
	commit   bool
}

// shelf is one partition as its leader has it.
type shelf struct {
	log              []entry
	epochs           map[int64]int16
	coordinatorEpoch map[int64]int32
	open             map[int64]int // first index
	guards           map[int64]*int
}

func newShelf() *shelf {
	return &shelf{epochs: map[int64]int16{}, coordinatorEpoch: map[int64]int32{}, open: map[int64]int{}, guards: map[int64]*int{}}
}

func (p *shelf) end(m *Marker) error {
	id := m.Producer.ID
	if known, found := p.epochs[id]; found && known > m.Producer.Epoch {
		return kerr.InvalidProducerEpoch
	}
	if p.coordinatorEpoch[id] > m.CoordinatorEpoch {
		return kerr.TransactionCoordinatorFenced
	}
	p.log = append(p.log, entry{producer: id, marker: true, commit: m.Commit})
	p.epochs[id], p.coordinatorEpoch[id] = m.Producer.Epoch, m.CoordinatorEpoch
	delete(p.open, id)
	delete(p.guards, id)
	return nil
}

// append takes a record into an open transaction, or with the guard of a
// confirmation that no marker has come after.
func (p *shelf) append(by Producer, w write, guard *int) error {
	if known, found := p.epochs[by.ID]; found && known > by.Epoch {
		return kerr.InvalidProducerEpoch
	}
	if _, open := p.open[by.ID]; !open {
		if guard == nil || p.guards[by.ID] != guard {
			return kerr.InvalidTxnState
		}
		p.open[by.ID] = len(p.log)
		delete(p.guards, by.ID)
	}
	p.epochs[by.ID] = by.Epoch
	p.log = append(p.log, entry{write: w, producer: by.ID})
	return nil
}

// visible is what a read_committed consumer sees.
func (p *shelf) visible() []write {
	stable := len(p.log)
	for _, first := range p.open {
		stable = min(stable, first)
	}
	var list []write
	for i, e := range p.log[:stable] {
		if e.marker {
			continue
		}
		for _, later := range p.log[i:] {
			if later.marker && later.producer == e.producer {
				if later.commit {
					list = append(list, e.write)
				}
				break
			}
		}
	}
	return list
}

// actor is one application with a transactional id.
type actor struct {
	id       string
	producer Producer
	ready    bool
	waiting  bool
	life     int // answers to an earlier life are not heard
	now      *attempt
	added    map[TopicPartition]bool
	ending   bool
	commit   bool
}

// world is all of it.
type world struct {
	t        *testing.T
	r        *rand.Rand
	nowMs    int64
	core     *Core
	log      []record.Batch // of the transaction topic's partition
	high     int            // committed
	pending  []pendingAppend
	wanted   []*Wanted
	markers  []*Marker
	lateOnes []*Marker // of coordinators that were deposed
	nextID   int64
	shelves  map[TopicPartition]*shelf
	parts    []TopicPartition
	actors   []*actor
	attempts []*attempt
	delayed  []func()
	seen     map[TopicPartition][]write
	moves    int
	calm     bool
}

type pendingAppend struct {
	a  *coordinator.Append
	at int // where it ends in the log; 0: it did not reach it
}

func newTestWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 1)), nowMs: 1_000_000, shelves: map[TopicPartition]*shelf{}, seen: map[TopicPartition][]write{}}
	for i := range 4 {
		tp := TopicPartition{"t", int32(i)}
		w.parts = append(w.parts, tp)
		w.shelves[tp] = newShelf()
	}
	for i := range 3 {
		w.actors = append(w.actors, &actor{id: fmt.Sprint("id", i)})
	}
	w.core = NewCore(CoreConfig{MaxTimeoutMs: 900_000, IDExpirationMs: 1 << 40}, 0)
	return w
}

func (w *world) chance(percent int) bool { return !w.calm && w.r.IntN(100) < percent }

// take queues what the core wants, and answers.
func (w *world) take() {
	for {
		out := w.core.Take()
		for _, a := range out.Appends {
			p := pendingAppend{a: a}
			if !w.chance(5) {
				b := record.NewBuilder(record.BuilderOptions{})
				b.Append(w.nowMs, a.Records[0].Key, a.Records[0].Value)
				batch, err := b.Build()
				require.NoError(w.t, err)
				w.log = append(w.log, batch)
				p.at = len(w.log)
			}
			w.pending = append(w.pending, p)
		}
		w.markers = append(w.markers, out.Markers...)
		w.wanted = append(w.wanted, out.Wanted...)
		for _, answer := range out.Answers {
			answer()
		}
		if len(out.Answers) == 0 {
			return
		}
	}
}

// appended answers the oldest append: committed, not there, or there and not
// known to be committed.
func (w *world) appended() {
	if len(w.pending) == 0 {
		return
	}
	p := w.pending[0]
	w.pending = w.pending[1:]
	switch {
	case p.at == 0:
		p.a.Ended(w.nowMs, 0, kerr.NotEnoughReplicas)
	case w.chance(8):
		p.a.Ended(w.nowMs, 0, kerr.RequestTimedOut)
	default:
		w.high = max(w.high, p.at)
		p.a.Ended(w.nowMs, 0, nil)
	}
}

func (w *world) marked() {
	if len(w.markers) == 0 {
		return
	}
	i := w.r.IntN(len(w.markers))
	m := w.markers[i]
	w.markers = slices.Delete(w.markers, i, i+1)
	errs := make([]error, len(m.Partitions))
	for i, tp := range m.Partitions {
		if w.chance(10) {
			errs[i] = kerr.NotLeaderForPartition
			continue
		}
		if errs[i] = w.shelves[tp].end(m); w.chance(10) {
			errs[i] = kerr.RequestTimedOut // the answer is lost
		}
	}
	w.core.Marked(w.nowMs, m, errs)
}

// move makes another broker coordinator. What was not committed may be lost.
func (w *world) move() {
	old := w.core
	old.Unload(w.nowMs)
	for _, p := range w.pending {
		p.a.Ended(w.nowMs, 0, kerr.NotLeaderForPartition)
	}
	for _, x := range w.wanted {
		old.Identified(w.nowMs, x, NoProducerID, errors.New("not needed"))
	}
	w.pending, w.wanted = nil, nil
	w.take()
	w.lateOnes = append(w.lateOnes, w.markers...)
	w.markers = nil
	w.log = w.log[:w.high+w.r.IntN(len(w.log)-w.high+1)]
	w.high = len(w.log) // whoever loads waits for that
	w.moves++
	w.core = NewCore(old.cfg, int32(w.moves))
	l := NewLoader(record.Limits{})
	for _, b := range w.log {
		l.Add(record.Entry(b))
	}
	require.NoError(w.t, l.First)
	w.core.Loaded(w.nowMs, l)
	w.take()
}

// late lets a marker arrive whose coordinator was deposed since.
func (w *world) late() {
	if len(w.lateOnes) == 0 {
		return
	}
	m := w.lateOnes[0]
	w.lateOnes = w.lateOnes[1:]
	for _, tp := range m.Partitions {
		_ = w.shelves[tp].end(m)
	}
}

func retriable(err error) bool {
	return isAny(err, kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.ConcurrentTransactions)
}

// act is a step of an application.
func (w *world) act(a *actor) {
	switch {
	case a.waiting:
		if w.chance(2) {
			w.crash(a)
		}
	case !a.ready:
		ask(w, a, func(reply func(InitResult)) { w.core.Init(w.nowMs, &InitRequest{ID: a.id, TimeoutMs: 60_000}, reply) }, func(r InitResult) {
			if r.Err == nil {
				a.producer, a.ready = r.Producer, true
			}
		})
	case w.chance(3):
		w.crash(a)
	case a.now == nil:
		a.now, a.added, a.ending = &attempt{serial: len(w.attempts)}, map[TopicPartition]bool{}, false
		w.attempts = append(w.attempts, a.now)
	case a.ending:
		w.endAttempt(a)
	case len(a.now.writes) > 0 && w.r.IntN(4) == 0:
		a.ending, a.commit = true, w.r.IntN(3) > 0
	default:
		w.write(a, w.parts[w.r.IntN(len(w.parts))])
	}
}

// ask sends a request whose answer is heard in this life only.
func ask[T any](w *world, a *actor, send func(func(T)), heard func(T)) {
	a.waiting = true
	life := a.life
	send(func(x T) {
		if a.life == life {
			a.waiting = false
			heard(x)
		}
	})
	w.take()
}

func (w *world) crash(a *actor) {
	a.life++
	a.waiting, a.ready, a.now = false, false, nil
}

func (w *world) write(a *actor, tp TopicPartition) {
	if !a.added[tp] {
		ask(w, a, func(reply func(error)) {
			w.core.AddPartitions(w.nowMs, &PartitionsRequest{ID: a.id, Producer: a.producer, Partitions: []TopicPartition{tp}}, reply)
		}, func(err error) {
			switch {
			case err == nil:
				a.added[tp] = true
			case !retriable(err):
				w.crash(a)
			}
		})
		return
	}
	by, x, life := a.producer, write{tp, a.now.serial, len(a.now.writes)}, a.life
	shelf := w.shelves[tp]
	var guard *int
	if _, open := shelf.open[by.ID]; !open {
		if shelf.guards[by.ID] == nil {
			shelf.guards[by.ID] = new(int)
		}
		guard = shelf.guards[by.ID]
		refused := errNotAnswered
		w.core.Verify(&PartitionsRequest{ID: a.id, Producer: by, Partitions: []TopicPartition{tp}}, func(errs []error) { refused = errs[0] })
		w.take()
		if refused != nil {
			return
		}
	}
	arrive := func() {
		if err := shelf.append(by, x, guard); err == nil && a.life == life && a.now != nil && a.now.serial == x.serial && !a.ending {
			a.now.writes = append(a.now.writes, x)
		}
		if a.life == life {
			a.waiting = false
		}
	}
	if w.chance(25) { // on its way; the application waits, and may crash
		a.waiting = true
		w.delayed = append(w.delayed, arrive)
		return
	}
	arrive()
}

func (w *world) endAttempt(a *actor) {
	x := a.now
	x.asked = x.asked || a.commit
	ask(w, a, func(reply func(error)) {
		w.core.End(w.nowMs, &EndRequest{ID: a.id, Producer: a.producer, Commit: a.commit}, reply)
	}, func(err error) {
		if retriable(err) {
			return
		}
		x.told = err
		switch {
		case err != nil:
			w.crash(a)
		case a.commit:
			x.outcome = "committed"
		default:
			x.outcome = "aborted"
		}
		a.now = nil
	})
}

// step is one thing that happens.
func (w *world) step() {
	switch n := w.r.IntN(100); {
	case n < 45:
		w.act(w.actors[w.r.IntN(len(w.actors))])
	case n < 65:
		w.appended()
	case n < 85:
		w.marked()
	case n < 90:
		if len(w.delayed) > 0 {
			f := w.delayed[0]
			w.delayed = w.delayed[1:]
			f()
		}
	case n < 92:
		w.late()
	case n < 93:
		if w.chance(30) {
			w.move()
		}
	case n < 95:
		w.core.AbortTimedOut(w.nowMs)
	default:
		w.nowMs += int64(w.r.IntN(2000))
		w.core.Tick(w.nowMs)
	}
	for _, x := range w.wanted {
		w.nextID++
		w.core.Identified(w.nowMs, x, w.nextID, nil)
	}
	w.wanted = nil
	w.take()
}

// judge holds what can be read to what could be read before: it only grows.
func (w *world) judge() {
	for _, tp := range w.parts {
		now := w.shelves[tp].visible()
		require.GreaterOrEqual(w.t, len(now), len(w.seen[tp]))
		require.True(w.t, slices.Equal(w.seen[tp], now[:len(w.seen[tp])]), "what was read of %v has changed", tp)
		w.seen[tp] = now
	}
}

// finish lets everything come to its end.
func (w *world) finish() {
	w.calm = true
	for _, a := range w.actors {
		w.crash(a)
	}
	for _, f := range w.delayed {
		f()
	}
	w.delayed = nil
	idle := 0
	for i := 0; idle < 200; i++ {
		require.Less(w.t, i, 100_000, "it never comes to rest")
		w.nowMs += 1000
		w.core.Tick(w.nowMs)
		w.core.AbortTimedOut(w.nowMs)
		w.take()
		if len(w.pending)+len(w.markers) == 0 {
			idle++
		} else {
			idle = 0
		}
		w.appended()
		w.take()
		w.marked()
		w.take()
	}
	for len(w.lateOnes) > 0 {
		w.late()
	}
}

func (w *world) verdict() {
	found := map[int][]write{}
	for _, tp := range w.parts {
		require.Empty(w.t, w.shelves[tp].open, "%v: the last stable offset is stuck", tp)
		for _, x := range w.shelves[tp].visible() {
			found[x.serial] = append(found[x.serial], x)
		}
	}
	for _, x := range w.attempts {
		got, want := found[x.serial], slices.Clone(x.writes)
		by := func(a, b write) int { return a.number - b.number }
		slices.SortFunc(got, by)
		switch {
		case x.outcome == "committed":
			require.Equal(w.t, want, got, "attempt %d was committed", x.serial)
		case x.outcome == "aborted" || !x.asked:
			require.Empty(w.t, got, "attempt %d was not committed", x.serial)
		case len(got) > 0:
			require.Equal(w.t, want, got, "attempt %d is torn", x.serial)
		}
	}
	for _, a := range w.actors {
		if d := w.core.Describe(a.id); d.Err == nil {
			require.True(w.t, d.State.mayExpire(), "%s is %s", a.id, d.State)
		}
	}
}

func TestTransactionsAreWholeWhateverFails(t *testing.T) {
	committed, moves := 0, 0
	for seed := range uint64(150) {
		w := newTestWorld(t, seed)
		ok := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w.t = t
			for range 3000 {
				w.step()
				if w.r.IntN(20) == 0 {
					w.judge()
				}
			}
			w.finish()
			w.judge()
			w.verdict()
		})
		if !ok {
			return
		}
		for _, x := range w.attempts {
			if x.outcome == "committed" {
				committed++
			}
		}
		moves += w.moves
	}
	require.Greater(t, committed, 1000)
	require.Greater(t, moves, 300)
	t.Logf("%d committed, %d moves", committed, moves)
}
