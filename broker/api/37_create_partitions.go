package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) createPartitions(c *call, req *kmsg.CreatePartitionsRequest) { c.Close(errBusy) }
