package netserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/broker/wire"
)

const (
	// What one connection may have going on before its next request is read.
	maxUnanswered    = 1000      // requests
	maxRequestBytes  = 32 << 20  // bytes of frames that are not free yet
	maxUnsentAnswers = 256 << 10 // bytes of answers in memory that the client has not taken; file ranges cost nothing
)

// idleStack is what a connection holds on its stack for nothing. Handling a request takes a stack of 8 KiB. The garbage
// collector halves the stack of a goroutine that uses less than a quarter of it, as one does that waits for a request,
// and the next request grows it again, each time: with thousands of connections that is 5 % of the processor time.
const idleStack = 512

// conn is one connection. Its goroutine reads frames, runs the handler and writes the answers that are ready; a
// second goroutine lives only while answers that came later are being written.
//
// Order: the exchanges from head to tail are the requests in the order of their arrival. Only the one at the head
// may be written, and only by whoever set writing. An answer given by the handler before it returns is left to
// the connection's goroutine, which writes it right after. Any other answer that makes the head ready is written by
// whoever gives it (another client's goroutine, often) if it is small and the socket has room: that costs less than
// waking a goroutine does. Nobody ever waits for another's client: what the socket does not take, and what is big, is
// left to the writer.
type conn struct {
	wire   wire.Conn
	server *Server
	raw    net.Conn // the TCP connection: what is closed
	socket net.Conn // what is read and written: raw, or TLS over it
	via    Listener
	from   netip.Addr
	in     frameReader
	out    sender
	dying  chan struct{} // closed by kill

	mu struct {
		sync.Mutex
		change       sync.Cond // queue shrank, a writer ended, the connection broke
		head, tail   *exchange
		unanswered   int   // exchanges in the queue
		requestBytes int64 // of frames that are not free yet
		unsent       int64 // bytes of answers in memory, not written yet
		current      *exchange
		writing      bool
		broken       error // why the connection is over; answers are dropped
		failure      error // why a request wanted it over
	}
}

// exchange is a request and, later, its answer. The queue of its connection links it.
type exchange struct {
	wire.Request
	conn      *conn
	claim     claim
	frameSize int64
	freed     atomic.Bool // the frame is back in its pool
	next      *exchange

	answered bool // this and the following are guarded by conn.mu
	answer   wire.Response
	failure  error
	size     int64 // of the answer's bytes in memory
}

func newConn(s *Server, socket net.Conn, from netip.Addr, via Listener) *conn {
	c := &conn{
		server: s, raw: socket, socket: socket, via: via, from: from, dying: make(chan struct{}),
	}
	if via.TLS != nil {
		c.socket = tls.Server(socket, via.TLS)
	}
	c.out = newSender(c.socket, c.touch)
	c.wire.Listener, c.wire.SecurityProtocol = via.Name, via.Protocol
	c.wire.Remote, c.wire.Local = socket.RemoteAddr(), socket.LocalAddr()
	c.mu.change.L = &c.mu
	c.in.conn, c.in.buf = c, make([]byte, smallestBuffer)
	c.wire.Touch(time.Now())
	return c
}

// run is the connection's goroutine.
func (c *conn) run() {
	err := c.secure()
	if err == nil {
		c.protect(func() { c.server.handler.Connected(&c.wire) })
		err = c.serve()
		c.protect(func() { c.server.handler.Disconnected(&c.wire) })
	}
	if errors.Is(err, errStopping) {
		err = c.drain()
	}
	c.kill(err)
	c.finish()
	c.server.leave(c)
	c.server.guests.leave(c.via.Name, c.from)
}

// serve handles one request after another until the connection ends.
func (c *conn) serve() error {
	var held [idleStack]byte
	defer runtime.KeepAlive(&held)
	for {
		if err := c.waitForRoom(); err != nil {
			return err
		}
		select {
		case <-c.server.stopped: // what is buffered is not handled any more
			return errStopping
		default:
		}
		x, err := c.in.next()
		if err != nil {
			return err
		}
		c.push(x)
		c.handle(x)
		if !c.in.holdsFrame() { // else one write takes this answer and the next
			c.flush()
		}
	}
}

func (c *conn) handle(x *exchange) {
	if !c.protect(func() { c.server.handler.Handle(&x.Request) }) {
		// Whoever got hold of the request may still answer it, and reads its frame until then. So the frame is left
		// to the garbage collector; only what it holds of the budget is given back now.
		c.server.memory.release(&x.claim)
	}
	c.mu.Lock()
	c.mu.current = nil
	c.mu.Unlock()
}

