package interop

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
)

// movingGroup is a group of two members who stay in it while its coordinator moves from one kind of broker to the other.
type movingGroup struct {
	circle *circle
	*groupStage
	stop   []func()
	before []string // ids of the members
}

func newMovingGroup(r *circle) *movingGroup {
	r.t.Cleanup(func() { logRebalances(r.t, r.c) })
	s := newGroupStage(r.t, r.c, "moving", 4, int16(len(r.c.Brokers)))
	g := &movingGroup{circle: r, groupStage: s, stop: []func(){franzMember(r.t, s), franzMember(r.t, s)}}
	s.members(2)
	s.more(50)
	g.before = s.memberIDs()
	r.c.WaitWhole(r.t, "__consumer_offsets", 1, len(r.c.Brokers))
	return g
}

// stays expects the same members, and that they go on.
func (g *movingGroup) stays() {
	g.t.Helper()
	g.members(2)
	require.Equal(g.t, g.before, g.memberIDs(), "the members stay in")
	g.more(20)
}

// moves makes each broker the coordinator.
func (g *movingGroup) moves() {
	for range g.circle.c.Brokers {
		g.circle.elect(g.circle.next(g.circle.awaitCoordinator(ofGroups, g.group)), ofGroups, g.group)
		g.stays()
	}
}

// coordinatorsStop stops each broker while it is the coordinator.
func (g *movingGroup) coordinatorsStop() {
	t := g.t
	n := len(g.circle.c.Brokers)
	for range n {
		g.circle.c.WaitWhole(t, "__consumer_offsets", 1, n)
		g.circle.c.WaitWhole(t, g.topic, 4, n)
		b := g.circle.awaitCoordinator(ofGroups, g.group)
		b.Stop(t)
		g.circle.awaitOther(ofGroups, g.group, b)
		g.stays()
		b.Start(t)
		b.WaitReady(t)
	}
}

// finish lets the members leave, once both are at work: one whose coordinator went may have given up its partitions, and come back to them a moment later. It has nothing to commit meanwhile.
func (g *movingGroup) finish() {
	g.t.Helper()
	g.stays()
	for _, stop := range g.stop {
		stop()
	}
	g.empty()
}

// logRebalances tells, of a failed test, why the brokers began rebalances.
func logRebalances(t *testing.T, c *cluster.Cluster) {
	if !t.Failed() {
		return
	}
	for _, b := range c.Brokers {
		for line := range strings.Lines(b.LogTail(10 << 20)) {
			if strings.Contains(line, "rebalance of generation") || strings.Contains(line, "Preparing to rebalance") || strings.Contains(line, "has failed") {
				t.Logf("broker %d: %s", b.ID, line)
			}
		}
	}
}

// memberIDs are the ids of the members, sorted.
func (s *groupStage) memberIDs() (ids []string) {
	s.t.Helper()
	s.eventually(func() string {
		g := s.describe()
		if g.Err != nil {
			return g.Err.Error() // whoever was asked first may be the broker that is away
		}
		for _, m := range g.Members {
			ids = append(ids, m.MemberID)
		}
		return ""
	})
	slices.Sort(ids)
	return ids
}
