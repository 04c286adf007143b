package api

import "github.com/twmb/franz-go/pkg/kmsg"

// ListPartitionReassignments, key 46, version 0 (KIP-455), to the controller.
func (d *Dispatcher) listPartitionReassignments(c *call, req *kmsg.ListPartitionReassignmentsRequest) {
	if !d.mayCluster(c, kmsg.ACLOperationDescribe) {
		resp := kmsg.NewPtrListPartitionReassignmentsResponse()
		resp.ErrorCode, resp.ErrorMessage = code(c.clusterRefusal())
		c.answer(resp)
		return
	}
	d.deps.Controller.Do(req, func(resp kmsg.Response) {
		if r, ok := resp.(*kmsg.ListPartitionReassignmentsResponse); ok {
			r.ErrorMessage = emptyText(r.ErrorCode, r.ErrorMessage)
		}
		c.answer(resp)
	})
}
