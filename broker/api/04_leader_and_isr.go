package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) leaderAndISR(c *call, req *kmsg.LeaderAndISRRequest) { c.Close(errBusy) }
