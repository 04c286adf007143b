package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) updateMetadata(c *call, req *kmsg.UpdateMetadataRequest) { c.Close(errBusy) }
