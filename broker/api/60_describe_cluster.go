package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) describeCluster(c *call, req *kmsg.DescribeClusterRequest) { c.Close(errBusy) }
