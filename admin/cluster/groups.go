package cluster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/plan"
)

// A group's lag is the end of a partition less what the group committed. The commit is read first and the end second, since a commit that comes in between would make the lag negative; what is
// not known is told as not known, never as a number.

// ListedGroup is a group as its coordinator lists it.
type ListedGroup struct {
	Name, State string
	Type        string // the protocol that its members speak: classic or consumer
}

// Groups asks every broker for its consumer groups, by name. A broker that does not answer fails the list: a list that lacks groups would look complete.
func (c *Cluster) Groups(ctx context.Context) ([]ListedGroup, error) {
	var list []ListedGroup
	for _, shard := range c.client.RequestSharded(ctx, kmsg.NewPtrListGroupsRequest()) {
		if shard.Err != nil {
			return nil, shard.Err
		}
		resp := shard.Resp.(*kmsg.ListGroupsResponse)
		if err := Answered(resp.ErrorCode, nil); err != nil {
			return nil, err
		}
		for _, g := range resp.Groups {
			if g.ProtocolType == "consumer" || g.ProtocolType == "" { // groups with offsets alone have none
				list = append(list, ListedGroup{g.Group, g.GroupState, groupType(g.GroupType)})
			}
		}
	}
	slices.SortFunc(list, func(a, b ListedGroup) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// groupType is the protocol that a group speaks; brokers from before there were two do not say.
func groupType(told string) string {
	if told == "" {
		return "classic"
	}
	return strings.ToLower(told)
}

// DescribeGroups asks the coordinators of groups. What is wrong with one of them stands in its answer.
func (c *Cluster) DescribeGroups(ctx context.Context, names []string) (kadm.DescribedGroups, error) {
	told, err := c.admin.DescribeGroups(ctx, names...)
	var failed *kadm.ShardErrors
	if errors.As(err, &failed) && len(failed.Errs) > 0 {
		err = failed.Errs[0].Err // in the protocol's words rather than the library's
	}
	return told, err
}

// Gone tells whether a group does not exist, which is told in one of two ways.
func Gone(d kadm.DescribedGroup) bool {
	return errors.Is(d.Err, kerr.GroupIDNotFound) || d.Err == nil && d.State == "Dead"
}

// Inactive tells whether a group has no members, so that its offsets can be set from outside.
func Inactive(d kadm.DescribedGroup) bool {
	return Gone(d) || d.Err == nil && d.State == "Empty"
}

// DeleteGroup deletes a group without members, with its offsets.
func (c *Cluster) DeleteGroup(ctx context.Context, name string) error {
	resp, err := c.admin.DeleteGroup(ctx, name)
	return cmp.Or(err, resp.Err)
}

// RemoveMembers ends the membership of members of a group, as if each had left it: a static one by its instance id, which is its name, any other by its member id.
func (c *Cluster) RemoveMembers(ctx context.Context, group string, members []kadm.DescribedGroupMember) error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	for _, m := range members {
		leaves := kmsg.NewLeaveGroupRequestMember()
		if leaves.InstanceID = m.InstanceID; leaves.InstanceID == nil {
			leaves.MemberID = m.MemberID
		}
		leaves.Reason = kmsg.StringPtr("member was removed by an administrator")
		req.Members = append(req.Members, leaves)
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err == nil {
		err = Answered(resp.ErrorCode, nil)
	}
	if err != nil {
		return err
	}
	for _, m := range resp.Members {
		if err := Answered(m.ErrorCode, nil); err != nil {
			return err
		}
	}
	return nil
}

// Assigned is what a member has, in order; nothing where its assignment is not that of a consumer.
func Assigned(m kadm.DescribedGroupMember) []plan.Partition {
	a, ok := m.Assigned.AsConsumer()
	if !ok {
		return nil
	}
	var list []plan.Partition
	for _, t := range a.Topics {
		for _, p := range t.Partitions {
			list = append(list, plan.Partition{Topic: t.Topic, ID: p})
		}
	}
	slices.SortFunc(list, plan.Partition.Compare)
	return list
}

// Committed are the offsets that a group has committed.
func (c *Cluster) Committed(ctx context.Context, group string) (map[plan.Partition]int64, error) {
	fetched, err := c.admin.FetchOffsets(ctx, group)
	if err != nil {
		return nil, err
	}
	offsets := map[plan.Partition]int64{}
	for topic, of := range fetched {
		for id, o := range of {
			if o.Err == nil && o.At >= 0 {
				offsets[plan.Partition{Topic: topic, ID: id}] = o.At
			}
		}
	}
	return offsets, nil
}

// Commit sets offsets of a group without members.
func (c *Cluster) Commit(ctx context.Context, group string, offsets map[plan.Partition]int64) error {
	var list kadm.Offsets
	for p, at := range offsets {
		list.AddOffset(p.Topic, p.ID, at, -1)
	}
	resp, err := c.admin.CommitOffsets(ctx, group, list)
	if err != nil {
		return err
	}
	return resp.Error()
}

// ForgetOffsets deletes offsets that a group has committed, and tells what became of each partition.
func (c *Cluster) ForgetOffsets(ctx context.Context, group string, partitions []plan.Partition) (map[plan.Partition]error, error) {
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	at := map[string]int{}
	for _, p := range partitions {
		if _, known := at[p.Topic]; !known {
			at[p.Topic] = len(req.Topics)
			t := kmsg.NewOffsetDeleteRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		one := kmsg.NewOffsetDeleteRequestTopicPartition()
		one.Partition = p.ID
		t := &req.Topics[at[p.Topic]]
		t.Partitions = append(t.Partitions, one)
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err == nil {
		err = Answered(resp.ErrorCode, nil)
	}
	if err != nil {
		return nil, err
	}
	results := map[plan.Partition]error{}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			results[plan.Partition{Topic: t.Topic, ID: p.Partition}] = Answered(p.ErrorCode, nil)
		}
	}
	return results, nil
}

// GroupPartition is one partition that a group has committed an offset of, or that a member has.
type GroupPartition struct {
	Partition    plan.Partition
	Current, End int64                      // -1: not known
	Member       *kadm.DescribedGroupMember // that has it; nil: nobody
	Fault        error                      // why the end is not known
}

// Lag is how far the group is behind, where that is known. It is not negative: the end was read before the commit came where it is the smaller one, or the records behind it are lost.
func (g GroupPartition) Lag() (n int64, known bool) {
	return max(g.End-g.Current, 0), g.Current >= 0 && g.End >= 0
}

// Unknown says in one word why the lag is not known, or "".
func (g GroupPartition) Unknown() string {
	switch _, known := g.Lag(); {
	case known:
		return ""
	case g.Current < 0:
		return "no_commit"
	case errors.Is(g.Fault, kerr.UnknownTopicOrPartition):
		return "no_such_partition"
	case errors.Is(g.Fault, kerr.TopicAuthorizationFailed):
		return "not_authorized"
	case IsUnreachable(g.Fault):
		return "leader_unreachable"
	}
	return "no_leader"
}

// GroupPartitions are the partitions of a described group, in order.
func (c *Cluster) GroupPartitions(ctx context.Context, name string, d kadm.DescribedGroup) ([]GroupPartition, error) {
	committed, err := c.Committed(ctx, name)
	if err != nil {
		return nil, err
	}
	of := join(committed, d.Members)
	ends, failed, err := c.Offsets(ctx, partitionsIn(of), Latest)
	if err != nil {
		return nil, err
	}
	return withEnds(of, ends, failed), nil
}

// GroupsPartitions does the same for many groups, and asks for the ends of all of them at once, after the last commit was read. Groups about which nothing can be told have an error.
func (c *Cluster) GroupsPartitions(ctx context.Context, described kadm.DescribedGroups) (map[string][]GroupPartition, map[string]error, error) {
	of, failures := map[string][]GroupPartition{}, map[string]error{}
	asked := plan.Assignment{}
	for _, d := range described.Sorted() {
		if Gone(d) {
			failures[d.Group] = &NotFoundError{"group", d.Group}
			continue
		}
		committed, err := c.Committed(ctx, d.Group)
		if err = cmp.Or(d.Err, err); err != nil {
			failures[d.Group] = err
			continue
		}
		of[d.Group] = join(committed, d.Members)
		for _, p := range of[d.Group] {
			asked[p.Partition] = nil
		}
	}
	ends, failed, err := c.Offsets(ctx, asked.Partitions(), Latest)
	if err != nil {
		return nil, nil, err
	}
	for name := range of {
		of[name] = withEnds(of[name], ends, failed)
	}
	return of, failures, nil
}

// join brings together what a group has committed and what its members have.
func join(committed map[plan.Partition]int64, members []kadm.DescribedGroupMember) []GroupPartition {
	owners, all := map[plan.Partition]*kadm.DescribedGroupMember{}, plan.Assignment{}
	for i := range members {
		for _, p := range Assigned(members[i]) {
			owners[p], all[p] = &members[i], nil
		}
	}
	for p := range committed {
		all[p] = nil
	}
	var list []GroupPartition
	for _, p := range all.Partitions() {
		g := GroupPartition{Partition: p, Current: -1, End: -1, Member: owners[p]}
		if at, there := committed[p]; there {
			g.Current = at
		}
		list = append(list, g)
	}
	return list
}

func partitionsIn(list []GroupPartition) []plan.Partition {
	var partitions []plan.Partition
	for _, g := range list {
		partitions = append(partitions, g.Partition)
	}
	return partitions
}

func withEnds(list []GroupPartition, ends map[plan.Partition]int64, failed map[plan.Partition]error) []GroupPartition {
	for i := range list {
		g := &list[i]
		if end, known := ends[g.Partition]; known {
			g.End = end
		}
		g.Fault = failed[g.Partition]
	}
	return list
}

// TotalLag is the sum of the lags that are known; known is false when none is.
func TotalLag(list []GroupPartition) (total int64, known bool) {
	for _, g := range list {
		if lag, ok := g.Lag(); ok {
			total, known = total+lag, true
		}
	}
	return total, known
}

// Readers are the groups that have committed offsets of topics, by topic and name.
func (c *Cluster) Readers(ctx context.Context) (map[string][]string, error) {
	groups, err := c.Groups(ctx)
	if err != nil {
		return nil, err
	}
	readers := map[string][]string{}
	for _, g := range groups {
		committed, err := c.Committed(ctx, g.Name)
		if err != nil {
			return nil, err
		}
		for _, p := range PartitionsOf(committed) {
			if !slices.Contains(readers[p.Topic], g.Name) {
				readers[p.Topic] = append(readers[p.Topic], g.Name)
			}
		}
	}
	return readers, nil
}
