package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) fetch(c *call, req *kmsg.FetchRequest) { c.Close(errBusy) }
