package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) listPartitionReassignments(c *call, req *kmsg.ListPartitionReassignmentsRequest) {
	c.Close(errBusy)
}
