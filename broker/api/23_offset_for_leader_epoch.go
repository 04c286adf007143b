package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) offsetForLeaderEpoch(c *call, req *kmsg.OffsetForLeaderEpochRequest) {
	c.Close(errBusy)
}
