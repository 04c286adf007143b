package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) alterConfigs(c *call, req *kmsg.AlterConfigsRequest) { c.Close(errBusy) }
