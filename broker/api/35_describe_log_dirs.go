package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) describeLogDirs(c *call, req *kmsg.DescribeLogDirsRequest) { c.Close(errBusy) }
