package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ControlledShutdown, key 7, versions 0 to 3, from a broker to the controller.
//
//	1  the request's header has a client id (version 0 has none)
//	2  broker epoch (KIP-380)
//	3  flexible
//
// Who is not the controller says STALE_CONTROLLER_EPOCH here, as Kafka does.
func (d *Dispatcher) controlledShutdown(c *call, req *kmsg.ControlledShutdownRequest) {
	if !d.mayCluster(c, kmsg.ACLOperationClusterAction) {
		resp := kmsg.NewPtrControlledShutdownResponse()
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		c.answer(resp)
		return
	}
	d.deps.Controller.Do(req, func(resp kmsg.Response) {
		if r, ok := resp.(*kmsg.ControlledShutdownResponse); ok && r.ErrorCode == kerr.NotController.Code {
			r.ErrorCode = kerr.StaleControllerEpoch.Code
		}
		c.answer(resp)
	})
}
