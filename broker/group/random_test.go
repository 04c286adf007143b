package group

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/coordinator"
)

// TestRandomMembersNeverShareAPartition lets clients of one group join, assign,
// commit, vanish, come back and be slow in a random order, while appends are slow,
// fail, or are lost together with their coordinator. Whatever happens:
//
//   - nobody's assignment overlaps with another's of the same generation
//   - a generation has one assignment
//   - a commit that is accepted comes from who was assigned the partition in the
//     latest generation that anybody was told of (H56)
//   - what is fetched is never older than what was acknowledged (H53)
//   - every request is answered exactly once
//   - once all is quiet, the group becomes stable
func TestRandomMembersNeverShareAPartition(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newRandomWorld(t, seed).run(400) })
	}
}

const randomPartitions = 6

type randomWorld struct {
	*desk
	r       *rand.Rand
	clients []*randomClient
	owners  map[int32]map[int32]string // by generation and partition: member
	acked   map[int32]int64            // by partition: the highest acknowledged offset
	tried   map[int32]int64            // the highest that was tried
	calm    bool                       // nobody leaves any more
}

// randomClient behaves as consumers do.
type randomClient struct {
	w          *randomWorld
	n          int
	instance   *string
	id         string
	generation int32
	leads      bool
	roster     []JoinedMember
	mine       []int32
	waiting    bool
	state      string // "out", "join", "sync", "in"
	life       int    // answers to an earlier life are nobody's
}

func newRandomWorld(t *testing.T, seed uint64) *randomWorld {
	w := &randomWorld{desk: newDesk(t, deskConfig()), r: rand.New(rand.NewPCG(seed, 1)), owners: map[int32]map[int32]string{}, acked: map[int32]int64{}, tried: map[int32]int64{}}
	for n := range 2 + w.r.IntN(5) {
		c := &randomClient{w: w, n: n, state: "out"}
		if w.r.IntN(3) == 0 {
			c.instance = new(fmt.Sprintf("i%d", n))
		}
		w.clients = append(w.clients, c)
	}
	return w
}

func (w *randomWorld) run(steps int) {
	for range steps {
		switch n := w.r.IntN(100); {
		case n < 60:
			w.clients[w.r.IntN(len(w.clients))].act()
		case n < 80:
			w.pass(w.r.Int64N(2500))
		case n < 84:
			w.hold = !w.hold
		case n < 90:
			w.release(nil)
		case n < 92:
			w.fails()
		case n < 96:
			w.clients[w.r.IntN(len(w.clients))].vanish()
		default:
			w.move()
		}
		w.check()
	}
	w.converge()
}

// fails tells of a failure what was held back. After a timeout it may be in the
// log all the same.
func (w *randomWorld) fails() {
	err := []error{kerr.NotEnoughReplicas, kerr.RequestTimedOut, kerr.MessageTooLarge}[w.r.IntN(3)]
	if err == kerr.RequestTimedOut {
		for _, a := range w.held {
			w.acknowledge(&coordinator.Append{Records: a.Records}, nil)
		}
	}
	w.release(err)
}

// move lets the coordinator go elsewhere. What was not acknowledged may be in the
// log all the same.
func (w *randomWorld) move() {
	for _, a := range w.held[:w.r.IntN(len(w.held)+1)] {
		w.acknowledge(&coordinator.Append{Records: a.Records}, nil)
	}
	held := w.held
	w.held = nil
	w.core.Unload(w.nowMs)
	w.work()
	for _, a := range held {
		a.Ended(w.nowMs, 0, kerr.NotLeaderForPartition)
	}
	w.work()
	_, any := w.core.Next()
	require.False(w.t, any)
	w.restart()
}

// check fetches what was acknowledged.
func (w *randomWorld) check() {
	for p := range int32(randomPartitions) {
		var l later[FetchOffsetsResult]
		w.core.FetchOffsets(&FetchOffsetsRequest{Group: "g", Partitions: []TopicPartition{{"t", p}}}, l.take)
		w.work()
		got := l.value.Offsets[0].Offset
		if got < w.acked[p]-1 || got > w.tried[p] { // asserted half a million times: no words are made before they are needed
			require.Failf(w.t, "what is fetched is wrong", "partition %d is at %d, acknowledged %d, tried %d", p, got, w.acked[p], w.tried[p])
		}
	}
}

// converge heals everything and expects a stable group.
func (w *randomWorld) converge() {
	w.hold, w.calm = false, true
	w.release(nil)
	for range 600 {
		for _, c := range w.clients {
			c.act()
		}
		w.pass(500)
	}
	d := w.core.Describe("g")
	require.Equal(w.t, "Stable", d.State)
	require.Len(w.t, d.Members, len(w.clients))
	owned := map[int32]bool{}
	for _, c := range w.clients {
		require.Equal(w.t, "in", c.state)
		for _, p := range c.mine {
			owned[p] = true
		}
	}
	require.Len(w.t, owned, randomPartitions)
}

// vanish stops a client without a word.
func (c *randomClient) vanish() {
	c.life++
	c.state, c.id, c.waiting, c.mine, c.generation = "out", "", false, nil, 0
}

func (c *randomClient) act() {
	if c.waiting {
		return
	}
	switch c.state {
	case "out", "join":
		c.join()
	case "sync":
		c.sync()
	case "in":
		switch n := c.w.r.IntN(20); {
		case n == 0 && !c.w.calm:
			c.leave()
		case n < 10 && len(c.mine) > 0:
			c.commit()
		default:
			c.heartbeat()
		}
	}
}

