package group

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/coordinator"
	"barnabas/broker/record"
	"barnabas/integration/smallworld"
)

// The small world of a group: two members, one partition, a few commits, one of them in a transaction, and everything that
// can happen to them, in every order (integration/smallworld). The coordinators are real cores; their log is a list. An append
// is committed later, or times out and is in the log all the same; the coordinator moves with what it had appended or without
// that, and the one before goes on until it notices; a member vanishes and comes again; a commit stays on its way as long as
// it likes.
//
// What holds in every state:
//
//   - no offset that was acknowledged, or committed by a marker, is lost or goes back (I15)
//   - what a transaction wants to commit is not seen before its marker, nor after it was aborted (I14); until then a fetch
//     that requires stable offsets is told so
//   - a partition has one owner in a generation, and who commits is of the latest (I16)
//
// And whatever has happened: once all is healed the group becomes stable and commits.

var smallWorldStates = flag.Int("smallworld", 10_000, "how many states of the small world to look at, from each beginning")

// Bounds of the world. Small ones are explored to a greater depth.
const (
	worldCommits  = 3
	worldMoves    = 2
	worldTimeouts = 1
	worldVanished = 1
	worldTicks    = 3
	worldRejoins  = 3
	worldProducer = 7
)

var worldPartition = TopicPartition{"t", 0}

// wentry is one record of the offsets partition.
type wentry struct {
	kv       coordinator.KeyValue
	producer int64 // of a transaction; record.NoProducerID: of none
	offset   int64 // that is committed; NoOffset for metadata and markers
	marker   bool
	commit   bool
}

// wcommit is a commit on its way.
// wmember is one client.
// wcoordinator is one coordinator, the last of them the present one.
type wcoordinator struct {
	core    *Core
	pending []*coordinator.Append
	gone    bool // it has noticed
}

type wtxn struct {
	acked        bool // the commit was answered
	asked, ended bool
	at           int // of its offset in the log; -1: nowhere yet
}

type smallWorld struct {
	nowMs        int64
	log          []wentry
	high         int // below is committed
	first        []int
	coordinators []*wcoordinator
	members      [2]*wmember
	owners       map[int32]string // by generation
	latest       int32            // generation of which somebody was told
	floor        int              // place in the log of the commit that was acknowledged last, plus one
	txn          wtxn
	tried        int64
	timeouts     int
	vanished     int
	ticks        int
	rejoins      int
	plant        string
	err          error
}

func (w *smallWorld) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// newSmallWorld begins with a stable group of both, and with a commit of the transaction if it is open already.
func newSmallWorld(open bool, plant string) *smallWorld {
	w := &smallWorld{nowMs: startMs, plant: plant, owners: map[int32]string{}, txn: wtxn{at: -1}}
	w.members = [2]*wmember{{name: "A", state: "out"}, {name: "B", state: "out"}}
	w.coordinators = []*wcoordinator{{core: NewCore(w.config())}}
	for _, m := range w.members {
		w.join(m)
	}
	w.tick()
	w.committed()
	w.ticks, w.rejoins = 0, 0
	if open {
		for _, m := range w.members {
			w.send(m, &Producer{ID: worldProducer})
			w.arrive(m)
		}
		w.committed()
	}
	return w
}

func (w *smallWorld) config() CoreConfig {
	cfg := deskConfig()
	cfg.InitialRebalanceDelayMs, cfg.NewID = 0, func() string { return "" } // the client's id is enough
	return cfg
}

func (w *smallWorld) present() *wcoordinator { return w.coordinators[len(w.coordinators)-1] }

// take does what the cores want done. A coordinator that was deposed appends nothing.
func (w *smallWorld) take() {
	for again := true; again; {
		again = false
		for i, c := range w.coordinators {
			out := c.core.Take()
			for _, a := range out.Appends {
				again = true
				if i < len(w.coordinators)-1 && w.plant != "deposed coordinators append" {
					a.Ended(w.nowMs, 0, kerr.NotLeaderForPartition)
					continue
				}
				w.append(c, a)
			}
			for _, answer := range out.Answers {
				again = true
				answer()
			}
		}
	}
}

