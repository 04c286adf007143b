package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/group"
)

// LeaveGroup, key 13, versions 0 to 5.
//
//	3  several members, also by their instance ids (KIP-345); before, the one
//	   member's error is the answer's
//	4  flexible
//	5  reason (KIP-800)
func (d *Dispatcher) leaveGroup(c *call, req *kmsg.LeaveGroupRequest) {
	if !d.mayGroup(c, kmsg.ACLOperationRead, req.Group) {
		resp := kmsg.NewPtrLeaveGroupResponse()
		resp.ErrorCode = kerr.GroupAuthorizationFailed.Code
		c.answer(resp)
		return
	}
	ask := &group.LeaveRequest{Group: req.Group}
	if req.Version < 3 {
		ask.Members = []group.LeavingMember{{MemberID: req.MemberID, Reason: "not provided"}}
	}
	for _, m := range req.Members {
		l := group.LeavingMember{MemberID: m.MemberID, InstanceID: m.InstanceID, Reason: "not provided"}
		if m.Reason != nil {
			l.Reason = *m.Reason
		}
		ask.Members = append(ask.Members, l)
	}
	d.deps.Groups.Leave(ask, func(r group.LeaveResult) {
		resp := kmsg.NewPtrLeaveGroupResponse()
		resp.ErrorCode, _ = code(r.Err)
		if req.Version < 3 && r.Err == nil {
			resp.ErrorCode, _ = code(r.Members[0])
		}
		for i, err := range r.Members {
			m := kmsg.NewLeaveGroupResponseMember()
			m.MemberID, m.InstanceID = ask.Members[i].MemberID, ask.Members[i].InstanceID
			m.ErrorCode, _ = code(err)
			resp.Members = append(resp.Members, m)
		}
		c.answer(resp)
	})
}
