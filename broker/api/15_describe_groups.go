package api

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/group"
)

// DescribeGroups, key 15, versions 0 to 5.
//
//	3  authorized operations
//	4  group instance ids
//	5  flexible
//
// A group that does not exist is Dead, without an error. What members say and
// have to do is shown while the group is stable.
func (d *Dispatcher) describeGroups(c *call, req *kmsg.DescribeGroupsRequest) {
	resp := kmsg.NewPtrDescribeGroupsResponse()
	resp.Groups = make([]kmsg.DescribeGroupsResponseGroup, len(req.Groups))
	if len(req.Groups) == 0 {
		c.answer(resp)
		return
	}
	var left atomic.Int32
	left.Store(int32(len(req.Groups)))
	for i, name := range req.Groups {
		d.describeGroup(c, name, func(g group.Description) {
			resp.Groups[i] = describedGroup(&g)
			if req.IncludeAuthorizedOperations && g.Err == nil {
				resp.Groups[i].AuthorizedOperations = d.authorizedOperations(c, kmsg.ACLResourceTypeGroup, name)
			}
			if left.Add(-1) == 0 {
				c.answer(resp)
			}
		})
	}
}

func (d *Dispatcher) describeGroup(c *call, name string, reply func(group.Description)) {
	if !d.mayGroup(c, kmsg.ACLOperationDescribe, name) {
		reply(group.Description{Group: name, Err: kerr.GroupAuthorizationFailed})
		return
	}
	d.deps.Groups.Describe(name, reply)
}

func describedGroup(g *group.Description) kmsg.DescribeGroupsResponseGroup {
	to := kmsg.NewDescribeGroupsResponseGroup()
	to.Group, to.State, to.ProtocolType, to.Protocol = g.Group, g.State, g.ProtocolType, g.Protocol
	to.ErrorCode, _ = code(g.Err)
	to.Members = make([]kmsg.DescribeGroupsResponseGroupMember, len(g.Members))
	for i := range g.Members {
		from, m := &g.Members[i], &to.Members[i]
		m.MemberID, m.InstanceID, m.ClientID, m.ClientHost = from.MemberID, from.InstanceID, from.ClientID, from.ClientHost
		m.ProtocolMetadata, m.MemberAssignment = from.Metadata, from.Assignment
	}
	return to
}