func (w *smallWorld) append(c *wcoordinator, a *coordinator.Append) {
	first := len(w.log)
	for _, kv := range a.Records {
		e := wentry{kv: kv, producer: record.NoProducerID, offset: NoOffset}
		if a.Producer != nil {
			e.producer = a.Producer.ID
		}
		if k, _ := readKey(kv.Key); k.isOffset {
			v, _ := readOffset(kv.Value)
			e.offset = v.offset
		}
		w.log = append(w.log, e)
	}
	switch {
	case a.Producer != nil && w.txn.ended:
		w.log = w.log[:first] // its partition asks for the transaction (KIP-890)
		a.Ended(w.nowMs, 0, kerr.InvalidTxnState)
	case c != w.present():
		w.high = len(w.log)
		a.Ended(w.nowMs, int64(first), nil)
	case w.plant == "answers do not wait for the replicas":
		a.Ended(w.nowMs, int64(first), nil)
		a.Done = nil
		fallthrough
	default:
		c.pending, w.first = append(c.pending, a), append(w.first, first)
	}
}

// committed: the oldest append is.
func (w *smallWorld) committed() bool {
	c := w.present()
	if len(c.pending) == 0 {
		return false
	}
	a, first := c.pending[0], w.first[0]
	c.pending, w.first = c.pending[1:], w.first[1:]
	w.high = first + len(a.Records)
	a.Ended(w.nowMs, int64(first), nil)
	w.take()
	return true
}

// timesOut: the oldest append is in the log, and its coordinator does not learn whether it is committed.
func (w *smallWorld) timesOut() bool {
	c := w.present()
	if len(c.pending) == 0 || w.timeouts == worldTimeouts {
		return false
	}
	w.timeouts++
	a, first := c.pending[0], w.first[0]
	c.pending, w.first = c.pending[1:], w.first[1:]
	w.high = first + len(a.Records) // it is, a little later
	a.Ended(w.nowMs, 0, kerr.RequestTimedOut)
	w.take()
	return true
}

// move makes another broker coordinator, which has all of the log or what was committed. The one before does not know yet.
func (w *smallWorld) move(all bool) bool {
	old := w.present()
	if len(w.coordinators) > worldMoves || all && len(old.pending) == 0 {
		return false
	}
	if !all {
		w.log = w.log[:w.high]
	}
	w.high = len(w.log)
	next := &wcoordinator{core: NewCore(w.config())}
	w.coordinators = append(w.coordinators, next)
	for _, a := range old.pending {
		a.Ended(w.nowMs, 0, kerr.NotLeaderForPartition)
	}
	old.pending, w.first = nil, nil
	l := NewLoader(record.Limits{})
	list := w.log
	if w.plant == "not all is loaded" && len(list) > 0 {
		list = list[:len(list)-1]
	}
	for i, e := range list {
		l.Add(record.Entry(e.batch(int64(i))))
	}
	if l.First != nil {
		w.fail("load: %v", l.First)
	}
	next.core.Loaded(w.nowMs, l)
	w.take()
	return true
}

func (e *wentry) batch(at int64) []byte {
	o := record.BuilderOptions{BaseOffset: at, Control: e.marker}
	if e.producer != record.NoProducerID {
		o.Producer = &record.Producer{ID: e.producer, Transactional: true}
	}
	b := record.NewBuilder(o)
	key, value := e.kv.Key, e.kv.Value
	if e.marker {
		key, value = []byte{0, 0, 0, byte(record.Abort)}, make([]byte, 6)
		if e.commit {
			key[3] = byte(record.Commit)
		}
	}
	b.Append(startMs, key, value)
	out, err := b.Build()
	if err != nil {
		panic(err)
	}
	return out
}

// notices: a coordinator of before learns that it is none any more.
func (w *smallWorld) notices() bool {
	for _, c := range w.coordinators[:len(w.coordinators)-1] {
		if !c.gone {
			c.gone = true
			c.core.Unload(w.nowMs)
			w.take()
			return true
		}
	}
	return false
}

