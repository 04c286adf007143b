package api

import "github.com/twmb/franz-go/pkg/kmsg"

// AlterPartitionReassignments, key 45, version 0 (KIP-455), to the controller.
func (d *Dispatcher) alterPartitionReassignments(c *call, req *kmsg.AlterPartitionAssignmentsRequest) {
	if !d.mayCluster(c, kmsg.ACLOperationAlter) {
		resp := kmsg.NewPtrAlterPartitionAssignmentsResponse()
		resp.ErrorCode, resp.ErrorMessage = code(c.clusterRefusal())
		for i := range req.Topics {
			t := kmsg.NewAlterPartitionAssignmentsResponseTopic()
			t.Topic = req.Topics[i].Topic
			for _, asked := range req.Topics[i].Partitions {
				p := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
				p.Partition, p.ErrorCode, p.ErrorMessage = asked.Partition, resp.ErrorCode, resp.ErrorMessage
				t.Partitions = append(t.Partitions, p)
			}
			resp.Topics = append(resp.Topics, t)
		}
		c.answer(resp)
		return
	}
	d.deps.Controller.Do(req, func(resp kmsg.Response) {
		if r, ok := resp.(*kmsg.AlterPartitionAssignmentsResponse); ok {
			r.ErrorMessage = emptyText(r.ErrorCode, r.ErrorMessage)
		}
		c.answer(resp)
	})
}