// protect runs a method of the handler. A fault in it costs this connection, not the broker.
func (c *conn) protect(call func()) (sound bool) {
	defer func() {
		if fault := recover(); fault != nil {
			c.server.cfg.Log.WithFields(logrus.Fields{"client": c.wire.Remote.String(), "stack": string(debug.Stack())}).
				Errorf("Handler panicked: %v", fault)
			c.kill(fmt.Errorf("handler panicked: %v", fault))
		}
	}()
	call()
	return true
}

func (c *conn) push(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.tail == nil {
		c.mu.head = x
	} else {
		c.mu.tail.next = x
	}
	c.mu.tail = x
	c.mu.current = x
	c.mu.unanswered++
	x.frameSize = int64(len(x.Frame))
	c.mu.requestBytes += x.frameSize
}

// touch records that bytes came or went.
func (c *conn) touch() { c.wire.Touch(time.Now()) }

// waitForRoom returns when the connection may take another request.
func (c *conn) waitForRoom() error {
	for {
		c.mu.Lock()
		roomy := c.roomyLocked()
		broken := c.mu.broken
		c.mu.Unlock()
		if broken != nil {
			return broken
		}
		if roomy {
			return nil
		}
		c.flush()
		c.mu.Lock()
		for !c.roomyLocked() && c.mu.broken == nil && !c.headReadyLocked() {
			c.mu.change.Wait()
		}
		c.mu.Unlock()
	}
}

func (c *conn) roomyLocked() bool {
	return c.mu.unanswered < maxUnanswered && c.mu.requestBytes < maxRequestBytes && c.mu.unsent < maxUnsentAnswers
}

// headReadyLocked tells whether there is an answer to write, and nobody writing.
func (c *conn) headReadyLocked() bool {
	return c.mu.head != nil && c.mu.head.answered && !c.mu.writing
}

// stopReading makes the connection's goroutine end its reading and drain. The deadline is the one thing that wakes
// a blocked Read without closing the socket.
func (c *conn) stopReading() { _ = c.socket.SetReadDeadline(time.Unix(1, 0)) }

// drain waits until every request is answered and the answers are written.
func (c *conn) drain() error {
	for {
		c.flush()
		c.mu.Lock()
		for c.mu.head != nil && c.mu.broken == nil && !c.headReadyLocked() {
			c.mu.change.Wait()
		}
		done, broken := c.mu.head == nil && !c.mu.writing, c.mu.broken
		c.mu.Unlock()
		if done && broken == nil {
			c.sayGoodbye()
		}
		if broken != nil || done {
			return broken
		}
	}
}

// kill ends the connection from any goroutine: reads, writes and waits on it fail.
func (c *conn) kill(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breakLocked(reason)
}

func (c *conn) breakLocked(reason error) {
	if c.mu.broken != nil {
		return
	}
	if reason == nil {
		reason = net.ErrClosed
	}
	c.mu.broken = reason
	close(c.dying)
	_ = c.raw.Close() // a reset by the client is no news
	c.mu.change.Broadcast()
}

// finish waits for the writer and drops the answers that nobody will send.
func (c *conn) finish() {
	c.mu.Lock()
	for c.mu.writing {
		c.mu.change.Wait()
	}
	head := c.mu.head
	c.mu.head, c.mu.tail = nil, nil
	reason := c.mu.broken
	if c.mu.failure != nil { // a client that was told of it may have gone before it was closed
		reason = c.mu.failure
	}
	c.mu.Unlock()
	for x := head; x != nil; {
		next := x.next
		x.next = nil
		if x.answered { // since the connection broke, nobody else changes it
			x.answer.Sent()
		}
		x = next
	}
	c.logEnd(reason)
}

// logEnd tells why a connection ended: to the operator when it is the client's fault or the handler's wish, but not
// more often than a log can take.
func (c *conn) logEnd(reason error) {
	log := c.server.cfg.Log.WithFields(logrus.Fields{"client": c.wire.Remote.String(), "listener": c.wire.Listener})
	var fault *protocolError
	if !errors.As(reason, &fault) {
		log.WithError(reason).Debug("Connection closed")
		return
	}
	if allowed, skipped := c.server.complaints.allow(time.Now()); allowed {
		if skipped > 0 {
			log = log.WithField("not_logged", skipped)
		}
		log.WithError(reason).Info("Connection closed, as the client sent what cannot be served")
	}
}

// protocolError is a reason to close a connection that its client has given.
type protocolError struct{ error }

func (e *protocolError) Unwrap() error { return e.error }
