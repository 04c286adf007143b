package api

import (
	"sync/atomic"

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
		d.deps.Groups.Describe(name, func(g group.Description) {
			resp.Groups[i] = describedGroup(&g)
			if req.IncludeAuthorizedOperations && g.Err == nil {
				resp.Groups[i].AuthorizedOperations = groupOperations
			}
			if left.Add(-1) == 0 {
				c.answer(resp)
			}
		})
	}
}

// groupOperations is everything that may be done to a group: read, delete,
// describe.
const groupOperations int32 = 1<<3 | 1<<6 | 1<<8

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