// coordinator is the one that a member knows; nil, and from then on it knows the present one, if that has noticed.
// heard wraps what a member does with an answer: nobody hears it who has vanished.
// refused is what a client does with an error.
// send lets the owner commit, in a transaction or not.
// arrive: a commit comes to the coordinator that it was sent to.
// place is where an offset stands in the log; -1: nowhere.
func (w *smallWorld) place(offset int64) int {
	for i, e := range w.log {
		if e.offset == offset {
			return i
		}
	}
	return -1
}

func (w *smallWorld) acknowledged(req *CommitRequest) {
	at := w.place(req.Offsets[0].Offset)
	if req.Producer != nil {
		w.txn.acked, w.txn.at = true, at
		return
	}
	w.floor = max(w.floor, at+1)
}

// end writes the transaction's marker, which is committed at once.
func (w *smallWorld) end(commit bool) bool {
	c := w.present()
	if commit && !w.txn.acked || !w.txn.asked || w.txn.ended || len(c.pending) > 0 {
		return false
	}
	w.txn.ended = true
	w.log = append(w.log, wentry{producer: worldProducer, offset: NoOffset, marker: true, commit: commit})
	w.high = len(w.log)
	if commit {
		w.floor = max(w.floor, w.txn.at+1)
	}
	if w.plant != "markers do not reach the group" {
		c.core.EndTransaction(worldProducer, commit)
	}
	w.take()
	return true
}

// tick lets the time come at which something is due.
func (w *smallWorld) tick() bool {
	next := int64(0)
	for _, c := range w.coordinators {
		if at, any := c.core.Next(); any && (next == 0 || at < next) {
			next = at
		}
	}
	if next == 0 || w.ticks == worldTicks {
		return false
	}
	w.ticks++
	w.pass(max(next, w.nowMs))
	return true
}

func (w *smallWorld) pass(until int64) {
	w.nowMs = until
	for _, c := range w.coordinators {
		c.core.Tick(w.nowMs)
	}
	w.take()
}

// fetch is what a consumer is told that asks where to go on.
func (w *smallWorld) fetch(core *Core, stable bool) (offset int64, err error) {
	core.FetchOffsets(&FetchOffsetsRequest{Group: "g", Partitions: []TopicPartition{worldPartition}, RequireStable: stable}, func(r FetchOffsetsResult) {
		offset, err = r.Offsets[0].Offset, r.Offsets[0].Err
	})
	w.take()
	return offset, err
}

// check asks the present coordinator. One that was deposed answers nothing by heart (coordinator.Shell.DoCertainly).
func (w *smallWorld) check() error {
	core := w.present().core
	if w.plant == "deposed coordinators answer by heart" {
		core = w.coordinators[0].core
	}
	if w.err != nil {
		return w.err
	}
	offset, _ := w.fetch(core, false)
	at := -1
	if offset != NoOffset {
		if at = w.place(offset); at < 0 {
			return fmt.Errorf("I15: offset %d is told, which is not in the log", offset)
		}
		if e := w.log[at]; e.producer != record.NoProducerID && !w.endedWith(true) {
			return fmt.Errorf("I14: offset %d of a transaction that is not committed is told", offset)
		}
	}
	if at+1 < w.floor {
		return fmt.Errorf("I15: offset %d is told, which is older than what was acknowledged", offset)
	}
	if w.txn.acked && !w.txn.ended {
		if _, err := w.fetch(core, w.plant != "open offsets are taken for stable"); !errors.Is(err, kerr.UnstableOffsetCommit) {
			return fmt.Errorf("I14: an offset is told as stable while a transaction may change it: %v", err)
		}
	}
	return w.err
}

func (w *smallWorld) endedWith(commit bool) bool {
	for _, e := range w.log {
		if e.marker {
			return e.commit == commit
		}
	}
	return false
}

type smallEvent struct {
	name string
	do   func(*smallWorld) bool
}

