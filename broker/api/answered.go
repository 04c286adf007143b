package api

import (
	"time"

	"barnabas/broker/wire"
)

// Meter counts requests and times them from their arrival to when their answer is
// given to the connection.
type Meter interface {
	Answered(key, version int16, took time.Duration)
	Fetched(follower bool, took time.Duration) // beside Answered
}

const fetchKey = 1

// Reply is wire.Request's, counted.
func (c *call) Reply(r wire.Response) {
	c.measure()
	c.Request.Reply(r)
}

// NoReply is wire.Request's, counted.
func (c *call) NoReply() {
	c.measure()
	c.Request.NoReply()
}

func (c *call) measure() {
	if c.meter == nil {
		return
	}
	took := time.Since(c.Received)
	c.meter.Answered(c.header.Key, c.header.Version, took)
	if c.header.Key == fetchKey {
		c.meter.Fetched(c.follower, took)
	}
}
