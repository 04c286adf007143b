package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) describeConfigs(c *call, req *kmsg.DescribeConfigsRequest) { c.Close(errBusy) }
