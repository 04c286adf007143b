package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) initProducerID(c *call, req *kmsg.InitProducerIDRequest) { c.Close(errBusy) }
