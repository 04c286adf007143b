package api

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

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

// toll is a pause that a client owes, and what for.
type toll struct {
	kind  quota.Kind
	pause time.Duration
}

// longer is what is paid of two: the pauses run at the same time.
func (t toll) longer(other toll) toll {
	if other.pause > t.pause {
		return other
	}
	return t
}

// mute keeps the connection from being read for as long as its client has to
// pause, and returns what the answer says of it.
func (c *call) mute(now time.Time, owed toll) (throttleMs int32) {
	if owed.pause <= 0 {
		return 0
	}
	c.Conn.Mute(now.Add(owed.pause))
	c.quotas.Paused(owed.kind, c.quotaClient(), owed.pause, now)
	return int32(owed.pause.Milliseconds())
}

// span is a time that a request keeps a goroutine. What ends it first counts: the
// goroutine, which goes on to others, or the answer, whoever gives it.
type span struct{ began, ended atomic.Int64 }

func (s *span) begin(now time.Time) { s.began.Store(now.UnixNano()) }

func (s *span) end(now time.Time) { s.ended.CompareAndSwap(0, now.UnixNano()) }

// took is 0 for a span that never began.
func (s *span) took(now time.Time) time.Duration {
	began := s.began.Load()
	if began == 0 {
		return 0
	}
	s.end(now)
	return time.Duration(max(0, s.ended.Load()-began))
}

// timed tells whether the time of requests matters to anybody.
func (c *call) timed() bool { return c.quotas != nil && c.quotas.Any(quota.Request) }

// exempt are the APIs between brokers, which are never held back. Who may not use
// them is a client like others.
var exempt = map[int16]bool{4: true, 5: true, 6: true, 7: true, 27: true, 56: true}

// countTime counts how long the request kept its goroutine and, as it may have gone
// to one, a worker. It is called once, when there is an answer.
func (c *call) countTime(now time.Time) toll {
	if !c.timed() {
		return toll{}
	}
	took := c.handling.took(now) + c.working.took(now)
	if c.follower || exempt[c.header.Key] && !c.stranger {
		c.quotas.Exempt(took, now)
		return toll{}
	}
	return toll{quota.Request, c.quotas.Took(quota.Request, c.quotaClient(), int64(took), now)}
}

// payForTime is what the answer of a request says that owes for nothing else.
func (c *call) payForTime() (throttleMs int32) {
	now := time.Now()
	return c.mute(now, c.countTime(now))
}

// answer encodes resp at the request's version and replies with it.
func (c *call) answer(resp kmsg.Response) { c.answerFor(resp, toll{}) }

// answerFor is answer where the client owes a pause already.
func (c *call) answerFor(resp kmsg.Response, owed toll) {
	if owed.pause > 0 || c.timed() {
		now := time.Now()
		ms := c.mute(now, owed.longer(c.countTime(now)))
		if told, ok := resp.(kmsg.SetThrottleResponse); ok {
			told.SetThrottle(ms)
		}
	}
	c.Reply(wire.Encode(c.header, resp))
}

// countProduced counts a produce request by its size, whatever became of it, as
// Kafka does, and by its time unless nobody waits for the answer.
func (op *produceCall) countProduced() (throttleMs int32) {
	if op.quotas == nil {
		return 0
	}
	bytes, timed := op.quotas.Any(quota.Produce), op.timed()
	if !bytes && !timed {
		return 0
	}
	now := time.Now()
	var owed toll
	if bytes {
		owed = toll{quota.Produce, op.quotas.Took(quota.Produce, op.quotaClient(), op.size, now)}
	}
	switch {
	case timed && op.acks == 0:
		op.quotas.Exempt(op.handling.took(now), now)
	case timed:
		owed = owed.longer(op.countTime(now))
	}
	return op.mute(now, owed)
}

// mayFetch is how many bytes an answer to a consumer may have: not more than it
// could ever be given without a pause.
func (op *fetchCall) mayFetch(maxBytes int32) int32 {
	q := op.quotas
	if q == nil || op.follower || !q.Any(quota.Fetch) {
		return maxBytes
	}
	return int32(min(int64(maxBytes), q.Most(quota.Fetch, op.quotaClient())))
}

// withheld answers a consumer that takes too much, bytes or time: with nothing but
// how long it has to pause, and its session as it was. It tells whether that was
// the case.
func (op *fetchCall) withheld(results []partition.FetchResult) bool {
	if op.quotas == nil {
		return false
	}
	bytes := !op.follower && op.quotas.Any(quota.Fetch)
	if !bytes && !op.timed() {
		return false
	}
	now := time.Now()
	owed := op.countTime(now)
	if owed.pause <= 0 && bytes {
		owed = toll{quota.Fetch, op.quotas.MayTake(quota.Fetch, op.quotaClient(), recordBytes(results), now)}
	}
	if owed.pause <= 0 {
		return false
	}
	for i := range results {
		results[i].Records.Release()
	}
	resp := wire.FetchResponse{ThrottleMs: op.mute(now, owed)}
	id, err := op.d.sessions.passOver(&op.turn)
	resp.SessionID = id
	resp.ErrorCode, _ = code(err)
	op.Reply(wire.EncodeFetch(op.header, &resp))
	return true
}

// mutations counts the partitions that a request creates or deletes. Since the version
// that knows of it the client is refused while it owes something; before it has to pause
// (KIP-599).
type mutations struct{ *quota.Mutations }

func (c *call) mutations(strictSince int16) mutations {
	if c.quotas == nil {
		return mutations{}
	}
	return mutations{c.quotas.Mutations(c.quotaClient(), c.header.Version >= strictSince)}
}

// lenient is for what a request creates beside what it asks for.
func (c *call) lenient() mutations { return c.mutations(math.MaxInt16) }

// permit is admin's question before it writes.
func (m mutations) permit(partitions int) error {
	if !m.Take(partitions, time.Now()) {
		return refusal(kerr.ThrottlingQuotaExceeded, "The throttling quota has been exceeded.")
	}
	return nil
}

// owed is what of the pause is left when the answer is there.
func (m mutations) owed() toll { return toll{quota.Mutation, m.Pause(time.Now())} }
