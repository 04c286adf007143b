package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// group is one group. Members keep the order in which they came: the leader is
// the first of them unless it is absent, and nothing depends on a map's order.
//
// Invariants:
//
//   - joining is the number of members whose join waits
//   - speakers counts for each protocol the members that speak it
//   - static maps an instance id to the one member that has it
//   - a member id is pending or a member, never both
//   - in Empty and Dead nobody waits for anything
type group struct {
	name    string
	state   State
	stateMs int64 // since when; NoTime if the log does not tell (records of before Kafka 2.1)

	generation   int32
	protocolType *string
	protocol     *string
	leader       string // empty: none

	members  map[string]*member
	order    []*member
	static   map[string]string
	pending  map[string]*timer // ids that were given out, until they join (KIP-394)
	unsynced map[string]bool   // members of this generation that have not asked for their assignment
	speakers map[string]int
	joining  int

	// While PreparingRebalance: the end of waiting, and what an initial delay waits
	// for.
	rebalance *timer
	initial   initialDelay
	syncs     *timer // while some are unsynced

	subscribed map[string]bool // topics of a consumer group's members; nil: not known

	offsets
}

// initialDelay is the wait for more members before the first rebalance of an
// empty group (KIP-134): until none has come for group.initial.rebalance.delay.ms,
// up to the rebalance timeout. Kafka looks only at the end of each delay whether
// one came during it, and lets two hundred members that start together wait twice.
type initialDelay struct {
	on    bool
	endMs int64 // not longer than this
}

func newGroup(name string, nowMs int64) *group {
	return &group{
		name: name, state: Empty, stateMs: nowMs,
		members: map[string]*member{}, static: map[string]string{}, pending: map[string]*timer{},
		unsynced: map[string]bool{}, speakers: map[string]int{},
	}
}

func (g *group) isConsumers() bool { return g.protocolType != nil && *g.protocolType == "consumer" }

// speaks tells whether somebody with these protocols may be a member: all the
// members must have one in common.
func (g *group) speaks(protocolType string, protocols []Protocol) bool {
	if g.state == Empty {
		return protocolType != "" && len(protocols) > 0
	}
	if g.protocolType == nil || *g.protocolType != protocolType {
		return false
	}
	return slices.ContainsFunc(protocols, func(p Protocol) bool { return g.speakers[p.Name] == len(g.members) })
}

func (g *group) add(m *member, protocolType string) {
	if len(g.members) == 0 {
		g.protocolType = &protocolType
	}
	if m.isStatic() {
		g.static[*m.instanceID] = m.id
	}
	if g.leader == "" {
		g.leader = m.id
	}
	g.members[m.id] = m
	g.order = append(g.order, m)
	g.count(m, 1)
	if m.joining != nil {
		g.joining++
	}
}

// count adds to the speakers what a member speaks, a name given twice once.
func (g *group) count(m *member, n int) {
	for i := range m.protocols {
		name := m.protocols[i].Name
		if slices.ContainsFunc(m.protocols[:i], func(p Protocol) bool { return p.Name == name }) {
			continue
		}
		if g.speakers[name] += n; g.speakers[name] == 0 {
			delete(g.speakers, name)
		}
	}
}

// remove takes a member out. Whoever calls it has answered what the member waits
// for and cancelled its timer.
func (g *group) remove(m *member) {
	delete(g.members, m.id)
	g.order = slices.DeleteFunc(g.order, func(x *member) bool { return x == m })
	g.count(m, -1)
	if m.joining != nil {
		g.joining--
		m.joining = nil
	}
	if m.isStatic() {
		delete(g.static, *m.instanceID)
	}
	if g.leader == m.id {
		g.leader = ""
		if len(g.order) > 0 {
			g.leader = g.order[0].id
		}
	}
	delete(g.unsynced, m.id)
}

