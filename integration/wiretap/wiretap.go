// Package wiretap listens on the connections that clients of a test have with brokers. What a broker was asked and what it answered is a history that no client library colours, and the
// moments at which it happens are those that a test may aim a fault at: a request has just left, an answer is there and the client does not know it yet.
package wiretap

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Exchange is one request to one broker.
type Exchange struct {
	Broker         string // host:port as the client dialled it
	Request        kmsg.Request
	Response       kmsg.Response // nil: none came, so that nobody knows what became of the request
	Sent, Answered time.Duration // since the tap was made; Answered is that of the loss when there is no response
}

// Tap listens on the connections that it dials, for requests of some kinds. The hooks are called from the goroutines of the connections, which wait for them to return.
type Tap struct {
	TLS   *tls.Config // of the connections; nil: they are in clear text
	keys  map[int16]bool
	began time.Time
	hooks Hooks
}

// Hooks are told what happens; nil ones are not.
type Hooks struct {
	Sent     func(broker string, req kmsg.Request) // the request is on its way
	Answered func(*Exchange)                       // the client has not seen the answer yet, or will never see one
}

// New makes a tap.
func New(hooks Hooks, keys ...kmsg.Key) *Tap {
	t := &Tap{keys: map[int16]bool{}, began: time.Now(), hooks: hooks}
	for _, k := range keys {
		t.keys[k.Int16()] = true
	}
	return t
}

// Now is the tap's clock.
func (t *Tap) Now() time.Duration { return time.Since(t.began) }

// DialContext dials as net.Dialer does.
func (t *Tap) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if t.TLS == nil {
		return t.listen(c, addr), nil
	}
	secure := tls.Client(c, t.TLS)
	if err := secure.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return t.listen(secure, addr), nil
}

// Dial dials as net.Dialer does.
func (t *Tap) Dial(network, addr string) (net.Conn, error) {
	return t.DialContext(context.Background(), network, addr)
}

func (t *Tap) listen(c net.Conn, addr string) net.Conn {
	x := &conn{Conn: c, tap: t, addr: addr}
	x.open.waiting = map[int32]*Exchange{}
	return x
}

// conn is one connection. Writes come from one goroutine of the client and reads from another.
type conn struct {
	net.Conn
	tap     *Tap
	addr    string
	out, in frames
	lost    sync.Once

	open struct {
		sync.Mutex
		waiting map[int32]*Exchange
		ended   bool
	}
}

// Write notes the requests before they leave, since their answers may be faster than the return, and tells of them when they have left.
func (c *conn) Write(p []byte) (int, error) {
	var sent []kmsg.Request
	for _, frame := range c.out.add(p) {
		if req := c.note(frame); req != nil {
			sent = append(sent, req)
		}
	}
	n, err := c.Conn.Write(p)
	if err != nil {
		c.end()
		return n, err
	}
	if c.tap.hooks.Sent != nil {
		for _, req := range sent {
			c.tap.hooks.Sent(c.addr, req)
		}
	}
	return n, nil
}

// note returns the request of a frame if it is of a kind that is listened for.
func (c *conn) note(frame []byte) kmsg.Request {
	r := kbin.Reader{Src: frame}
	key, version, correlation := r.Int16(), r.Int16(), r.Int32()
	if !r.Ok() || !c.tap.keys[key] {
		return nil
	}
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	r.NullableString() // client id
	if req.IsFlexible() {
		kmsg.SkipTags(&r)
	}
	if !r.Ok() || req.ReadFrom(r.Src) != nil {
		return nil
	}
	c.open.Lock()
	defer c.open.Unlock()
	c.open.waiting[correlation] = &Exchange{Broker: c.addr, Request: req, Sent: c.tap.Now()}
	return req
}

// Read shows whole answers to the hooks before the client gets their last bytes.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for _, frame := range c.in.add(p[:n]) {
		c.answer(frame)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		c.end()
	}
	return n, err
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// answerHeader is the correlation id of an answer.
const answerHeader = 4

func (c *conn) answer(frame []byte) {
	if len(frame) < answerHeader {
		return
	}
	correlation := int32(binary.BigEndian.Uint32(frame))
	c.open.Lock()
	x := c.open.waiting[correlation]
	delete(c.open.waiting, correlation)
	c.open.Unlock()
	if x == nil {
		return
	}
	r := kbin.Reader{Src: frame[answerHeader:]}
	resp := x.Request.ResponseKind()
	resp.SetVersion(x.Request.GetVersion())
	if x.Request.IsFlexible() {
		kmsg.SkipTags(&r)
	}
	x.Answered = c.tap.Now()
	if resp.ReadFrom(r.Src) == nil {
		x.Response = resp
	}
	if c.tap.hooks.Answered != nil {
		c.tap.hooks.Answered(x)
	}
}

// Close ends the connection; what waits is without an answer for ever.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.end()
	return err
}

func (c *conn) end() {
	c.lost.Do(func() {
		c.open.Lock()
		waiting := c.open.waiting
		c.open.waiting = map[int32]*Exchange{}
		c.open.Unlock()
		for _, x := range waiting {
			if x.Answered = c.tap.Now(); c.tap.hooks.Answered != nil {
				c.tap.hooks.Answered(x)
			}
		}
	})
}

// frames cuts a stream into the frames of Kafka's protocol: a length of four bytes, and what it counts.
type frames struct {
	part []byte
	skip int // bytes of a frame that is too large to be looked at
}

// largest is the size of a frame that is still looked at; those of groups and transactions are small, records are not listened for.
const largest = 1 << 20

// add takes the next bytes and returns the frames that they end.
func (f *frames) add(p []byte) (whole [][]byte) {
	if n := min(f.skip, len(p)); n > 0 {
		f.skip -= n
		p = p[n:]
	}
	f.part = append(f.part, p...)
	for len(f.part) >= 4 {
		size := int(binary.BigEndian.Uint32(f.part))
		switch {
		case size > largest:
			gone := min(len(f.part), 4+size)
			f.skip = 4 + size - gone
			f.part = f.part[gone:]
			continue
		case len(f.part) < 4+size:
			return whole
		}
		whole = append(whole, append([]byte(nil), f.part[4:4+size]...))
		f.part = f.part[4+size:]
	}
	f.part = append([]byte(nil), f.part...) // not the whole stream is kept
	return whole
}
