package txn

import (
	"encoding/binary"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/coordinator"
	"barnabas/broker/record"
	"barnabas/integration/smallworld"
)

// The small world of a transaction: one transactional id, an application and the one that takes its place, two partitions,
// and everything that can happen to them, in every order (integration/smallworld). The coordinators are real cores; their log
// is a list, the partitions are those of random_test.go. An append is committed later, is not done, or times out and is in
// the log all the same; the coordinator moves with what it had appended or without that; markers are lost, answered late, and
// arrive when their coordinator is none any more; so do the records of an application whose place was taken.
//
// What holds in every state:
//
//   - what a reader of committed records has seen stays, and nothing comes before it
//   - nothing is seen of a transaction whose commit nobody asked for, or that was aborted (I13)
//   - an application whose place was taken writes nothing more
//
// And whatever has happened: once all is healed each transaction is seen whole or not at all, as its application was told
// (I14), and none is open (H51).

var smallWorldStates = flag.Int("smallworld", 8_000, "how many states of the small world to look at, from each beginning")

// Bounds of the world.
const (
	worldMoves    = 2
	worldFailures = 1
	worldAttempts = 2 // of the first application; its successor has one
	worldLost     = 2 // answers of markers
)

var worldPartitions = []TopicPartition{{"t", 0}, {"t", 1}}

// wapp is one application with the transactional id.
// wlate is a record on its way.
// wmarker is a marker on its way to one partition.
type wmarker struct {
	*Marker
	from int // which coordinator sent it
}

type smallWorld struct {
	nowMs    int64
	log      []coordinator.KeyValue
	high     int
	pending  []pendingAppend
	core     *Core
	moves    int
	markers  []wmarker
	shelves  [2]*shelf
	apps     [2]*wapp
	attempts []*attempt
	strays   []*wlate // records of transactions that their application has aborted
	seen     [2][]write
	nextID   int64
	failures int
	lost     int
	refused  []TopicPartition // markers that failed and will be sent again
	waited   bool             // a transaction has timed out
	plant    string
	err      error
}

// beginnings are states from which the world is explored: what comes late in the life of a transaction would be too deep.
func newSmallWorld(beginning int, plant string) *smallWorld {
	w := &smallWorld{nowMs: 1_000_000, plant: plant, shelves: [2]*shelf{newShelf(), newShelf()}, apps: [2]*wapp{{}, {}}}
	w.core = NewCore(CoreConfig{MaxTimeoutMs: 900_000, IDExpirationMs: 1 << 40}, 0)
	w.init(w.apps[0])
	w.committed()
	for _, happens := range beginnings[beginning].events {
		happens(w, w.apps[0])
	}
	return w
}

func (w *smallWorld) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (w *smallWorld) take() {
	for {
		out := w.core.Take()
		for _, a := range out.Appends {
			w.log = append(w.log, a.Records[0])
			if w.plant == "answers do not wait for the replicas" {
				a.Ended(w.nowMs, 0, nil)
				a = &coordinator.Append{}
			}
			w.pending = append(w.pending, pendingAppend{a, len(w.log)})
		}
		for _, m := range out.Markers {
			for _, tp := range m.Partitions {
				one := *m
				one.Partitions = []TopicPartition{tp}
				w.markers = append(w.markers, wmarker{&one, w.moves})
			}
		}
		for _, x := range out.Wanted {
			w.nextID++
			w.core.Identified(w.nowMs, x, w.nextID, nil)
		}
		for _, answer := range out.Answers {
			answer()
		}
		if len(out.Answers)+len(out.Appends)+len(out.Wanted) == 0 {
			return
		}
	}
}

func (w *smallWorld) oldest() (p pendingAppend, ok bool) {
	if len(w.pending) == 0 {
		return p, false
	}
	p, w.pending = w.pending[0], w.pending[1:]
	return p, true
}

func (w *smallWorld) committed() bool {
	p, ok := w.oldest()
	if ok {
		w.high = p.at
		p.a.Ended(w.nowMs, 0, nil)
		w.take()
	}
	return ok
}

// fails: the oldest append, which is the only one of the id, is not in the log, or is there without its coordinator's knowing.
func (w *smallWorld) fails(there bool) bool {
	if w.failures == worldFailures || len(w.pending) != 1 {
		return false
	}
	w.failures++
	p, _ := w.oldest()
	err := kerr.RequestTimedOut
	if !there {
		w.log, err = w.log[:p.at-1], kerr.NotEnoughReplicas
	}
	p.a.Ended(w.nowMs, 0, err)
	w.take()
	return true
}

