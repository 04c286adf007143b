package api

import (
	"time"

	"barnabas/broker/partition"
	"barnabas/broker/quota"
	"barnabas/broker/wire"
)

// quotaClient is who a request is counted for.
func (c *call) quotaClient() quota.Client {
	user := c.Conn.Principal.Name
	if user == "" {
		user = wire.Anonymous.Name
	}
	return quota.Client{User: user, ID: c.clientID()}
}

// mute keeps the connection from being read for as long as its client has to
// pause, and returns what the answer says of it.
func (c *call) mute(now time.Time, pause time.Duration) (throttleMs int32) {
	if pause > 0 {
		c.Conn.Mute(now.Add(pause))
	}
	return int32(pause.Milliseconds())
}

// countProduced counts a produce request by its size, whatever became of it, as
// Kafka does.
func (op *produceCall) countProduced() (throttleMs int32) {
	q := op.d.deps.Quotas
	if q == nil || !q.Any(quota.Produce) {
		return 0
	}
	now := time.Now()
	return op.mute(now, q.Took(quota.Produce, op.quotaClient(), op.size, now))
}

// mayFetch is how many bytes an answer to a consumer may have: not more than it
// could ever be given without a pause.
func (op *fetchCall) mayFetch(maxBytes int32) int32 {
	q := op.d.deps.Quotas
	if q == nil || op.follower || !q.Any(quota.Fetch) {
		return maxBytes
	}
	return int32(min(int64(maxBytes), q.Most(quota.Fetch, op.quotaClient())))
}

// withheld answers a consumer that takes too much: with nothing but how long it
// has to pause, and its session as it was. It tells whether that was the case.
func (op *fetchCall) withheld(results []partition.FetchResult) bool {
	q := op.d.deps.Quotas
	if q == nil || op.follower || !q.Any(quota.Fetch) {
		return false
	}
	now := time.Now()
	pause := q.MayTake(quota.Fetch, op.quotaClient(), recordBytes(results), now)
	if pause <= 0 {
		return false
	}
	for i := range results {
		results[i].Records.Release()
	}
	resp := wire.FetchResponse{ThrottleMs: op.mute(now, pause)}
	id, err := op.d.sessions.passOver(&op.turn)
	resp.SessionID = id
	resp.ErrorCode, _ = code(err)
	op.Reply(wire.EncodeFetch(op.header, &resp))
	return true
}
