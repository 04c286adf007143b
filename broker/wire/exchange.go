package wire

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/vfs"
)

// Conn describes one connection of a client. The server fills in the first group before Connected is called, and
// never changes it.
type Conn struct {
	ID               uint64 // unique in this process
	Listener         string // name of the listener that accepted it
	SecurityProtocol string // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
	Remote, Local    net.Addr

	// Principal is who the other side proved to be: the server sets it from a TLS certificate before Connected, the SASL exchange in Handle.
	Principal Principal

	// The handler keeps what it likes here. Only Handle, which runs for one request of a connection at a time,
	// Connected and Disconnected may touch it without a lock.
	ClientSoftwareName    string
	ClientSoftwareVersion string
	Attachment            any
	ByToken               bool // Principal was proven by a delegation token (KIP-48)

	// FrameLimit is the size of the largest frame that is taken from now on; 0: the server's own limit. Same rule as Attachment.
	FrameLimit int32

	lastUse    atomic.Int64
	mutedUntil atomic.Int64
}

// LastUse is when the last request arrived, or when the connection was accepted.
func (c *Conn) LastUse() time.Time { return time.Unix(0, c.lastUse.Load()) }

// Touch records that a request arrived at now. The server calls it.
func (c *Conn) Touch(now time.Time) { c.lastUse.Store(now.UnixNano()) }

// Mute keeps the server from reading the next request before until, as a client has to wait that took too much
// (KIP-219). It may be called from any goroutine, before or after the answer; the latest time counts.
func (c *Conn) Mute(until time.Time) {
	at := until.UnixNano()
	for {
		known := c.mutedUntil.Load()
		if known >= at || c.mutedUntil.CompareAndSwap(known, at) {
			return
		}
	}
}

// MutedUntil is when the next request may be read; the zero time for a connection that never was muted.
func (c *Conn) MutedUntil() time.Time {
	if at := c.mutedUntil.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// Handler is what a server calls. Connected, Handle and Disconnected of one connection never overlap, and come in
// this order; those of different connections do. Disconnected comes once no more requests will be handled, maybe
// before the last of them is answered.
type Handler interface {
	Connected(*Conn)
	Handle(*Request)
	Disconnected(*Conn)
}

// Sink is the server's side of a request.
type Sink interface {
	// Answered takes the outcome of a request, exactly once: an answer or silence (no parts), and a reason to close
	// the connection after it or nil.
	Answered(r *Request, answer Response, failure error)
}

// FrameOwner is a Sink that takes a frame back before the request is answered. Freed may come more than once.
type FrameOwner interface {
	Freed(r *Request)
}

// Request is one request to be answered. Exactly one of Reply, ReplyLast, NoReply and Close is called, once, from any
// goroutine; a second call does nothing but release what it carries. Frame is pooled: neither it nor anything that
// aliases it may be touched after that call, nor after FreeFrame.
type Request struct {
	Conn     *Conn
	Frame    []byte // without the length in front
	Received time.Time

	sink     Sink
	answered atomic.Bool
}

// NewRequest makes a request whose outcome goes to sink.
func NewRequest(conn *Conn, frame []byte, received time.Time, sink Sink) *Request {
	r := new(Request)
	r.Init(conn, frame, received, sink)
	return r
}

// Init is NewRequest for a request that is part of something bigger. It is called once, before anything else.
func (r *Request) Init(conn *Conn, frame []byte, received time.Time, sink Sink) {
	r.Conn, r.Frame, r.Received, r.sink = conn, frame, received, sink
}

// Reply answers the request. The answer goes out when those to all earlier requests of the connection have.
func (r *Request) Reply(answer Response) { r.finish(answer, nil) }

// NoReply ends a request that has no answer, as a produce request with acks=0.
func (r *Request) NoReply() { r.finish(Response{}, nil) }

// Close ends the request by closing its connection; reason is logged.
func (r *Request) Close(reason error) { r.finish(Response{}, reason) }

// ReplyLast answers the request as Reply does, and closes the connection when the answer has gone out; reason is logged.
func (r *Request) ReplyLast(answer Response, reason error) { r.finish(answer, reason) }

// FreeFrame gives the frame back before the answer, as a request does that has been decoded or appended and now
// waits: until its frame is free it counts against the memory that all requests share, and followers whose fetches
// it waits for would find none left. Neither Frame nor anything that aliases it may be touched afterwards. It may be
// called at any time, even after the answer.
func (r *Request) FreeFrame() {
	if owner, ok := r.sink.(FrameOwner); ok {
		owner.Freed(r)
	}
}

func (r *Request) finish(answer Response, failure error) {
	if r.answered.Swap(true) {
		answer.Sent()
		return
	}
	r.sink.Answered(r, answer, failure)
}

// Response is an answer ready to be written: the parts, in order, beginning with the length of the frame.
type Response struct {
	Parts []Part
	// OnSent is called once, when the parts are not needed any more: sent, or given up. May be nil. It releases
	// what the parts hold; whoever writes a Response calls Sent and touches neither Bytes nor Range afterwards.
	OnSent func()
}

// Part is a piece of an answer: bytes, or a piece of a file when Range has a length.
type Part struct {
	Bytes []byte
	Range vfs.FileRange
}

// Sent releases what the response holds.
func (r Response) Sent() {
	if r.OnSent != nil {
		r.OnSent()
	}
}

// Size is the number of bytes that the response puts on the wire.
func (r Response) Size() int64 {
	var n int64
	for i := range r.Parts {
		n += int64(len(r.Parts[i].Bytes)) + r.Parts[i].Range.Length
	}
	return n
}

// Encode makes an answer of one part in a pooled buffer.
func Encode(h Header, resp kmsg.Response) Response {
	buf := AppendResponse(GetBuffer(0), h, resp)
	return Response{Parts: []Part{{Bytes: buf}}, OnSent: func() { PutBuffer(buf) }}
}
