package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/group"
)

// club is one consumer group as its clients are: members that join, share the partitions of a topic, work on them, fall
// asleep, leave in good order or without a word, and come again.
type club struct {
	s       *Sim
	name    string
	topic   string // what its members share
	members []*member
	book    *offsetBook
}

// member is one client of a group.
type member struct {
	s        *Sim
	club     *club
	instance *string // of a static member
	t        *transformer

	id          string // empty until told
	generation  int32
	coordinator *node // where it was told its assignment
	mine        []group.TopicPartition
	at          map[group.TopicPartition]int64 // where it goes on
	known       map[group.TopicPartition]bool  // that the offset was asked for
	// turn counts its lives: what belongs to an earlier one does not go on.
	turn int
	gone bool
	// retired: another process has its place already.
	retired bool
	asleep  bool
	held    []func()
}

const (
	memberSession   = 1000 * time.Millisecond
	memberRebalance = 1500 * time.Millisecond
	memberPatience  = 700 * time.Millisecond
	rangeProtocol   = "range"
)

// viaConnection asks a node for a client. answered is called once: with the answer, or without one when the patience is
// over. What comes to the node after that still has its effect only if it may be late: a connection keeps order, so one
// that is given up has to stand for all that was on it.
func viaConnection[R any](m *member, n *node, patience time.Duration, late bool, do func(*broker, func(R)), answered func(r R, came bool)) {
	s, over := m.s, false
	finish := func(r R, came bool) {
		if !over {
			over = true
			m.awake(func() { answered(r, came) })
		}
	}
	if n == nil {
		patience = 100 * time.Millisecond
	}
	s.w.in(patience, func() {
		var none R
		finish(none, false)
	})
	if n == nil {
		return
	}
	s.viaClient(n, func() {
		if over && !late || n.broker.logs == nil || n.broker.epoch == 0 || n.broker.failed {
			return
		}
		life := n.life
		do(n.broker, func(r R) {
			if n.life == life && !n.broker.failed {
				s.viaClientBack(n, func() { finish(r, true) })
			}
		})
		n.broker.afterwards()
	})
}

// begin is the start of a client process.
func (m *member) begin() {
	m.gone, m.id = false, ""
	m.again("")
}

// awake lets something happen to the process: now, or when it wakes up.
func (m *member) awake(do func()) {
	if m.asleep {
		m.held = append(m.held, do)
	} else {
		do()
	}
}

func (m *member) in(after time.Duration, do func()) { m.s.w.in(after, func() { m.awake(do) }) }

// sleep has the process do nothing for a while, and then go on as if nothing had happened: with the generation and the
// epoch that it had (H56).
func (m *member) sleep(long time.Duration) {
	if m.asleep {
		return
	}
	m.s.w.tell("%s of %s sleeps", m, m.club.name)
	m.asleep = true
	m.s.w.in(long, func() {
		m.s.w.tell("%s of %s wakes up", m, m.club.name)
		m.asleep = false
		held := m.held
		m.held = nil
		for _, do := range held {
			m.awake(do)
		}
	})
}

// again gives up what it has and joins anew.
func (m *member) again(why string) {
	if m.gone {
		return
	}
	if m.retired {
		m.end(false)
		return
	}
	m.turn++
	turn := m.turn
	if why != "" {
		m.s.w.tell("%s of %s joins again: %s", m, m.club.name, why)
	}
	m.mine, m.coordinator = nil, nil
	m.at, m.known = map[group.TopicPartition]int64{}, map[group.TopicPartition]bool{}
	m.in(m.s.w.between(20*time.Millisecond, 120*time.Millisecond), func() {
		if m.turn == turn {
			m.join(turn)
		}
	})
}

func (m *member) String() string {
	if m.instance != nil {
		return *m.instance
	}
	return "member " + m.id
}

