package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// groupPlays by name. A name is also the prefix of the groups in it.
var groupPlays = map[string]func(*groupPlay){
	"rebalance":    rebalancePlay,
	"versions":     versionsPlay,
	"static":       staticPlay,
	"refusals":     refusalsPlay,
	"offsets":      offsetsPlay,
	"listed":       listedPlay,
	"coordinators": coordinatorsPlay,
}

func groupPlayNames() []string { return slices.Sorted(maps.Keys(groupPlays)) }

// onPurpose are lines that differ on purpose.
func onPurpose(kafka, ours string) bool {
	switch {
	case strings.Contains(kafka, `"Group":"offsets nobody"`) && strings.Contains(kafka, "OffsetFetch v1"):
		return true
	}
	return kafka == ours
}

// subscription is what a consumer says in version 0 of its protocol.
func subscription(topics ...string) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = topics
	return m.AppendTo(nil)
}

func joinOf(group, member string, instance *string, topics ...string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.ProtocolType = group, member, instance, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 30_000, 60_000
	for _, name := range []string{"range", "roundrobin"} {
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = name, subscription(topics...)
		req.Protocols = append(req.Protocols, p)
	}
	return req
}

func syncOf(group string, generation int32, member string, instance *string, assignments map[string]string) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.Generation, req.MemberID, req.InstanceID = group, generation, member, instance
	req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	for _, id := range slices.Sorted(maps.Keys(assignments)) {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = id, []byte(assignments[id])
		req.GroupAssignment = append(req.GroupAssignment, a)
	}
	sortBy(req.GroupAssignment, func(a kmsg.SyncGroupRequestGroupAssignment) string { return string(a.MemberAssignment) })
	return req
}

func heartbeatOf(group string, generation int32, member string, instance *string) *kmsg.HeartbeatRequest {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.Generation, req.MemberID, req.InstanceID = group, generation, member, instance
	return req
}

func leaveOf(group, member string, instance *string) *kmsg.LeaveGroupRequest {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = group, member
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID, m.InstanceID = member, instance
	req.Members = append(req.Members, m)
	return req
}

func commitOf(group string, generation int32, member string, instance *string, topic string, offsets ...int64) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation, req.MemberID, req.InstanceID = group, generation, member, instance
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = topic
	for i, o := range offsets {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = int32(i), o, 0, kmsg.StringPtr(fmt.Sprintf("m%d", o))
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// fetchOf asks for the partitions of a topic, of all when there are none.
func fetchOf(version int16, group, topic string, partitions ...int32) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	if version < 8 {
		req.Group = group
		if partitions != nil {
			t := kmsg.NewOffsetFetchRequestTopic()
			t.Topic, t.Partitions = topic, partitions
			req.Topics = append(req.Topics, t)
		}
		return req
	}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	if partitions != nil {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.Partitions = topic, partitions
		g.Topics = append(g.Topics, t)
	}
	req.Groups = append(req.Groups, g)
	return req
}

func describeOf(groups ...string) *kmsg.DescribeGroupsRequest {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups, req.IncludeAuthorizedOperations = groups, true
	return req
}

func deleteOf(groups ...string) *kmsg.DeleteGroupsRequest {
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Groups = groups
	return req
}

