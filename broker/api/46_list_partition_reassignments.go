package api

import "github.com/twmb/franz-go/pkg/kmsg"

// ListPartitionReassignments, key 46, version 0 (KIP-455), to the controller.
func (d *Dispatcher) listPartitionReassignments(c *call, req *kmsg.ListPartitionReassignmentsRequest) {
	d.toController(c, req)
}
