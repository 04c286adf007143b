package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/group"
)

// Heartbeat, key 12, versions 0 to 4.
//
//	3  group instance id (KIP-345)
//	4  flexible
func (d *Dispatcher) heartbeat(c *call, req *kmsg.HeartbeatRequest) {
	if !d.mayGroup(c, kmsg.ACLOperationRead, req.Group) {
		resp := kmsg.NewPtrHeartbeatResponse()
		resp.ErrorCode = kerr.GroupAuthorizationFailed.Code
		c.answer(resp)
		return
	}
	ask := &group.HeartbeatRequest{Group: req.Group, Generation: req.Generation, MemberID: req.MemberID, InstanceID: req.InstanceID}
	d.deps.Groups.Heartbeat(ask, func(err error) {
		resp := kmsg.NewPtrHeartbeatResponse()
		resp.ErrorCode, _ = code(err)
		c.answer(resp)
	})
}