func (w *smallWorld) move(all bool) bool {
	if w.moves == worldMoves || all && len(w.log) == w.high {
		return false
	}
	w.moves++
	old := w.core
	old.Unload(w.nowMs)
	for _, p := range w.pending {
		p.a.Ended(w.nowMs, 0, kerr.NotLeaderForPartition)
	}
	w.pending, w.refused = nil, nil
	w.take()
	if !all {
		w.log = w.log[:w.high]
	}
	w.high = len(w.log) // whoever loads waits for that
	w.core = NewCore(old.cfg, int32(w.moves))
	list := w.log
	if w.plant == "not all is loaded" {
		list = list[:max(len(list)-1, 1)]
	}
	l := NewLoader(record.Limits{})
	for _, kv := range list {
		b := record.NewBuilder(record.BuilderOptions{})
		b.Append(w.nowMs, kv.Key, kv.Value)
		batch, err := b.Build()
		if err != nil {
			panic(err)
		}
		l.Add(record.Entry(batch))
	}
	if l.First != nil {
		w.fail("load: %v", l.First)
	}
	w.core.Loaded(w.nowMs, l)
	w.take()
	return true
}

// next takes the oldest marker for a partition, of the present coordinator or of one that was deposed.
func (w *smallWorld) next(partition int, old bool) *Marker {
	i := slices.IndexFunc(w.markers, func(m wmarker) bool {
		return m.Partitions[0] == worldPartitions[partition] && (m.from < w.moves) == old
	})
	if i < 0 {
		return nil
	}
	m := w.markers[i].Marker
	w.markers = slices.Delete(slices.Clone(w.markers), i, i+1)
	return m
}

// marked: the oldest marker for a partition arrives.
func (w *smallWorld) marked(partition int, answered bool) bool {
	if !answered && w.lost == worldLost {
		return false
	}
	m := w.next(partition, false)
	if m == nil {
		return false
	}
	err := w.shelves[partition].end(m)
	if !answered {
		w.lost++
		err = kerr.RequestTimedOut
	}
	w.answer(m, err)
	return true
}

// markedLate: a marker arrives whose coordinator was deposed. Nobody hears the answer.
func (w *smallWorld) markedLate(partition int) bool {
	m := w.next(partition, true)
	if m == nil {
		return false
	}
	if w.plant == "coordinator epochs of markers are not compared" {
		w.shelves[partition].coordinatorEpoch[m.Producer.ID] = -1
	}
	_ = w.shelves[partition].end(m)
	return true
}

// missed: the oldest marker for a partition does not arrive.
func (w *smallWorld) missed(partition int) bool {
	if w.lost == worldLost {
		return false
	}
	m := w.next(partition, false)
	if m == nil {
		return false
	}
	w.lost++
	w.answer(m, kerr.NotLeaderForPartition)
	return true
}

func (w *smallWorld) answer(m *Marker, err error) {
	if err != nil && w.plant == "markers are sent once" {
		err = nil
	}
	if err != nil {
		w.refused = append(w.refused, m.Partitions[0])
	}
	w.core.Marked(w.nowMs, m, []error{err})
	w.take()
}

// tick lets the time come at which markers are sent again.
func (w *smallWorld) tick() bool {
	at, any := w.core.Next()
	if !any {
		return false
	}
	w.nowMs, w.refused = max(w.nowMs, at), nil
	w.core.Tick(w.nowMs)
	w.take()
	return true
}

// timeout lets the time of every transaction be over.
func (w *smallWorld) timeout() bool {
	if w.waited {
		return false
	}
	w.waited = true
	w.nowMs += 60_001
	if w.core.AbortTimedOut(w.nowMs) == 0 {
		w.waited = false
		return false
	}
	w.take()
	return true
}

