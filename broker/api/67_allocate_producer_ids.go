package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AllocateProducerIDs, key 67, version 0, from a broker to the controller: the
// next block of producer ids. Kafka's brokers ask for it since
// inter.broker.protocol.version 3.0; ours take blocks from ZooKeeper themselves.
func (d *Dispatcher) allocateProducerIDs(c *call, req *kmsg.AllocateProducerIDsRequest) {
	if !d.mayCluster(c, kmsg.ACLOperationClusterAction) {
		resp := kmsg.NewPtrAllocateProducerIDsResponse()
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		c.answer(resp)
		return
	}
	d.toController(c, req)
}
