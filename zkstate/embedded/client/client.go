// Package client is one connection to a ZooKeeper server, request by request, with every operation of 3.8: for the shell, for
// what zkstate does beside its own session (bulk reads, ending a predecessor's session), and for tests that compare servers
// byte by byte. It keeps the session alive, and gives up when the connection breaks; taking the session up again is the
// caller's decision (Session, Open).
package client

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"barnabas/zkstate/embedded/proto"
	"barnabas/zkstate/sasl"
)

// ErrClosed says that the connection is gone; a request that was under way may or may not have happened.
var ErrClosed = errors.New("ZooKeeper connection lost")

// ErrExpired says that the server does not know the session.
var ErrExpired = errors.New("ZooKeeper session expired")

const maxFrame = 64 << 20

// Error is an error code that the server answered.
type Error struct{ Code proto.Code }

func (e *Error) Error() string { return fmt.Sprintf("ZooKeeper error %d", e.Code) }

// Session is what a client must remember to come back to its session. A zero one asks for a new session.
type Session struct {
	ID       int64
	Password []byte
	LastZxid int64
}

// Event is what a watch saw.
type Event struct {
	Type proto.EventType
	Path string
}

// Reply is an answer; Body is what follows the header.
type Reply struct {
	Zxid int64
	Code proto.Code
	Body []byte
}

// Conn is one connection. Its methods may be called from several goroutines; a reader and a pinger run until it ends.
type Conn struct {
	nc      net.Conn
	timeout time.Duration
	onEvent func(Event)
	done    chan struct{}
	wg      sync.WaitGroup

	mu struct {
		sync.Mutex
		session Session
		xid     int32
		waiting []call // in the order sent, which is the order of the answers
		err     error
	}
}

type call struct {
	xid  int32
	done chan Reply
}

// Dial connects and opens or re-opens a session of timeout. onEvent is called for watch events, from the reader's goroutine; it
// must not wait for an answer of the same connection.
func Dial(addr string, timeout time.Duration, s Session, onEvent func(Event)) (*Conn, error) {
	nc, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, err
	}
	return Open(nc, timeout, s, onEvent)
}

// Open is Dial over a connection that is there; it is closed when the session cannot be had.
func Open(nc net.Conn, timeout time.Duration, s Session, onEvent func(Event)) (*Conn, error) {
	c := &Conn{nc: nc, onEvent: onEvent, done: make(chan struct{})}
	if err := c.handshake(timeout, s); err != nil {
		_ = nc.Close()
		return nil, err
	}
	c.wg.Go(c.readLoop)
	c.wg.Go(c.pingLoop)
	return c, nil
}

func (c *Conn) handshake(timeout time.Duration, s Session) error {
	_ = c.nc.SetDeadline(time.Now().Add(timeout))
	defer c.nc.SetDeadline(time.Time{})
	password := s.Password
	if password == nil {
		password = make([]byte, 16)
	}
	frame := proto.Seal(proto.AppendConnect(proto.Frame(), proto.ConnectRequest{
		LastZxidSeen: s.LastZxid, TimeoutMs: int32(timeout.Milliseconds()), SessionID: s.ID, Password: password, HasReadOnly: true,
	}))
	if _, err := c.nc.Write(frame); err != nil {
		return err
	}
	answer, err := readFrame(c.nc)
	if err != nil {
		return err
	}
	r := proto.NewReader(answer)
	_, ms, id, pw := r.Int32(), r.Int32(), r.Int64(), r.Buffer()
	if r.Err() != nil {
		return r.Err()
	}
	if id == 0 || ms <= 0 {
		return ErrExpired
	}
	c.timeout = time.Duration(ms) * time.Millisecond
	c.mu.session = Session{ID: id, Password: pw, LastZxid: s.LastZxid}
	return nil
}

func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int32(binary.BigEndian.Uint32(head[:]))
	if n < 0 || n > maxFrame {
		return nil, fmt.Errorf("answer of %d bytes", n)
	}
	// The buffer grows with what arrives: a length alone reserves nothing.
	var buf bytes.Buffer
	if _, err := io.CopyN(&buf, r, int64(n)); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Session is what to remember, as of now.
func (c *Conn) Session() Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.session
}

