package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) controlledShutdown(c *call, req *kmsg.ControlledShutdownRequest) {
	c.Close(errBusy)
}
