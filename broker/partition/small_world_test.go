package partition

import (
	"encoding/binary"
	"flag"
	"fmt"
	"hash/maphash"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

// The small world: two replicas, three records, three leader epochs, and everything that can happen, in every order.
// Both replicas are the real core; logs are lists of epochs, the network and the controller a few lines. Whatever is on
// its way may arrive, be lost, or wait; a broker may die at any point, and with FlushAlways its power too.

var smallWorld = flag.Int("smallworld", 20_000, "how many states of the small world to look at, for each policy")

const (
	worldRecords = 3
	worldEpochs  = 3
	worldDeaths  = 2
)

// wrecord is one record: the epoch it was written in and its number, which no other record has.
type wrecord struct{ epoch, number int8 }

// wlog is a replica's log; epochs is where each leader epoch began here (-1: not at all).
type wlog struct {
	records [worldRecords]wrecord
	end     int8
	durable int8
	starts  [worldEpochs + 1]int8
	hw      int8 // of a follower
}

// worder is a LeaderAndIsr on its way.
type worder struct {
	there         bool
	epoch, leader int8
	version, isr  int8
	broker        int8 // the registration it is for
}

// wfetch is a fetch on its way to the leader, or its answer back.
type wfetch struct {
	there, answered      bool
	epoch, at, last      int8
	registration         int8
	records              [worldRecords]wrecord
	end, hw              int8
	diverging            bool
	foundEpoch, foundEnd int8
}

// wchange is an ISR change on its way to the controller, or its answer back.
type wchange struct {
	there, answered, refused bool
	serial                   int64
	epoch, expects, isr      int8
	version                  int8
}

type wstate struct {
	cores [2]core
	wrest
}

// wrest is what is not in the cores; it can be compared as a whole.
type wrest struct {
	logs  [2]wlog
	up    [2]bool
	known [2]int8 // registrations
	seen  [2]int8 // registrations that the controller dealt with; 0: it is dead

	leader, epoch, version, isr int8 // of the state in ZooKeeper; leader 0: none

	orders  [2]worder
	fetch   wfetch
	changes [2]wchange

	written   int8
	committed [worldRecords]int8
	commits   int8
	deaths    int8
}

var worldTime = time.Unix(1000, 0)

func members(mask int8) (ids []int32) {
	for id := int32(1); id <= 2; id++ {
		if mask&(1<<id) != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

func mask(ids []int32) (m int8) {
	for _, id := range ids {
		m |= 1 << id
	}
	return m
}

func firstState(policy FlushPolicy) *wstate {
	s := &wstate{wrest: wrest{up: [2]bool{true, true}, known: [2]int8{1, 1}, seen: [2]int8{1, 1}, leader: 1, epoch: 1, version: 1, isr: 1<<1 | 1<<2}}
	for i := range s.cores {
		s.cores[i] = newCore(int32(i+1), maxLag)
		s.cores[i].flush = policy
		for e := range s.logs[i].starts {
			s.logs[i].starts[e] = -1
		}
	}
	s.tell()
	return s
}

// copy is deep as far as anything is changed in place.
func (s *wstate) copy() *wstate {
	c := *s
	for i := range c.cores {
		k := &c.cores[i]
		k.remotes = slices.Clone(k.remotes)
		if k.inFlight != nil {
			f := *k.inFlight
			k.inFlight = &f
		}
	}
	return &c
}

// tell sends the state to both replicas; what was on its way is overtaken, or lost.
func (s *wstate) tell() {
	for i := range s.orders {
		s.orders[i] = worder{there: true, epoch: s.epoch, leader: s.leader, version: s.version, isr: s.isr, broker: s.seen[i]}
	}
}

func (l *wlog) position() commitlog.Position {
	return commitlog.Position{Offset: int64(l.end), SegmentBase: 0, SegmentPos: int64(l.end)}
}

// endOf is the largest epoch in the log that is not above the asked one, and where it ends.
func (l *wlog) endOf(epoch int8) (found, end int8) {
	found, end = -1, -1
	for e := min(epoch, worldEpochs); e >= 0; e-- {
		if l.starts[e] >= 0 {
			found = e
			break
		}
	}
	if found < 0 {
		return -1, -1
	}
	for e := found + 1; e <= worldEpochs; e++ {
		if l.starts[e] >= 0 {
			return found, l.starts[e]
		}
	}
	return found, l.end
}

func (l *wlog) latest() int8 {
	found, _ := l.endOf(worldEpochs)
	return found
}

func (l *wlog) cut(to int8) {
	to = min(to, l.end)
	clear(l.records[to:])
	l.end, l.durable, l.hw = to, min(l.durable, to), min(l.hw, to)
	for e := range l.starts {
		if l.starts[e] >= to {
			l.starts[e] = -1
		}
	}
}

func (s *wstate) live(of int) map[int32]BrokerInfo {
	alive := map[int32]BrokerInfo{}
	for i := range s.seen {
		if s.seen[i] > 0 || i == of {
			alive[int32(i+1)] = BrokerInfo{Epoch: int64(s.known[i])}
		}
	}
	return alive
}

// after does what follows from a step of a leader, and notes what it commits.
func (s *wstate) after(i int, st step) error {
	c, l := &s.cores[i], &s.logs[i]
	if st.change != nil && !s.changes[i].there {
		s.changes[i] = wchange{there: true, serial: st.change.serial, epoch: int8(st.change.LeaderEpoch), expects: int8(st.change.PartitionEpoch)}
		for _, m := range st.change.ISR {
			s.changes[i].isr |= 1 << m.ID
		}
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.role != roleLeader {
		return nil
	}
	if c.hw.Offset > int64(l.end) {
		return fmt.Errorf("I2: high watermark %d of a log that ends at %d", c.hw.Offset, l.end)
	}
	return s.commit(i, int8(c.hw.Offset))
}

// commit: what is below a leader's high watermark is shown to consumers (I1).
func (s *wstate) commit(i int, hw int8) error {
	l := &s.logs[i]
	for o := range hw {
		switch n := l.records[o].number; {
		case o < s.commits && s.committed[o] != n:
			return fmt.Errorf("I1: offset %d was committed as record %d and is committed as %d", o, s.committed[o], n)
		case o >= s.commits:
			s.committed[o], s.commits = n, o+1
		}
	}
	return nil
}

// always is what holds in every state.
func (s *wstate) always() error {
	for i := range s.logs {
		c, l := &s.cores[i], &s.logs[i]
		if s.up[i] && c.role == roleLeader && int8(c.leaderEpoch) == s.epoch {
			for o := range s.commits {
				if o >= l.end || l.records[o].number != s.committed[o] {
					return fmt.Errorf("I1: leader %d of epoch %d does not have record %d at offset %d", i+1, s.epoch, s.committed[o], o)
				}
			}
		}
		if s.isr&(1<<(i+1)) != 0 && s.seen[i] == s.known[i] && l.end < s.commits {
			return fmt.Errorf("I6: in-sync replica %d ends at %d, committed are %d", i+1, l.end, s.commits)
		}
	}
	a, b := &s.logs[0], &s.logs[1]
	same := false
	for o := min(a.end, b.end) - 1; o >= 0; o-- {
		same = same || a.records[o].epoch == b.records[o].epoch
		if same && a.records[o] != b.records[o] {
			return fmt.Errorf("I4: offset %d is %v and %v, and the logs agree further on", o, a.records[o], b.records[o])
		}
	}
	if s.leader > 0 && s.isr&(1<<s.leader) == 0 {
		return fmt.Errorf("I5: leader %d is not in the ISR", s.leader)
	}
	return nil
}

// happening is one thing that can happen in a state: nil if it cannot.
type wevent struct {
	name string
	do   func(s *wstate) (bool, error)
}

func worldEvents(policy FlushPolicy) []wevent {
	var events []wevent
	add := func(name string, do func(*wstate) (bool, error)) { events = append(events, wevent{name, do}) }
	for i := range 2 {
		o := 1 - i
		n := i + 1
		leads := func(s *wstate) bool { return s.up[i] && s.cores[i].role == roleLeader }
		add(fmt.Sprintf("%d appends", n), func(s *wstate) (bool, error) {
			c, l := &s.cores[i], &s.logs[i]
			if !leads(s) || s.written == worldRecords || l.end == worldRecords {
				return false, nil
			}
			s.written++
			l.records[l.end] = wrecord{int8(c.leaderEpoch), s.written}
			l.end++
			return true, s.after(i, step{highWatermark: c.advance(worldTime, l.position(), 1)})
		})
		add(fmt.Sprintf("%d flushes", n), func(s *wstate) (bool, error) {
			c, l := &s.cores[i], &s.logs[i]
			if !s.up[i] || l.durable == l.end {
				return false, nil
			}
			l.durable = l.end
			c.flushed(l.position())
			return true, s.after(i, step{highWatermark: c.advance(worldTime, l.position(), 1)})
		})
		add(fmt.Sprintf("%d hears the order", n), func(s *wstate) (bool, error) { return s.obey(i) })
		add(fmt.Sprintf("the order to %d is lost", n), func(s *wstate) (bool, error) {
			there := s.orders[i].there
			s.orders[i] = worder{}
			return there, nil
		})
		add(fmt.Sprintf("the order to %d is sent again", n), func(s *wstate) (bool, error) {
			if s.orders[i].there || s.seen[i] == 0 || int8(s.cores[i].leaderEpoch) == s.epoch {
				return false, nil
			}
			s.orders[i] = worder{there: true, epoch: s.epoch, leader: s.leader, version: s.version, isr: s.isr, broker: s.seen[i]}
			return true, nil
		})
		add(fmt.Sprintf("%d fetches", n), func(s *wstate) (bool, error) {
			c, l := &s.cores[i], &s.logs[i]
			if !s.up[i] || c.role != roleFollower || int(c.leader) != o+1 || s.fetch.there || s.written == 0 && l.end > 0 {
				return false, nil
			}
			if policy == FlushAlways {
				l.durable = l.end
			}
			s.fetch = wfetch{there: true, epoch: int8(c.leaderEpoch), at: l.end, last: l.latest(), registration: s.known[i]}
			return true, nil
		})
		add(fmt.Sprintf("%d answers the fetch", n), func(s *wstate) (bool, error) { return s.serve(i, o) })
		add(fmt.Sprintf("%d gets the answer", n), func(s *wstate) (bool, error) { return s.replicate(i) })
		add(fmt.Sprintf("%d finds the other slow", n), func(s *wstate) (bool, error) {
			c := &s.cores[i]
			if !leads(s) || c.inFlight != nil || len(c.isr) < 2 {
				return false, nil
			}
			for r := range c.remotes {
				c.remotes[r].caughtUp = time.Time{}
			}
			change := c.maybeShrink(worldTime, int64(s.logs[i].end))
			return change != nil, s.after(i, step{change: change})
		})
		add(fmt.Sprintf("%d asks again", n), func(s *wstate) (bool, error) {
			c := &s.cores[i]
			if !leads(s) || c.inFlight == nil || c.inFlight.retryAt.IsZero() || s.changes[i].there {
				return false, nil
			}
			c.inFlight.retryAt, c.inFlight.tries = worldTime, 0
			return true, s.after(i, step{change: c.due(worldTime)})
		})
		add(fmt.Sprintf("the controller judges the change of %d", n), func(s *wstate) (bool, error) {
			ch := &s.changes[i]
			if !ch.there || ch.answered {
				return false, nil
			}
			ch.answered = true
			newcomer := ch.isr &^ s.isr
			ch.refused = s.leader != int8(n) || s.epoch != ch.epoch || s.version != ch.expects && s.isr != ch.isr ||
				newcomer&(1<<(o+1)) != 0 && s.seen[o] == 0
			if !ch.refused && s.version == ch.expects {
				s.isr, s.version = ch.isr, s.version+1
			}
			ch.version = s.version
			return true, nil
		})
		add(fmt.Sprintf("%d hears of its change", n), func(s *wstate) (bool, error) {
			ch := s.changes[i]
			if !ch.there || !ch.answered {
				return false, nil
			}
			s.changes[i] = wchange{}
			if !s.up[i] {
				return true, nil
			}
			got, err := ISRChanged{LeaderID: int32(n), LeaderEpoch: int32(ch.epoch), ISR: members(ch.isr), PartitionEpoch: int32(ch.version)}, error(nil)
			if ch.refused {
				got, err = ISRChanged{PartitionEpoch: None}, kerr.InvalidUpdateVersion
			}
			return true, s.after(i, s.cores[i].changed(worldTime, ch.serial, got, err, s.logs[i].position(), 1))
		})
		add(fmt.Sprintf("the change of %d, or its answer, is lost", n), func(s *wstate) (bool, error) {
			ch := s.changes[i]
			if !ch.there {
				return false, nil
			}
			s.changes[i] = wchange{}
			if s.up[i] {
				return true, s.after(i, s.cores[i].changed(worldTime, ch.serial, ISRChanged{PartitionEpoch: None}, fmt.Errorf("no answer"), s.logs[i].position(), 1))
			}
			return true, nil
		})
		add(fmt.Sprintf("%d dies and comes back", n), func(s *wstate) (bool, error) {
			if s.deaths == worldDeaths {
				return false, nil
			}
			s.deaths++
			s.known[i]++
			if policy == FlushAlways {
				s.logs[i].cut(s.logs[i].durable)
			}
			s.cores[i] = newCore(int32(n), maxLag)
			s.cores[i].flush = policy
			s.orders[i], s.changes[i] = worder{}, wchange{}
			return true, nil
		})
		add(fmt.Sprintf("the controller sees that %d was away", n), func(s *wstate) (bool, error) {
			if s.seen[i] == s.known[i] || s.epoch == worldEpochs {
				return false, nil
			}
			s.seen[i] = s.known[i]
			s.bounce(i, o)
			return true, nil
		})
	}
	add("the fetch, or its answer, is lost", func(s *wstate) (bool, error) {
		there := s.fetch.there
		s.fetch = wfetch{}
		return there, nil
	})
	add("the preferred leader is elected", func(s *wstate) (bool, error) {
		if s.epoch == worldEpochs || s.leader == 1 || s.isr&(1<<1) == 0 || s.seen[0] != s.known[0] {
			return false, nil
		}
		s.leader, s.epoch, s.version = 1, s.epoch+1, s.version+1
		s.tell()
		return true, nil
	})
	return events
}

// bounce takes a broker that was away out of the ISR, unless it is the last.
func (s *wstate) bounce(i, o int) {
	if s.isr == 1<<(i+1) {
		s.leader = int8(i + 1)
	} else {
		s.isr &^= 1 << (i + 1)
		s.leader = int8(o + 1)
	}
	s.epoch, s.version = s.epoch+1, s.version+1
	s.tell()
	for k := range s.cores {
		if s.up[k] {
			s.cores[k].setBrokers(s.live(k))
		}
	}
}

func (s *wstate) obey(i int) (bool, error) {
	o, c, l := s.orders[i], &s.cores[i], &s.logs[i]
	if !o.there || !s.up[i] {
		return false, nil
	}
	s.orders[i] = worder{}
	if int32(o.epoch) <= c.leaderEpoch || o.broker < s.known[i] {
		return true, nil
	}
	c.setBrokers(s.live(i))
	order := &LeaderAndISRPartition{Topic: "t", Leader: int32(o.leader), LeaderEpoch: int32(o.epoch), ISR: members(o.isr), PartitionEpoch: int32(o.version),
		Replicas: []int32{1, 2}, ControllerEpoch: 1}
	s.changes[i] = wchange{}
	if int(o.leader) != i+1 {
		if c.role == roleLeader {
			l.hw = int8(min(c.hw.Offset, int64(l.end)))
		}
		c.follow(order)
		return true, nil
	}
	if l.latest() < o.epoch {
		l.starts[o.epoch] = l.end
	}
	hw := commitlog.Position{Offset: int64(l.hw), SegmentBase: -1}
	if c.role == roleLeader {
		hw = c.hw
	}
	c.lead(worldTime, order, l.position(), hw, int64(l.durable))
	c.serials = 0 // answers of earlier epochs were dropped above
	return true, s.after(i, step{highWatermark: c.advance(worldTime, l.position(), 1)})
}

func (s *wstate) serve(i, from int) (bool, error) {
	f, c, l := &s.fetch, &s.cores[i], &s.logs[i]
	if !f.there || f.answered || !s.up[i] || c.role != roleLeader {
		return false, nil
	}
	if fence(int32(f.epoch), c.leaderEpoch) != nil || c.stale(int32(from+1), int64(f.registration)) {
		s.fetch = wfetch{}
		return true, nil
	}
	if s.known[from] != f.registration && !s.up[from] {
		s.fetch = wfetch{}
		return true, nil
	}
	f.answered = true
	if f.last >= 0 {
		if found, end := l.endOf(f.last); found < f.last || end < f.at {
			f.diverging, f.foundEpoch, f.foundEnd = true, found, end
			return true, nil
		}
	}
	if f.at > l.end {
		s.fetch = wfetch{}
		return true, nil
	}
	f.records, f.end, f.hw = l.records, l.end, int8(c.hw.Offset)
	at := commitlog.Position{Offset: int64(f.at), SegmentBase: 0, SegmentPos: int64(f.at)}
	return true, s.after(i, c.fetched(worldTime, int32(from+1), at, 0, int64(f.registration), l.position(), 1))
}

func (s *wstate) replicate(i int) (bool, error) {
	f, c, l := s.fetch, &s.cores[i], &s.logs[i]
	if !f.there || !f.answered || !s.up[i] {
		return false, nil
	}
	if c.role == roleLeader || int32(f.epoch) != c.leaderEpoch || f.at != l.end || f.registration != s.known[i] {
		if int(c.leader) == i+1 || f.registration != s.known[i] || int32(f.epoch) != c.leaderEpoch {
			s.fetch = wfetch{}
			return true, nil
		}
		return false, nil
	}
	s.fetch = wfetch{}
	if f.diverging {
		own, end := l.endOf(f.foundEpoch)
		switch {
		case f.foundEpoch < 0, own < 0:
			end = max(f.foundEnd, 0)
		case own == f.foundEpoch:
			end = min(end, f.foundEnd)
		}
		l.cut(end)
		return true, nil
	}
	for l.end < f.end {
		r := f.records[l.end]
		if l.latest() < r.epoch {
			l.starts[r.epoch] = l.end
		}
		l.records[l.end] = r
		l.end++
	}
	l.hw = max(l.hw, int8(followed(int64(f.hw), 0, int64(l.end))))
	return true, nil
}

// coreBytes is the cores in bytes, without what does not matter: times that are long ago or not.
func (s *wstate) coreBytes(b []byte) []byte {
	for i := range s.cores {
		c := &s.cores[i]
		b = append(b, byte(c.role), byte(c.leader), byte(c.leaderEpoch), byte(c.partitionEpoch), byte(c.epochStart), byte(mask(c.isr)), byte(c.hw.Offset), byte(c.durable.Offset))
		b = binary.AppendVarint(b, c.serials)
		if f := c.inFlight; f != nil { // this controller does not look at registrations
			b = append(b, byte(mask(ids(&ISRChange{ISR: f.want}))), byte(f.adds), bit(f.retryAt.IsZero()))
		}
		for _, r := range c.remotes {
			b = append(b, byte(r.id), byte(r.end.Offset), byte(r.brokerEpoch), bit(r.caughtUp.IsZero()), bit(r.lastFetch.IsZero()), byte(r.leaderEndThen), bit(r.rebooted), bit(r.turnedAway))
		}
		b = append(b, byte(c.liveEpoch(1)), byte(c.liveEpoch(2)), bit(c.calmUntil.IsZero()))
	}
	return b
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func TestSmallWorldBreaksNoInvariant(t *testing.T) {
	for name, policy := range map[string]FlushPolicy{"processes die": FlushAsKafka, "power is cut": FlushAlways} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			seed := maphash.MakeSeed()
			type known struct {
				parent int32
				event  int8
			}
			seen := map[uint64]struct{}{}
			var ways []known
			events := worldEvents(policy)
			start := firstState(policy)
			queue := []*wstate{start}
			ways = append(ways, known{-1, 0})
			var buf []byte
			depth := func(i int32) (names []string) {
				for ; ways[i].parent >= 0; i = ways[i].parent {
					names = append(names, events[ways[i].event].name)
				}
				slices.Reverse(names)
				return names
			}
			for at := 0; at < len(queue) && len(ways) < *smallWorld; at++ {
				s := queue[at]
				queue[at] = nil
				for e := range events {
					next := s.copy()
					happened, err := events[e].do(next)
					if !happened {
						continue
					}
					if err == nil {
						err = next.always()
					}
					if err != nil {
						ways = append(ways, known{int32(at), int8(e)})
						require.NoError(t, err, "%q", depth(int32(len(ways)-1)))
					}
					buf = next.coreBytes(buf[:0])
					var h maphash.Hash
					h.SetSeed(seed)
					_, _ = h.Write(buf)
					maphash.WriteComparable(&h, next.wrest)
					hash := h.Sum64()
					if _, old := seen[hash]; old {
						continue
					}
					seen[hash] = struct{}{}
					queue = append(queue, next)
					ways = append(ways, known{int32(at), int8(e)})
				}
			}
			t.Logf("%d states, up to %d events deep, in %v", len(ways), len(depth(int32(len(ways)-1))), time.Since(began).Round(time.Millisecond))
		})
	}
}
