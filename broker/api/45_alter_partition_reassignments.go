package api

import "github.com/twmb/franz-go/pkg/kmsg"

// AlterPartitionReassignments, key 45, version 0 (KIP-455), to the controller.
func (d *Dispatcher) alterPartitionReassignments(c *call, req *kmsg.AlterPartitionAssignmentsRequest) {
	d.toController(c, req)
}
