package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) createTopics(c *call, req *kmsg.CreateTopicsRequest) { c.Close(errBusy) }