// answered wraps what is done with an answer: once, and not by who has vanished.
func answered[T any](c *randomClient, f func(T)) func(T) {
	c.waiting = true
	life, done := c.life, false
	return func(v T) {
		require.False(c.w.t, done, "answered twice")
		done = true
		if c.life == life {
			c.waiting = false
			f(v)
		}
	}
}

func (c *randomClient) join() {
	req := joinRequest("g", c.id, "t")
	req.InstanceID, req.RequireMemberID, req.CanSkipAssignment = c.instance, c.instance == nil, true
	req.RebalanceTimeoutMs = 20_000
	c.w.core.Join(c.w.nowMs, req, answered(c, c.joined))
	c.w.work()
}

func (c *randomClient) joined(r JoinResult) {
	c.state = "join"
	switch r.Err {
	case nil:
		c.id, c.generation, c.leads, c.roster, c.state = r.MemberID, r.Generation, r.LeaderID == r.MemberID && !r.SkipAssignment, r.Members, "sync"
	case kerr.MemberIDRequired:
		c.id = r.MemberID
	case kerr.UnknownMemberID, kerr.FencedInstanceID, kerr.NotCoordinator, kerr.RebalanceInProgress:
		if r.Err == kerr.UnknownMemberID || r.Err == kerr.FencedInstanceID {
			c.id = ""
		}
	case kerr.CoordinatorNotAvailable, kerr.UnknownServerError: // the new id could not be written
		c.id = ""
	default:
		c.w.t.Fatalf("join: %v", r.Err)
	}
}

func (c *randomClient) sync() {
	req := &SyncRequest{Group: "g", Generation: c.generation, MemberID: c.id, InstanceID: c.instance}
	if c.leads {
		for i, m := range c.roster {
			var list []string
			for p := i; p < randomPartitions; p += len(c.roster) {
				list = append(list, fmt.Sprint(p))
			}
			req.Assignments = append(req.Assignments, Assignment{m.MemberID, []byte(strings.Join(list, ","))})
		}
	}
	c.w.core.Sync(c.w.nowMs, req, answered(c, c.synced))
	c.w.work()
}

func (c *randomClient) synced(r SyncResult) {
	c.state = "join"
	switch r.Err {
	case nil:
		c.own(string(r.Assignment))
		c.state = "in"
	case kerr.UnknownMemberID, kerr.FencedInstanceID:
		c.id = ""
	case kerr.IllegalGeneration, kerr.RebalanceInProgress, kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.UnknownServerError:
	default:
		c.w.t.Fatalf("sync: %v", r.Err)
	}
}

// own takes an assignment and checks that nobody else of the generation has it. A
// static member's next life has what its earlier one had.
func (c *randomClient) own(list string) {
	owners := c.w.owners[c.generation]
	if owners == nil {
		owners = map[int32]string{}
		c.w.owners[c.generation] = owners
	}
	who := fmt.Sprint(c.n)
	c.mine = nil
	for _, s := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		var p int32
		_, err := fmt.Sscan(s, &p)
		require.NoError(c.w.t, err)
		if had, taken := owners[p]; taken {
			require.Equal(c.w.t, had, who, "partition %d of generation %d has two owners", p, c.generation)
		}
		owners[p] = who
		c.mine = append(c.mine, p)
	}
}

func (c *randomClient) commit() {
	p := c.mine[c.w.r.IntN(len(c.mine))]
	offset := c.w.tried[p] + 1
	c.w.tried[p] = offset
	req := &CommitRequest{Group: "g", Generation: c.generation, MemberID: c.id, InstanceID: c.instance, Offsets: []Commit{{
		TopicPartition: TopicPartition{"t", p}, Offset: offset, LeaderEpoch: -1, TimeMs: NoTime, RetentionMs: NoTime}}}
	generation, told := c.generation, slices.Max(append(slices.Collect(maps.Keys(c.w.owners)), 0))
	acked := answered(c, func(r CommitResult) {
		switch r.Errs[0] {
		case nil:
			require.Equal(c.w.t, told, generation, "a commit of an earlier generation")
			c.w.acked[p] = max(c.w.acked[p], offset+1)
		case kerr.UnknownMemberID, kerr.FencedInstanceID, kerr.IllegalGeneration:
			c.state = "join"
			if r.Errs[0] != kerr.IllegalGeneration {
				c.id = ""
			}
		case kerr.RebalanceInProgress:
			c.state = "join"
		case kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.RequestTimedOut, kerr.InvalidCommitOffsetSize:
		default:
			c.w.t.Fatalf("commit: %v", r.Errs[0])
		}
	})
	c.w.core.Commit(c.w.nowMs, req, acked)
	c.w.work()
}

func (c *randomClient) heartbeat() {
	c.w.core.Heartbeat(c.w.nowMs, &HeartbeatRequest{Group: "g", Generation: c.generation, MemberID: c.id, InstanceID: c.instance}, answered(c, func(err error) {
		switch err {
		case nil:
		case kerr.RebalanceInProgress, kerr.IllegalGeneration:
			c.state = "join"
		case kerr.UnknownMemberID, kerr.FencedInstanceID:
			c.state, c.id = "join", ""
		default:
			c.w.t.Fatalf("heartbeat: %v", err)
		}
	}))
	c.w.work()
}

func (c *randomClient) leave() {
	id := c.id
	c.vanish()
	c.w.core.Leave(c.w.nowMs, &LeaveRequest{Group: "g", Members: []LeavingMember{{MemberID: id, InstanceID: c.instance}}}, func(LeaveResult) {})
	c.w.work()
}
