package api

import "github.com/twmb/franz-go/pkg/kmsg"

// ElectLeaders, key 43, versions 0 to 2, to the controller.
//
//	1  unclean election, error code of the whole
//	2  flexible
func (d *Dispatcher) electLeaders(c *call, req *kmsg.ElectLeadersRequest) { d.toController(c, req) }
