package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) deleteTopics(c *call, req *kmsg.DeleteTopicsRequest) { c.Close(errBusy) }