// Timeout is the session timeout that the server granted.
func (c *Conn) Timeout() time.Duration { return c.timeout }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Do sends a request and waits for its answer. An error code is in the Reply; the error is about the connection.
func (c *Conn) Do(op proto.Op, req proto.Request) (Reply, error) {
	xid := int32(0)
	switch op {
	case proto.OpPing:
		xid = proto.XidPing
	case proto.OpAuth:
		xid = proto.XidAuth
	case proto.OpSetWatches, proto.OpSetWatches2:
		xid = proto.XidSetWatches
	}
	done, err := c.start(xid, op, proto.AppendRequest(nil, req))
	if err != nil {
		return Reply{}, err
	}
	select {
	case r := <-done:
		return r, nil
	case <-c.done:
		select {
		case r := <-done: // it came with the last bytes
			return r, nil
		default:
			return Reply{}, ErrClosed
		}
	}
}

// Call is Do with the error code as an error (*Error).
func (c *Conn) Call(op proto.Op, req proto.Request) (*proto.Reader, error) {
	r, err := c.Do(op, req)
	if err != nil {
		return nil, err
	}
	if r.Code != proto.OK {
		return nil, &Error{r.Code}
	}
	return proto.NewReader(r.Body), nil
}

// Login authenticates the connection by SASL to the server that it was opened to, host:port. It is to be the first request.
func (c *Conn) Login(a sasl.Login, server string) error {
	return a.Login(server, func(token []byte) ([]byte, error) {
		r, err := c.Call(proto.OpSASL, &proto.SASLRequest{Token: token})
		if err != nil {
			return nil, err
		}
		return r.Buffer(), r.Err()
	})
}

// start queues the call and sends it; both under the lock, so that the order of calls is the order on the wire.
func (c *Conn) start(xid int32, op proto.Op, body []byte) (chan Reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.err != nil {
		return nil, ErrClosed
	}
	if xid == 0 {
		c.mu.xid++
		xid = c.mu.xid
	}
	done := make(chan Reply, 1)
	c.mu.waiting = append(c.mu.waiting, call{xid, done})
	frame := append(proto.AppendInt32(proto.AppendInt32(proto.Frame(), xid), int32(op)), body...)
	_ = c.nc.SetWriteDeadline(time.Now().Add(c.timeout))
	if _, err := c.nc.Write(proto.Seal(frame)); err != nil {
		_ = c.nc.Close()
		return nil, ErrClosed
	}
	return done, nil
}

func (c *Conn) readLoop() {
	err := c.receive()
	c.mu.Lock()
	c.mu.err = err
	c.mu.Unlock()
	_ = c.nc.Close()
	close(c.done)
}

func (c *Conn) receive() error {
	for {
		_ = c.nc.SetReadDeadline(time.Now().Add(c.timeout))
		frame, err := readFrame(c.nc)
		if err != nil {
			return err
		}
		r := proto.NewReader(frame)
		xid, zxid, code := r.Int32(), r.Int64(), proto.Code(r.Int32())
		if r.Err() != nil {
			return r.Err()
		}
		if xid == proto.XidNotification {
			ev := Event{Type: proto.EventType(r.Int32())}
			_, ev.Path = r.Int32(), r.String()
			if c.onEvent != nil && r.Err() == nil {
				c.onEvent(ev)
			}
			continue
		}
		if err := c.deliver(xid, Reply{Zxid: zxid, Code: code, Body: frame[16:]}); err != nil {
			return err
		}
	}
}

// deliver gives an answer to the oldest call, whose it must be.
func (c *Conn) deliver(xid int32, r Reply) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.waiting) == 0 || c.mu.waiting[0].xid != xid {
		return fmt.Errorf("answer %d out of order", xid)
	}
	if r.Zxid > c.mu.session.LastZxid {
		c.mu.session.LastZxid = r.Zxid
	}
	c.mu.waiting[0].done <- r
	c.mu.waiting = c.mu.waiting[1:]
	return nil
}

// pingLoop keeps the session alive.
func (c *Conn) pingLoop() {
	t := time.NewTicker(max(c.timeout/3, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-t.C:
			_, _ = c.start(proto.XidPing, proto.OpPing, nil)
		}
	}
}

// Close ends the session and the connection.
func (c *Conn) Close() error {
	_, err := c.Do(proto.OpCloseSession, &proto.EmptyRequest{})
	c.Drop()
	return err
}

// Drop ends the connection and leaves the session to its timeout.
func (c *Conn) Drop() {
	_ = c.nc.Close()
	c.wg.Wait()
}
