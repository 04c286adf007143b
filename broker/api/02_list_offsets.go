package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) listOffsets(c *call, req *kmsg.ListOffsetsRequest) { c.Close(errBusy) }