func (m *member) join(turn int) {
	to := m.s.leaderFor(coordinates(offsetsTopic, m.club.name))
	req := &group.JoinRequest{Group: m.club.name, MemberID: m.id, InstanceID: m.instance, RequireMemberID: m.instance == nil, CanSkipAssignment: true, ClientID: "client", ClientHost: "sim",
		RebalanceTimeoutMs: int32(memberRebalance.Milliseconds()), SessionTimeoutMs: int32(memberSession.Milliseconds()), ProtocolType: "consumer",
		Protocols: []group.Protocol{{Name: rangeProtocol, Metadata: []byte(m.club.topic)}}}
	m.s.plants.join(req)
	viaConnection(m, to, memberRebalance+memberPatience, true, func(b *broker, reply func(group.JoinResult)) {
		b.coordinators.ofGroup(req.Group, func(core *group.Core, nowMs int64) { core.Join(nowMs, req, reply) },
			func(err error) { reply(group.JoinResult{Err: err}) })
	}, func(r group.JoinResult, came bool) {
		switch {
		case m.turn != turn:
		case !came:
			m.again("nobody answers")
		case r.Err == kerr.MemberIDRequired:
			m.id = r.MemberID
			m.again("")
		case r.Err != nil:
			m.refused(r.Err)
		default:
			m.id, m.generation = r.MemberID, r.Generation
			m.sync(turn, to, m.assign(&r))
		}
	})
}

// refused goes on after an error.
func (m *member) refused(err error) {
	switch err {
	case kerr.UnknownMemberID:
		m.id = ""
	case kerr.FencedInstanceID:
		m.end(false) // there is another one of its name
		return
	}
	m.again(err.Error())
}

// assign is the leader's work: partition after partition to member after member.
func (m *member) assign(r *group.JoinResult) []group.Assignment {
	if r.LeaderID != r.MemberID || r.SkipAssignment {
		return nil
	}
	ids := make([]string, len(r.Members))
	for i := range r.Members {
		ids[i] = r.Members[i].MemberID
	}
	slices.Sort(ids)
	list := make([]group.Assignment, len(ids))
	for i, id := range ids {
		list[i].MemberID = id
	}
	for p := range durablePartitions {
		to := &list[p%len(list)]
		to.Data = fmt.Appendf(to.Data, "%s %d,", m.club.topic, p)
	}
	return list
}

func (m *member) sync(turn int, to *node, list []group.Assignment) {
	protocol, kind := rangeProtocol, "consumer"
	req := &group.SyncRequest{Group: m.club.name, Generation: m.generation, MemberID: m.id, InstanceID: m.instance, ProtocolType: &kind, Protocol: &protocol, Assignments: list}
	generation, id := m.generation, m.id
	viaConnection(m, to, memberRebalance+memberPatience, true, func(b *broker, reply func(group.SyncResult)) {
		b.coordinators.ofGroup(req.Group, func(core *group.Core, nowMs int64) {
			core.Sync(nowMs, req, func(r group.SyncResult) {
				if r.Err == nil {
					m.club.book.owns(m, id, generation, parseAssignment(r.Assignment))
				}
				reply(r)
			})
		}, func(err error) { reply(group.SyncResult{Err: err}) })
	}, func(r group.SyncResult, came bool) {
		switch {
		case m.turn != turn:
		case !came:
			m.again("nobody brings an assignment")
		case r.Err != nil:
			m.refused(r.Err)
		default:
			m.mine, m.coordinator = parseAssignment(r.Assignment), to
			m.s.Done.Joins++
			m.heartbeats(turn)
			m.work(turn)
		}
	})
}

func parseAssignment(data []byte) []group.TopicPartition {
	var list []group.TopicPartition
	for part := range strings.SplitSeq(string(data), ",") {
		var tp group.TopicPartition
		if _, err := fmt.Sscanf(part, "%s %d", &tp.Topic, &tp.Partition); err == nil {
			list = append(list, tp)
		}
	}
	return list
}

func (m *member) heartbeats(turn int) {
	m.in(m.s.w.between(150*time.Millisecond, 300*time.Millisecond), func() {
		if m.turn != turn {
			return
		}
		req := &group.HeartbeatRequest{Group: m.club.name, Generation: m.generation, MemberID: m.id, InstanceID: m.instance}
		viaConnection(m, m.coordinator, memberPatience, true, func(b *broker, reply func(error)) {
			b.coordinators.ofGroup(req.Group, func(core *group.Core, nowMs int64) { core.Heartbeat(nowMs, req, reply) }, reply)
		}, func(err error, came bool) {
			switch {
			case m.turn != turn:
			case !came:
				m.again("no heart is heard")
			case err == kerr.CoordinatorLoadInProgress, err == nil:
				m.heartbeats(turn)
			default:
				m.refused(err)
			}
		})
	})
}

