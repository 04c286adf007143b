package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ConsumerGroupDescribe, key 69, version 0 (KIP-848): see ConsumerGroupHeartbeat.
// The admin client describes the group by DescribeGroups then.
func (d *Dispatcher) consumerGroupDescribe(c *call, req *kmsg.ConsumerGroupDescribeRequest) {
	resp := kmsg.NewPtrConsumerGroupDescribeResponse()
	for _, name := range req.Groups {
		g := kmsg.NewConsumerGroupDescribeResponseGroup()
		g.Group, g.ErrorCode = name, kerr.UnsupportedVersion.Code
		resp.Groups = append(resp.Groups, g)
	}
	c.answer(resp)
}
