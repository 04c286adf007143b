package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) deleteRecords(c *call, req *kmsg.DeleteRecordsRequest) { c.Close(errBusy) }