// work goes on with one of its partitions, now and then.
func (m *member) work(turn int) {
	m.in(m.s.w.between(10*time.Millisecond, 60*time.Millisecond), func() {
		if m.turn != turn {
			return
		}
		next := func() { m.work(turn) }
		if len(m.mine) == 0 {
			next()
			return
		}
		tp := pick(m.s.w, m.mine)
		switch {
		case !m.known[tp]:
			m.ask(turn, tp, next)
		case m.t != nil:
			m.t.transform(turn, tp, next)
		case m.s.calm:
			next()
		default:
			m.commit(turn, tp, next)
		}
	})
}

// ask learns where a partition was left off, from the coordinator that gave it. Offsets that a transaction may still
// change are waited for.
func (m *member) ask(turn int, tp group.TopicPartition, next func()) {
	req := &group.FetchOffsetsRequest{Group: m.club.name, Partitions: []group.TopicPartition{tp}, RequireStable: true}
	if m.s.planted("open offsets are taken for stable") {
		req.RequireStable = false
	}
	viaConnection(m, m.coordinator, memberPatience, true, func(b *broker, reply func(group.FetchOffsetsResult)) {
		b.coordinators.ofGroup(req.Group, func(core *group.Core, _ int64) {
			core.FetchOffsets(req, func(r group.FetchOffsetsResult) {
				m.club.book.shown(b.n, &r.Offsets[0])
				reply(r)
			})
		}, func(err error) { reply(group.FetchOffsetsResult{Err: err}) })
	}, func(r group.FetchOffsetsResult, came bool) {
		switch {
		case m.turn != turn:
		case !came:
			m.again("nobody knows the offset")
		case r.Err != nil:
			m.refused(r.Err)
		case r.Offsets[0].Err != nil:
			next()
		default:
			m.known[tp], m.at[tp] = true, max(0, r.Offsets[0].Offset)
			next()
		}
	})
}

// commit is the work of a plain member: it has read some more.
func (m *member) commit(turn int, tp group.TopicPartition, next func()) {
	offset := m.at[tp] + int64(1+m.s.w.rand.IntN(3))
	a := m.club.book.attempt(m, tp, offset)
	req := &group.CommitRequest{Group: m.club.name, Generation: m.generation, MemberID: m.id, InstanceID: m.instance,
		Offsets: []group.Commit{{TopicPartition: tp, Offset: offset, LeaderEpoch: -1, Metadata: a.note(), TimeMs: group.NoTime, RetentionMs: group.NoTime}}}
	viaConnection(m, m.coordinator, memberPatience, false, func(b *broker, reply func(error)) {
		m.club.book.delivered(a)
		m.s.plants.commit(m.club, req)
		b.coordinators.ofGroup(req.Group, func(core *group.Core, nowMs int64) {
			core.Commit(nowMs, req, func(r group.CommitResult) {
				if r.Errs[0] == nil {
					m.club.book.accepted(a)
					m.club.book.counts(a)
				}
				reply(r.Errs[0])
			})
		}, reply)
	}, func(err error, came bool) {
		switch {
		case m.turn != turn:
		case !came:
			next() // whether it counts nobody knows
		case err != nil:
			m.refused(err)
		default:
			m.at[tp] = offset
			m.s.Done.Commits++
			next()
		}
	})
}

// end is the end of a client process, in good order or without a word; another takes its place some time later.
func (m *member) end(politely bool) {
	if m.gone {
		return
	}
	m.gone = true
	m.turn++
	if politely && m.coordinator != nil {
		req := &group.LeaveRequest{Group: m.club.name, Members: []group.LeavingMember{{MemberID: m.id, InstanceID: m.instance}}}
		viaConnection(m, m.coordinator, memberPatience, true, func(b *broker, reply func(group.LeaveResult)) {
			b.coordinators.ofGroup(req.Group, func(core *group.Core, nowMs int64) { core.Leave(nowMs, req, reply) }, func(error) {})
		}, func(group.LeaveResult, bool) {})
	}
	if !m.retired {
		m.s.w.in(m.s.w.between(100*time.Millisecond, 3*time.Second), m.begin)
	}
}