// update gives a member that asks to join again what it says now.
func (g *group) update(m *member, protocols []Protocol, rebalanceTimeoutMs, sessionTimeoutMs int32) {
	g.count(m, -1)
	m.protocols = protocols
	g.count(m, 1)
	m.rebalanceTimeoutMs, m.sessionTimeoutMs = rebalanceTimeoutMs, sessionTimeoutMs
}

func (g *group) allJoined() bool { return g.joining == len(g.members) && len(g.pending) == 0 }

// electJoined makes sure that the leader is one who has joined. It tells whether
// there is one.
func (g *group) electJoined() bool {
	if g.leader == "" {
		return false
	}
	if g.members[g.leader].joining != nil {
		return true
	}
	for _, m := range g.order {
		if m.joining != nil {
			g.leader = m.id
			return true
		}
	}
	return false
}

func (g *group) rebalanceTimeoutMs() int64 {
	longest := int32(0)
	for _, m := range g.order {
		longest = max(longest, m.rebalanceTimeoutMs)
	}
	return int64(longest)
}

// choose is the protocol of the next generation: of those that all speak, the
// one that most members like best; between equals, the one voted for first. One
// that somebody named twice is chosen only if there is no other: Kafka counts
// each time that a protocol is named, and so believes that too many speak it.
func (g *group) choose() string {
	candidates, repeated := map[string]bool{}, map[string]bool{}
	for _, p := range g.order[0].protocols {
		switch {
		case g.speakers[p.Name] != len(g.members):
		case slices.ContainsFunc(g.order, func(m *member) bool { return m.repeats(p.Name) }):
			repeated[p.Name] = true
		default:
			candidates[p.Name] = true
		}
	}
	if len(candidates) == 0 {
		candidates = repeated
	}
	votes := map[string]int{}
	var ballot []string
	for _, m := range g.order {
		v := m.vote(candidates)
		if votes[v] == 0 {
			ballot = append(ballot, v)
		}
		votes[v]++
	}
	best := ballot[0]
	for _, v := range ballot {
		if votes[v] > votes[best] {
			best = v
		}
	}
	return best
}

// nextGeneration begins it with those who are members now.
func (g *group) nextGeneration(nowMs int64) {
	g.generation++
	g.protocol = nil
	to := Empty
	if len(g.members) > 0 {
		chosen := g.choose()
		g.protocol = &chosen
		to = CompletingRebalance
	}
	g.subscribed = g.subscriptions()
	g.enter(to, nowMs)
	clear(g.unsynced)
}

// roster is what the leader is told of the members.
func (g *group) roster() []JoinedMember {
	list := make([]JoinedMember, len(g.order))
	for i, m := range g.order {
		list[i] = JoinedMember{MemberID: m.id, InstanceID: m.instanceID, Metadata: m.metadata(*g.protocol)}
	}
	return list
}

// known checks that somebody is who it says: FENCED_INSTANCE_ID when its instance
// id belongs to another by now (KIP-345, H56), UNKNOWN_MEMBER_ID when it is no
// member.
func (g *group) known(memberID string, instanceID *string) (*member, error) {
	if instanceID != nil {
		switch current, found := g.static[*instanceID]; {
		case !found:
			return nil, kerr.UnknownMemberID
		case current != memberID:
			return nil, kerr.FencedInstanceID
		}
	}
	m := g.members[memberID]
	if m == nil {
		return nil, kerr.UnknownMemberID
	}
	return m, nil
}

// describe shows the group as DescribeGroups does.
func (g *group) describe() Description {
	d := Description{Group: g.name, State: g.state.String()}
	if g.protocolType != nil {
		d.ProtocolType = *g.protocolType
	}
	stable := g.state == Stable && g.protocol != nil
	if stable {
		d.Protocol = *g.protocol
	}
	d.Members = make([]DescribedMember, len(g.order))
	for i, m := range g.order {
		d.Members[i] = DescribedMember{MemberID: m.id, InstanceID: m.instanceID, ClientID: m.clientID, ClientHost: m.clientHost}
		if stable {
			d.Members[i].Metadata, d.Members[i].Assignment = m.metadata(d.Protocol), m.assignment
		}
	}
	return d
}
