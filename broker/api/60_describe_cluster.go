package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/metadata"
)

// DescribeCluster, key 60, versions 0 and 1 (KIP-700).
//
//	1  kind of endpoint (KIP-919): 1 brokers, 2 controllers, of which there are
//	   none apart from the brokers
//
// The addresses are those of the listener that the request came in by.
func (d *Dispatcher) describeCluster(c *call, req *kmsg.DescribeClusterRequest) {
	resp := kmsg.NewPtrDescribeClusterResponse()
	switch {
	case req.Version == 0 || req.EndpointType == 1:
	case req.EndpointType == 2:
		resp.ErrorCode = kerr.MismatchedEndpointType.Code
		resp.ErrorMessage = kmsg.StringPtr("The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER")
		c.answer(resp)
		return
	default:
		resp.ErrorCode = kerr.UnsupportedEndpointType.Code
		resp.ErrorMessage = kmsg.StringPtr(fmt.Sprintf("Unsupported endpoint type %d", req.EndpointType))
		c.answer(resp)
		return
	}
	snapshot := d.deps.Metadata.Load()
	resp.ClusterID, resp.ControllerID = d.cfg.ClusterID, metadata.NoController
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = d.clusterOperations(c)
	}
	for _, id := range snapshot.BrokerIDs() {
		b := snapshot.Brokers[id]
		e, found := b.Endpoint(c.Conn.Listener)
		if !found {
			continue
		}
		if id == snapshot.ControllerID {
			resp.ControllerID = id // named only if it can be reached
		}
		to := kmsg.NewDescribeClusterResponseBroker()
		to.NodeID, to.Host, to.Port, to.Rack = id, e.Host, e.Port, b.Rack
		resp.Brokers = append(resp.Brokers, to)
	}
	c.answer(resp)
}