func offsetDeleteOf(group, topic string, partitions ...int32) *kmsg.OffsetDeleteRequest {
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	t := kmsg.NewOffsetDeleteRequestTopic()
	t.Topic = topic
	for _, id := range partitions {
		p := kmsg.NewOffsetDeleteRequestTopicPartition()
		p.Partition = id
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// joined makes a dynamic member in two steps and gives its id and generation.
func (p *groupPlay) joined(client, group string, topics ...string) (string, int32) {
	id := p.ask(client, 9, joinOf(group, "", nil, topics...)).(*kmsg.JoinGroupResponse).MemberID
	r := p.ask(client, 9, joinOf(group, id, nil, topics...)).(*kmsg.JoinGroupResponse)
	return id, r.Generation
}

func rebalancePlay(p *groupPlay) {
	const g = "rebalance"
	p.say("the first member joins in two steps and assigns")
	a, gen := p.joined("a", g, "one")
	p.ask("a", 4, heartbeatOf(g, gen, a, nil))
	p.ask("a", 9, commitOf(g, gen, a, nil, "one", 5))
	p.ask("a", 5, syncOf(g, gen, a, nil, map[string]string{a: "A1"}))
	p.ask("a", 5, syncOf(g, gen, a, nil, nil))
	p.ask("a", 4, heartbeatOf(g, gen, a, nil))
	p.ask("a", 4, heartbeatOf(g, gen+1, a, nil))
	p.ask("a", 4, heartbeatOf(g, gen, "stranger", nil))
	p.ask("x", 5, describeOf(g))

	p.say("commits of members and others")
	p.ask("a", 9, commitOf(g, gen, a, nil, "one", 7))
	p.ask("a", 9, commitOf(g, gen-1, a, nil, "one", 8))
	p.ask("x", 9, commitOf(g, gen, "stranger", nil, "one", 8))
	p.ask("x", 9, commitOf(g, -1, "", nil, "one", 8))
	p.ask("x", 9, fetchOf(9, g, "one", 0))

	p.say("a second member joins")
	b := p.ask("b", 9, joinOf(g, "", nil, "one", "two")).(*kmsg.JoinGroupResponse).MemberID
	p.ask("a", 4, heartbeatOf(g, gen, a, nil))
	p.send("b", 9, joinOf(g, b, nil, "one", "two"))
	p.ask("a", 4, heartbeatOf(g, gen, a, nil))
	p.ask("a", 9, commitOf(g, gen, a, nil, "one", 9))
	p.ask("a", 5, syncOf(g, gen, a, nil, nil))
	p.ask("x", 5, describeOf(g))
	p.ask("a", 9, joinOf(g, a, nil, "one"))
	p.await("b")
	gen++
	p.ask("x", 5, describeOf(g))
	p.ask("b", 4, heartbeatOf(g, gen, b, nil))
	p.ask("b", 9, commitOf(g, gen, b, nil, "one", 10))
	p.ask("b", 9, joinOf(g, b, nil, "one", "two"))
	p.ask("a", 9, joinOf(g, a, nil, "one"))
	p.send("b", 5, syncOf(g, gen, b, nil, nil))
	p.ask("a", 5, syncOf(g, gen, a, nil, map[string]string{a: "A2", b: "B2"}))
	p.await("b")
	p.ask("b", 9, joinOf(g, b, nil, "one", "two"))
	p.ask("x", 5, describeOf(g))

	p.say("what members hold stays")
	p.ask("x", 2, deleteOf(g, g))
	p.ask("x", 0, offsetDeleteOf(g, "one", 0))
	p.ask("x", 0, offsetDeleteOf(g, "two", 0, 5))

	p.say("a follower changes what it says, the leader does not come")
	p.send("b", 9, joinOf(g, b, nil, "two"))
	p.ask("a", 4, heartbeatOf(g, gen, a, nil))
	p.ask("a", 5, leaveOf(g, a, nil))
	p.await("b")
	gen++
	p.ask("b", 5, syncOf(g, gen, b, nil, map[string]string{b: "B3"}))
	p.ask("a", 4, heartbeatOf(g, gen, a, nil))
	p.ask("a", 5, leaveOf(g, a, nil))
	p.ask("x", 0, offsetDeleteOf(g, "one", 0))
	p.ask("x", 9, fetchOf(9, g, "one", 0))

	p.say("a pending member that leaves, and the last one")
	c := p.ask("c", 9, joinOf(g, "", nil, "one")).(*kmsg.JoinGroupResponse).MemberID
	p.ask("c", 5, leaveOf(g, c, nil))
	p.ask("c", 9, joinOf(g, c, nil, "one"))
	p.ask("b", 9, commitOf(g, gen, b, nil, "two", 1, 2))
	p.ask("b", 5, leaveOf(g, b, nil))
	p.ask("x", 5, describeOf(g))
	p.ask("x", 9, commitOf(g, -1, "", nil, "two", 3))
	p.ask("x", 9, fetchOf(9, g, ""))
	p.ask("x", 0, offsetDeleteOf(g, "two", 0))
	p.ask("x", 9, fetchOf(9, g, ""))
	p.ask("x", 2, deleteOf(g))
	p.ask("x", 2, deleteOf(g))
	p.ask("x", 5, describeOf(g))
	p.ask("x", 0, offsetDeleteOf(g, "two", 0))
	p.ask("x", 9, fetchOf(9, g, "two", 0))
}

func versionsPlay(p *groupPlay) {
	for v := int16(0); v <= 9; v++ {
		p.say(fmt.Sprintf("JoinGroup %d", v))
		g := fmt.Sprintf("versions-%d", v)
		r := p.ask("a", v, joinOf(g, "", nil, "one")).(*kmsg.JoinGroupResponse)
		if v >= 4 {
			r = p.ask("a", v, joinOf(g, r.MemberID, nil, "one")).(*kmsg.JoinGroupResponse)
		}
		p.ask("a", min(v, 5), syncOf(g, r.Generation, r.MemberID, nil, map[string]string{r.MemberID: "A"}))
		p.ask("a", min(v, 4), heartbeatOf(g, r.Generation, r.MemberID, nil))
		p.ask("a", max(v, 1), commitOf(g, r.Generation, r.MemberID, nil, "two", 4, 5, 6))
		p.ask("a", max(v, 1), fetchOf(max(v, 1), g, "two", 0, 1, 2))
		if v >= 2 {
			p.ask("a", v, fetchOf(v, g, ""))
		}
		p.ask("x", min(v, 5), describeOf(g, "versions nobody"))
		p.ask("a", min(v, 5), leaveOf(g, "stranger", nil))
		p.ask("a", min(v, 5), leaveOf(g, r.MemberID, nil))
		p.ask("x", min(v, 2), deleteOf(g, "versions nobody"))
	}
}

func staticPlay(p *groupPlay) {
	const g = "static"
	one, two := kmsg.StringPtr("i-one"), kmsg.StringPtr("i-two")
	p.say("a static member joins in one step")
	first := p.ask("a", 5, joinOf(g, "", one, "one")).(*kmsg.JoinGroupResponse)
	a, gen := first.MemberID, first.Generation
	p.ask("a", 3, syncOf(g, gen, a, one, map[string]string{a: "A1"}))
	p.ask("a", 3, heartbeatOf(g, gen, a, one))
	p.ask("a", 3, heartbeatOf(g, gen, a, two))
	p.ask("a", 9, commitOf(g, gen, a, one, "one", 1))

	p.say("it comes again, before version 9 and since")
	a2 := p.ask("a", 8, joinOf(g, "", one, "one")).(*kmsg.JoinGroupResponse).MemberID
	p.ask("a", 5, syncOf(g, gen, a2, one, nil))
	p.ask("a", 3, heartbeatOf(g, gen, a, one))
	p.ask("a", 3, heartbeatOf(g, gen, a, nil))
	p.ask("a", 9, commitOf(g, gen, a, one, "one", 2))
	p.ask("a", 9, joinOf(g, a, one, "one"))
	p.ask("a", 5, syncOf(g, gen, a, one, nil))
	p.ask("a", 5, leaveOf(g, a, one))
	a3 := p.ask("a", 9, joinOf(g, "", one, "one")).(*kmsg.JoinGroupResponse).MemberID
	p.ask("a", 5, syncOf(g, gen, a3, one, nil))
	p.ask("x", 5, describeOf(g))

	p.say("another joins")
	p.send("b", 9, joinOf(g, "", two, "two"))
	p.ask("a", 4, heartbeatOf(g, gen, a3, one))
	p.send("a", 9, joinOf(g, a3, one, "one"))
	b := p.await("b").(*kmsg.JoinGroupResponse).MemberID
	p.await("a")
	gen++
	p.send("b", 5, syncOf(g, gen, b, two, nil))
	p.ask("a", 5, syncOf(g, gen, a3, one, map[string]string{a3: "A2", b: "B2"}))
	p.await("b")
	p.ask("x", 5, describeOf(g))

	p.say("a commit with an instance id and without membership")
	p.ask("b", 9, commitOf(g, -1, "", two, "one", 3))
	p.ask("b", 9, commitOf(g, gen, b, two, "one", 4))

	p.say("the follower comes again; then it is removed by its instance id")
	b2 := p.ask("b", 9, joinOf(g, "", two, "two")).(*kmsg.JoinGroupResponse).MemberID
	p.ask("b", 5, syncOf(g, gen, b2, two, nil))
	p.ask("x", 5, leaveOf(g, "", kmsg.StringPtr("i-nobody")))
	p.ask("x", 5, leaveOf(g, "", two))
	p.ask("b", 4, heartbeatOf(g, gen, b2, two))
	p.ask("a", 4, heartbeatOf(g, gen, a3, one))
	p.ask("a", 9, joinOf(g, a3, one, "one"))
	p.ask("x", 4, leaveOf(g, "", one))
	p.ask("x", 5, describeOf(g))
}

func refusalsPlay(p *groupPlay) {
	const g = "refusals"
	p.say("no name of a group")
	p.ask("a", 9, joinOf("", "", nil, "one"))
	p.ask("a", 5, syncOf("", 1, "m", nil, nil))
	p.ask("a", 4, heartbeatOf("", 1, "m", nil))
	p.ask("a", 5, leaveOf("", "m", nil))
	p.ask("a", 2, leaveOf("", "m", nil))
	p.ask("a", 9, commitOf("", -1, "", nil, "one", 1))
	p.ask("a", 9, fetchOf(9, "", "one", 0))
	p.ask("a", 5, describeOf(""))
	p.ask("a", 0, offsetDeleteOf("", "one", 0))
	p.ask("a", 2, deleteOf(""))

	p.say("session timeouts")
	for _, ms := range []int32{0, 5999, 1_800_001, -1} {
		for _, v := range []int16{0, 5, 9} {
			req := joinOf(g, "", nil, "one")
			req.SessionTimeoutMillis = ms
			p.ask("a", v, req)
		}
	}

	p.say("nobody knows the member, or the group")
	for _, v := range []int16{0, 5, 9} {
		p.ask("a", v, joinOf("refusals nobody", "m", nil, "one"))
	}
	p.ask("a", 5, syncOf("refusals nobody", 1, "m", nil, nil))
	p.ask("a", 0, syncOf("refusals nobody", 1, "m", nil, nil))
	p.ask("a", 4, heartbeatOf("refusals nobody", 1, "m", nil))
	for v := int16(0); v <= 5; v++ {
		p.ask("a", v, leaveOf("refusals nobody", "m", nil))
	}
	p.ask("a", 9, commitOf("refusals nobody", 1, "m", nil, "one", 1))
	p.ask("a", 0, offsetDeleteOf("refusals nobody", "one", 0))

	p.say("protocols")
	empty := joinOf(g, "", nil, "one")
	empty.Protocols = nil
	p.ask("a", 9, empty)
	untyped := joinOf(g, "", nil, "one")
	untyped.ProtocolType = ""
	p.ask("a", 9, untyped)
	m, gen := p.joined("a", g, "one")
	other := joinOf(g, "", nil, "one")
	other.ProtocolType = "connect"
	p.ask("b", 9, other)
	strange := joinOf(g, "", nil, "one")
	strange.Protocols = strange.Protocols[:1]
	strange.Protocols[0].Name = "strange"
	p.ask("b", 9, strange)
	p.ask("b", 5, strange)
	wrong := syncOf(g, gen, m, nil, nil)
	wrong.ProtocolType = kmsg.StringPtr("connect")
	p.ask("a", 5, wrong)
	wrong.ProtocolType, wrong.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("roundrobin")
	p.ask("a", 5, wrong)
	wrong.ProtocolType = nil
	p.ask("a", 5, wrong)
	p.ask("a", 4, syncOf(g, gen+1, m, nil, nil))
	p.ask("a", 4, syncOf(g, gen, "stranger", nil, nil))
	p.ask("a", 9, joinOf(g, "stranger", nil, "one"))
	p.ask("a", 9, joinOf(g, "stranger", kmsg.StringPtr("i"), "one"))

	p.say("the new protocol")
	beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	beat.Group, beat.MemberID = "new", "m"
	p.ask("a", 0, beat)
	describe := kmsg.NewPtrConsumerGroupDescribeRequest()
	describe.Groups = []string{"new", "newer"}
	p.ask("a", 0, describe)
}

func offsetsPlay(p *groupPlay) {
	const g = "offsets"
	for v := int16(0); v <= 9; v++ {
		p.say(fmt.Sprintf("version %d, without membership", v))
		p.ask("a", v, commitOf(g, -1, "", nil, "two", int64(v)))
		p.ask("a", v, commitOf(g, -1, "", nil, "nowhere", 1))
		p.ask("a", v, fetchOf(v, g, "two", 0, 1, 2))
		p.ask("a", v, fetchOf(v, g, "nowhere", 0))
		if v >= 1 {
			p.ask("a", v, fetchOf(v, "offsets nobody", "two", 0))
		}
		if v >= 2 {
			p.ask("a", v, fetchOf(v, g, ""))
		}
	}
	p.say("metadata")
	long := commitOf(g, -1, "", nil, "two", 1, 2)
	long.Topics[0].Partitions[0].Metadata = kmsg.StringPtr(strings.Repeat("x", 4097))
	long.Topics[0].Partitions[1].Metadata = kmsg.StringPtr(strings.Repeat("ä", 4096))
	p.ask("a", 9, long)
	long.Topics[0].Partitions = long.Topics[0].Partitions[:1]
	p.ask("a", 9, long)
	p.ask("a", 0, long)
	null := commitOf(g, -1, "", nil, "two", 11)
	null.Topics[0].Partitions[0].Metadata, null.Topics[0].Partitions[0].LeaderEpoch = nil, -1
	p.ask("a", 9, null)
	p.ask("a", 9, fetchOf(9, g, "two", 0))

	p.say("nothing, a generation of nobody, a group of several")
	none := commitOf(g, -1, "", nil, "two")
	p.ask("a", 9, none)
	none.Topics = nil
	p.ask("a", 9, none)
	p.ask("a", 9, commitOf(g, 3, "m", nil, "two", 1))
	p.ask("a", 9, commitOf("offsets new", 0, "m", nil, "two", 1))
	p.ask("a", 9, commitOf(g, -1, "m", nil, "two", 1))
	p.ask("a", 9, commitOf(g, -1, "", kmsg.StringPtr("i"), "two", 1))
	several := fetchOf(9, g, "two", 0)
	several.Groups = append(several.Groups, fetchOf(9, "offsets nobody", "two", 1).Groups[0], fetchOf(9, g, "").Groups[0])
	p.ask("a", 9, several)
	p.ask("a", 9, fetchOf(9, g, "two", []int32{}...))
	p.ask("x", 5, describeOf(g))
}

func listedPlay(p *groupPlay) {
	m, gen := p.joined("a", "listed-members", "one")
	p.ask("a", 5, syncOf("listed-members", gen, m, nil, map[string]string{m: "A"}))
	p.ask("a", 9, commitOf("listed-simple", -1, "", nil, "one", 1))
	req := kmsg.NewPtrListGroupsRequest()
	for v := int16(0); v <= 5; v++ {
		p.ask("x", v, req)
	}
	for _, states := range [][]string{{"Stable"}, {"stable", "EMPTY"}, {"Empty"}, {"Nonsense"}, {""}} {
		req.StatesFilter = states
		p.ask("x", 4, req)
	}
	req.StatesFilter = nil
	for _, types := range [][]string{{"classic"}, {"Classic"}, {"consumer"}, {"nonsense"}, {"consumer", "classic"}} {
		req.TypesFilter = types
		p.ask("x", 5, req)
	}
}

func coordinatorsPlay(p *groupPlay) {
	for v := int16(0); v <= 6; v++ {
		for _, kind := range []int8{0, 2, 3, -1} {
			if v == 0 && kind != 0 {
				continue
			}
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.CoordinatorType, req.CoordinatorKey, req.CoordinatorKeys = kind, "a group", []string{"a group", "", "a group"}
			p.ask("a", v, req)
		}
	}
}