// gaveUp tells that an application can do nothing more.
// begin makes both partitions part of the next transaction.
// write sends the next record, to one partition after the other.
// arrive: the record comes to its partition.
// strayArrives: a record comes whose transaction its application has aborted.
// end commits when all is written, or aborts at any time.
// check reads as a consumer of committed records does.
func (w *smallWorld) check() error {
	for i, shelf := range w.shelves {
		now := shelf.visible()
		if w.plant == "open transactions are taken for stable" {
			now = nil
			for _, e := range shelf.log {
				if !e.marker {
					now = append(now, e.write)
				}
			}
		}
		if len(now) < len(w.seen[i]) || !slices.Equal(w.seen[i], now[:len(w.seen[i])]) {
			return fmt.Errorf("what was read of partition %d has changed: %v, %v", i, w.seen[i], now)
		}
		w.seen[i] = now
		for _, x := range now {
			if a := w.attempts[x.serial]; !a.asked || a.outcome == "aborted" {
				return fmt.Errorf("I13: a record of transaction %d is seen, which is not committed", x.serial)
			}
		}
	}
	return w.err
}

type smallEvent struct {
	name string
	do   func(*smallWorld) bool
}

func smallEvents() []smallEvent {
	list := []smallEvent{
		{"an append is committed", (*smallWorld).committed},
		{"an append is not done", func(w *smallWorld) bool { return w.fails(false) }},
		{"an append times out", func(w *smallWorld) bool { return w.fails(true) }},
		{"the coordinator moves, what was not committed is lost", func(w *smallWorld) bool { return w.move(false) }},
		{"the coordinator moves with all that it appended", func(w *smallWorld) bool { return w.move(true) }},
		{"time passes", (*smallWorld).tick},
		{"transactions time out", (*smallWorld).timeout},
		{"a record arrives whose transaction was aborted", (*smallWorld).strayArrives},
		{"B asks for its producer id", func(w *smallWorld) bool { return w.init(w.apps[1]) }},
	}
	for i := range worldPartitions {
		list = append(list,
			smallEvent{fmt.Sprint("a marker is written to ", i), func(w *smallWorld) bool { return w.marked(i, true) }},
			smallEvent{fmt.Sprint("a marker is written to ", i, ", the answer is lost"), func(w *smallWorld) bool { return w.marked(i, false) }},
			smallEvent{fmt.Sprint("a marker of a coordinator of before is written to ", i), func(w *smallWorld) bool { return w.markedLate(i) }},
			smallEvent{fmt.Sprint("a marker for ", i, " is lost"), func(w *smallWorld) bool { return w.missed(i) }},
		)
	}
	for i, name := range []string{"A", "B"} {
		list = append(list,
			smallEvent{name + " begins", func(w *smallWorld) bool { return w.begin(w.apps[i]) }},
			smallEvent{name + " sends a record", func(w *smallWorld) bool { return w.write(w.apps[i]) }},
			smallEvent{"the record of " + name + " arrives", func(w *smallWorld) bool { return w.arrive(w.apps[i]) }},
			smallEvent{name + " commits", func(w *smallWorld) bool { return w.end(w.apps[i], true) }},
			smallEvent{name + " aborts", func(w *smallWorld) bool { return w.end(w.apps[i], false) }},
		)
	}
	return list
}

var theSmallEvents = smallEvents()

// Do implements smallworld.World.
func (w *smallWorld) Do(event int) (bool, error) {
	if !theSmallEvents[event].do(w) {
		return false, nil
	}
	return true, w.check()
}

// Heal implements smallworld.World. The applications are gone.
func (w *smallWorld) Heal() error {
	for w.arrive(w.apps[0]) || w.arrive(w.apps[1]) || w.strayArrives() {
	}
	for range 60 {
		w.waited = false
		again := w.committed() || w.marked(0, true) || w.marked(1, true) || w.markedLate(0) || w.markedLate(1) || w.tick() || w.timeout()
		if err := w.check(); err != nil {
			return err
		}
		if !again {
			break
		}
	}
	if d := w.core.Describe("x"); d.Err != nil || !d.State.mayExpire() {
		return fmt.Errorf("the transaction is %v", d.State)
	}
	for i, shelf := range w.shelves {
		if len(shelf.open) > 0 {
			return fmt.Errorf("the last stable offset of partition %d is stuck", i)
		}
	}
	found := make([]int, len(w.attempts))
	for _, list := range w.seen {
		for _, x := range list {
			found[x.serial]++
		}
	}
	for i, x := range w.attempts {
		whole := len(x.writes)
		switch {
		case x.outcome == "committed" && found[i] != whole:
			return fmt.Errorf("I14: transaction %d was committed with %d records, %d are seen", i, whole, found[i])
		case found[i] != 0 && found[i] != whole:
			return fmt.Errorf("I14: transaction %d is torn: %d of %d records", i, found[i], whole)
		}
	}
	return nil
}

