package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) electLeaders(c *call, req *kmsg.ElectLeadersRequest) { c.Close(errBusy) }
