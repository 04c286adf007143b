package api

import "github.com/twmb/franz-go/pkg/kmsg"

// ControlledShutdown, key 7, versions 0 to 3, from a broker to the controller.
//
//	1  the request's header has a client id (version 0 has none)
//	2  broker epoch (KIP-380)
//	3  flexible
func (d *Dispatcher) controlledShutdown(c *call, req *kmsg.ControlledShutdownRequest) {
	d.toController(c, req)
}
