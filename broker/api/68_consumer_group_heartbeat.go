package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ConsumerGroupHeartbeat, key 68, version 0 (KIP-848): the new consumer protocol.
// Kafka's ZooKeeper mode advertises it and answers UNSUPPORTED_VERSION, which
// tells a client to use the classic protocol.
func (d *Dispatcher) consumerGroupHeartbeat(c *call, _ *kmsg.ConsumerGroupHeartbeatRequest) {
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	c.answer(resp)
}