// Key implements smallworld.World.
func (w *smallWorld) Key(b []byte) []byte {
	num := func(list ...int) {
		for _, n := range list {
			b = binary.AppendVarint(b, int64(n))
		}
	}
	status := func(s *status) {
		num(int(s.producer.ID), int(s.producer.Epoch), int(s.last.ID), int(s.last.Epoch), int(s.state), len(s.partitions))
	}
	late := func(l *wlate) {
		num(l.serial, l.number, int(l.by.Epoch), flag01(l.guard != nil), flag01(l.guard != nil && w.shelves[l.tp.Partition].guards[l.by.ID] == l.guard))
	}
	num(w.high, len(w.log), w.moves, w.failures, w.lost, len(w.pending), int(w.nextID), flag01(w.waited))
	for _, kv := range w.log[max(w.high-1, 0):] {
		s, _ := readValue(kv.Value)
		status(&s)
	}
	if t := w.core.ids["x"]; t != nil {
		status(&t.now)
		if num(flag01(t.next != nil), flag01(t.failedFence), len(t.left)); t.next != nil {
			status(t.next)
		}
		for _, tp := range worldPartitions {
			_, left := t.left[tp]
			num(flag01(left))
		}
	}
	num(len(w.core.retries), len(w.refused))
	for _, tp := range w.refused {
		num(int(tp.Partition))
	}
	for _, m := range w.markers {
		num(int(m.Partitions[0].Partition), w.moves-m.from, flag01(m.Commit), int(m.Producer.ID), int(m.Producer.Epoch))
	}
	for _, shelf := range w.shelves {
		num(-1)
		for _, e := range shelf.log {
			num(int(e.producer), e.serial, e.number, flag01(e.marker), flag01(e.commit))
		}
		for id := range w.nextID + 1 {
			first, open := shelf.open[id]
			num(int(shelf.epochs[id]), int(shelf.coordinatorEpoch[id]), flag01(open), first, flag01(shelf.guards[id] != nil))
		}
	}
	for _, a := range w.apps {
		num(int(a.producer.ID), int(a.producer.Epoch), flag01(a.ready), flag01(a.waiting), flag01(a.fenced), flag01(a.added), a.done, flag01(a.now != nil), flag01(a.late != nil))
		if a.late != nil {
			late(a.late)
		}
	}
	for _, l := range w.strays {
		late(l)
	}
	for _, x := range w.attempts {
		b = append(b, x.outcome...)
		num(len(x.writes), flag01(x.asked))
	}
	return b
}

func flag01(b bool) int {
	if b {
		return 1
	}
	return 0
}

func explore(beginning int, plant string, limit int) smallworld.Found {
	var names []string
	for _, e := range theSmallEvents {
		names = append(names, e.name)
	}
	return smallworld.Explore(names, func() smallworld.World { return newSmallWorld(beginning, plant) }, limit)
}

// smallWorldLimit is small where each step takes long, as under the race detector.
func smallWorldLimit() int {
	if testing.Short() {
		return min(*smallWorldStates, 2000)
	}
	return *smallWorldStates
}

func TestSmallWorldBreaksNoInvariant(t *testing.T) {
	for i, b := range beginnings {
		t.Run(b.name, func(t *testing.T) {
			began := time.Now()
			found := explore(i, "", smallWorldLimit())
			require.NoError(t, found.Err, "%s", strings.Join(found.History, "; "))
			t.Logf("%d states, %d events deep, in %v", found.States, found.Depth, time.Since(began).Round(time.Millisecond))
		})
	}
}

// An exploration that finds nothing proves nothing: what flows between the cores, their log, the partitions and the
// applications is altered as if a guard were not there, and that must be found.
func TestSmallWorldFindsPlantedFaults(t *testing.T) {
	for _, plant := range []struct {
		name      string
		beginning int
	}{
		{"answers do not wait for the replicas", 0},
		{"not all is loaded", 0},
		{"markers are sent once", 0},
		{"writes are not verified", 0},
		{"epochs of producers are not compared", 0},
		{"coordinator epochs of markers are not compared", len(beginnings) - 1},
		{"open transactions are taken for stable", 0},
	} {
		t.Run(plant.name, func(t *testing.T) {
			found := explore(plant.beginning, plant.name, 50_000)
			require.Error(t, found.Err)
			t.Logf("%d states: %v: %s", found.States, found.Err, strings.Join(found.History, "; "))
		})
	}
}
