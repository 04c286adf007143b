package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/group"
)

// SyncGroup, key 14, versions 0 to 5.
//
//	3  group instance id (KIP-345)
//	4  flexible
//	5  protocol type and name, compared with the group's (KIP-559)
func (d *Dispatcher) syncGroup(c *call, req *kmsg.SyncGroupRequest) {
	if req.Version >= 5 && (req.ProtocolType == nil || req.Protocol == nil) {
		c.answer(syncGroupAnswer(group.SyncResult{Err: kerr.InconsistentGroupProtocol}))
		return
	}
	if !d.mayGroup(c, kmsg.ACLOperationRead, req.Group) {
		c.answer(syncGroupAnswer(group.SyncResult{Err: kerr.GroupAuthorizationFailed}))
		return
	}
	ask := &group.SyncRequest{
		Group: req.Group, Generation: req.Generation, MemberID: req.MemberID, InstanceID: req.InstanceID,
		ProtocolType: req.ProtocolType, Protocol: req.Protocol, Assignments: make([]group.Assignment, len(req.GroupAssignment)),
	}
	for i, a := range req.GroupAssignment {
		ask.Assignments[i] = group.Assignment{MemberID: a.MemberID, Data: a.MemberAssignment}
	}
	d.deps.Groups.Sync(ask, func(r group.SyncResult) { c.answer(syncGroupAnswer(r)) })
}

func syncGroupAnswer(r group.SyncResult) *kmsg.SyncGroupResponse {
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.ErrorCode, _ = code(r.Err)
	resp.ProtocolType, resp.Protocol, resp.MemberAssignment = r.ProtocolType, r.Protocol, r.Assignment
	return resp
}
