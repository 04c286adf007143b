package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AlterPartition, key 56, versions 0 to 3, from a leader to the controller
// (KIP-497).
//
//	1  leader recovery state (KIP-704)
//	2  topic ids (KIP-841)
//	3  broker epochs of the in-sync replicas (KIP-903)
func (d *Dispatcher) alterPartition(c *call, req *kmsg.AlterPartitionRequest) {
	if !d.mayCluster(c, kmsg.ACLOperationClusterAction) {
		resp := kmsg.NewPtrAlterPartitionResponse()
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		c.answer(resp)
		return
	}
	d.toController(c, req)
}
