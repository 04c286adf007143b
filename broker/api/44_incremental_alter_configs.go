package api

import "github.com/twmb/franz-go/pkg/kmsg"

func (d *Dispatcher) incrementalAlterConfigs(c *call, req *kmsg.IncrementalAlterConfigsRequest) {
	c.Close(errBusy)
}
