package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) alterPartitionReassignments(c *call, req *kmsg.AlterPartitionAssignmentsRequest) {
	c.Close(errBusy)
}
