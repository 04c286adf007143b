package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) stopReplica(c *call, req *kmsg.StopReplicaRequest) { c.Close(errBusy) }