func smallEvents() []smallEvent {
	list := []smallEvent{
		{"an append is committed", (*smallWorld).committed},
		{"an append times out", (*smallWorld).timesOut},
		{"the coordinator moves, what was not committed is lost", func(w *smallWorld) bool { return w.move(false) }},
		{"the coordinator moves with all that it appended", func(w *smallWorld) bool { return w.move(true) }},
		{"a coordinator notices that it is none", (*smallWorld).notices},
		{"the transaction is committed", func(w *smallWorld) bool { return w.end(true) }},
		{"the transaction is aborted", func(w *smallWorld) bool { return w.end(false) }},
		{"time passes", (*smallWorld).tick},
	}
	for i, name := range []string{"A", "B"} {
		list = append(list,
			smallEvent{name + " joins", func(w *smallWorld) bool { return w.join(w.members[i]) }},
			smallEvent{name + " vanishes", func(w *smallWorld) bool { return w.vanish(w.members[i]) }},
			smallEvent{name + " sends a commit", func(w *smallWorld) bool { return w.send(w.members[i], nil) }},
			smallEvent{name + " sends a commit of the transaction", func(w *smallWorld) bool { return w.send(w.members[i], &Producer{ID: worldProducer}) }},
			smallEvent{"the commit of " + name + " arrives", func(w *smallWorld) bool { return w.arrive(w.members[i]) }},
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

// Heal implements smallworld.World.
func (w *smallWorld) Heal() error {
	for w.notices() || w.committed() || w.arrive(w.members[0]) || w.arrive(w.members[1]) {
	}
	w.end(false)
	for round := 0; round < 60 && !w.rests(); round++ {
		w.rejoins = 0
		for _, m := range w.members {
			if m.state == "in" {
				w.beat(m)
			} else {
				w.join(m)
			}
		}
		w.committed()
		w.pass(w.nowMs + 3)
		if err := w.check(); err != nil {
			return err
		}
	}
	if !w.rests() {
		return fmt.Errorf("the group is not stable: %+v; members %+v, %+v", w.present().core.Describe("g"), w.members[0], w.members[1])
	}
	owner := w.members[0]
	if !owner.owns {
		owner = w.members[1]
	}
	w.tried = 0
	w.send(owner, nil)
	owner.commit.req.Offsets[0].Offset = 100
	w.arrive(owner)
	w.committed()
	if offset, err := w.fetch(w.present().core, true); offset != 100 || err != nil {
		return fmt.Errorf("offset %d, %v after a commit", offset, err)
	}
	return w.check()
}

// rests tells that both are members of one stable generation, and one of them has the partition.
func (w *smallWorld) rests() bool {
	g, a, b := w.present().core.groups["g"], w.members[0], w.members[1]
	return g != nil && g.state == Stable && len(g.order) == 2 && g.members[a.id] != nil && g.members[b.id] != nil && a.state == "in" && b.state == "in" &&
		a.generation == g.generation && b.generation == g.generation && a.owns != b.owns && min(a.to, b.to) == len(w.coordinators)-1
}

// beat is a heartbeat, which tells of rebalances.
// Key implements smallworld.World.
func (w *smallWorld) Key(b []byte) []byte {
	num := func(list ...int64) {
		for _, n := range list {
			b = binary.AppendVarint(b, n)
		}
	}
	text := func(s string) { b = append(append(b, s...), 0) }
	num(int64(w.high), int64(w.floor), w.tried, int64(w.timeouts), int64(w.vanished), int64(w.ticks), int64(w.rejoins), int64(w.latest), int64(w.txn.at))
	num(flag01(w.txn.acked), flag01(w.txn.asked), flag01(w.txn.ended))
	for i, e := range w.log {
		num(e.producer, e.offset, flag01(e.marker), flag01(e.commit))
		if e.offset == NoOffset && !e.marker {
			if g, err := readGroup("g", e.kv.Value); err == nil && (i >= w.high || i == w.lastMetadata()) {
				num(int64(g.generation))
				for _, m := range g.order {
					text(m.id)
					num(int64(len(m.assignment)))
				}
			}
		}
	}
	for _, c := range w.coordinators {
		num(int64(len(c.pending)), flag01(c.gone))
		if g := c.core.groups["g"]; g != nil {
			b = w.groupKey(b, c.core, g)
		}
	}
	for _, m := range w.members {
		text(m.id)
		text(m.state)
		num(int64(m.lives), int64(m.ids), int64(m.generation), flag01(m.owns), int64(m.to), flag01(m.leads))
		if m.commit != nil {
			text(m.commit.req.MemberID)
			num(int64(m.commit.to), m.commit.req.Offsets[0].Offset, int64(m.commit.req.Generation), flag01(m.commit.req.Producer != nil))
		}
	}
	for generation := range w.latest + 1 {
		text(w.owners[generation])
	}
	return b
}

func (w *smallWorld) lastMetadata() int {
	for i := w.high - 1; i >= 0; i-- {
		if e := w.log[i]; e.offset == NoOffset && !e.marker {
			return i
		}
	}
	return -1
}

func (w *smallWorld) groupKey(b []byte, c *Core, g *group) []byte {
	num := func(list ...int64) {
		for _, n := range list {
			b = binary.AppendVarint(b, n)
		}
	}
	due := func(t *timer) {
		if t == nil || t.index == notSet {
			num(-1)
		} else {
			num(t.atMs-w.nowMs, t.heapMs-w.nowMs)
		}
	}
	num(int64(g.state), int64(g.generation), int64(len(g.unsynced)), flag01(g.initial.on))
	b = append(b, g.leader...)
	due(g.rebalance)
	due(g.syncs)
	for _, m := range g.order {
		b = append(append(b, m.id...), 0)
		num(int64(len(m.assignment)), flag01(m.fresh), flag01(m.joining != nil), flag01(m.syncing != nil), flag01(g.unsynced[m.id]))
		due(m.session)
	}
	v := g.committed[worldPartition]
	num(v.offset, v.at)
	if u := g.underway[worldPartition]; u != nil {
		num(u.offset, u.at)
	}
	if o := g.open[worldProducer][worldPartition]; o != nil {
		num(o.offset, o.at)
	}
	num(int64(len(c.open)))
	return b
}

func flag01(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func exploreGroup(open bool, plant string, limit int) smallworld.Found {
	var names []string
	for _, e := range theSmallEvents {
		names = append(names, e.name)
	}
	return smallworld.Explore(names, func() smallworld.World { return newSmallWorld(open, plant) }, limit)
}

// smallWorldLimit is small where each step takes long, as under the race detector.
func smallWorldLimit() int {
	if testing.Short() {
		return min(*smallWorldStates, 2000)
	}
	return *smallWorldStates
}

func TestSmallWorldBreaksNoInvariant(t *testing.T) {
	for name, open := range map[string]bool{"a stable group": false, "a transaction is open": true} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			found := exploreGroup(open, "", smallWorldLimit())
			require.NoError(t, found.Err, "%s", strings.Join(found.History, "; "))
			t.Logf("%d states, %d events deep, in %v", found.States, found.Depth, time.Since(began).Round(time.Millisecond))
		})
	}
}

// An exploration that finds nothing proves nothing: what flows between the cores, their log and the members is altered as if
// a guard were not there, and that must be found.
func TestSmallWorldFindsPlantedFaults(t *testing.T) {
	for _, plant := range []string{
		"answers do not wait for the replicas", "not all is loaded", "deposed coordinators append", "deposed coordinators answer by heart",
		"generations of commits are not compared", "offsets of a transaction without their generation", "open offsets are taken for stable",
		"markers do not reach the group",
	} {
		t.Run(plant, func(t *testing.T) {
			found := exploreGroup(false, plant, 20_000)
			require.Error(t, found.Err)
			t.Logf("%d states: %v: %s", found.States, found.Err, strings.Join(found.History, "; "))
		})
	}
}
