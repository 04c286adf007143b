package auth

import (
	"strings"
	"time"

	"barnabas/broker/wire"
)

// Gate lets the requests of clients through that have proven who they are, or need not: those of listeners without SASL. It is a
// wire.Handler before another one.
type Gate struct {
	Next wire.Handler
	// Offers are the mechanisms of a listener with SASL.
	Offers func(listener string) []Offer
	// MaxFrame is the largest frame of a client that is not known [sasl.server.max.receive.size].
	MaxFrame int32
	// FailureDelay is how long a client that failed waits for its answer and the end of its connection, so that it does not try again
	// at once [connection.failed.authentication.delay.ms].
	FailureDelay time.Duration
}

// Connected implements wire.Handler.
func (g *Gate) Connected(c *wire.Conn) {
	if strings.HasPrefix(c.SecurityProtocol, "SASL_") {
		c.Attachment = NewSession(g.Offers(c.Listener))
		c.FrameLimit = g.MaxFrame
	}
	g.Next.Connected(c)
}

// Disconnected implements wire.Handler.
func (g *Gate) Disconnected(c *wire.Conn) { g.Next.Disconnected(c) }

// Handle implements wire.Handler.
func (g *Gate) Handle(r *wire.Request) {
	s, waits := r.Conn.Attachment.(*Session)
	if !waits {
		g.Next.Handle(r)
		return
	}
	v := s.Take(r.Frame, r.Received)
	if v.Pass {
		g.Next.Handle(r)
		return
	}
	if v.Proven != nil {
		r.Conn.FrameLimit = 0
		if r.Conn.Principal != *v.Proven { // else it is a session begun anew, and requests that wait may be reading it
			r.Conn.Principal = *v.Proven
		}
		r.Conn.ByToken = v.ByToken
	}
	answer := wire.Response{}
	if v.Answer != nil {
		answer.Parts = []wire.Part{{Bytes: v.Answer}}
	}
	if v.Failure == nil {
		r.Reply(answer)
		return
	}
	r.FreeFrame()
	time.AfterFunc(g.FailureDelay, func() { r.ReplyLast(answer, v.Failure) })
}
