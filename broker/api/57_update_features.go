package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// UpdateFeatures, key 57, versions 0 and 1, to the controller (KIP-584).
//
//	1  kinds of change, and requests that are only judged (KIP-778)
func (d *Dispatcher) updateFeatures(c *call, req *kmsg.UpdateFeaturesRequest) {
	if !d.mayCluster(c, kmsg.ACLOperationAlter) {
		resp := kmsg.NewPtrUpdateFeaturesResponse()
		resp.ErrorCode, resp.ErrorMessage = kerr.ClusterAuthorizationFailed.Code, kmsg.StringPtr("Cluster authorization failed.")
		c.answer(resp)
		return
	}
	d.toController(c, req)
}
