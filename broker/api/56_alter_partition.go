package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) alterPartition(c *call, req *kmsg.AlterPartitionRequest) { c.Close(errBusy) }
