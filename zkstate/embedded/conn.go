package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"barnabas/zkstate/embedded/core"
	"barnabas/zkstate/embedded/proto"
)

// Limits on what one connection may hold of the server.
const (
	maxInFlight    = 32               // requests decoded and not answered
	softQueueBytes = 1 << 20          // answers waiting to be written: no more requests are read
	hardQueueBytes = 256 << 20        // …the connection is given up
	firstFrameWait = 30 * time.Second // a connection that never says what it wants
	lingerWait     = 2 * time.Second  // to deliver the last answer before closing
	stepBytes      = 64 << 10         // a frame is allocated as it arrives, in steps of this
)

// conn is one client's connection. Its reader and writer share only the queue.
type conn struct {
	s      *Server
	e      *engine // that serves it; nil before the first frame, and for one that is relayed
	id     core.Conn
	nc     net.Conn
	ip     string
	counts bool          // among its address's connections
	slots  chan struct{} // one token per request in flight; put by the reader, taken by the engine
	stats  connStats     // the engine's
	sent   chan struct{} // closed when the writer has nothing more to say

	queue struct {
		sync.Mutex
		changed *sync.Cond
		frames  net.Buffers
		bytes   int
		closing bool // after the frames, close
		dead    bool // close now
	}
}

func newConn(s *Server, id core.Conn, nc net.Conn, ip string) *conn {
	c := &conn{s: s, id: id, nc: nc, ip: ip, slots: make(chan struct{}, maxInFlight), sent: make(chan struct{})}
	c.queue.changed = sync.NewCond(&c.queue)
	c.stats.established = time.Now()
	return c
}

// enqueue hands a frame to the writer; it never blocks. A client that lets too much pile up is given up.
func (c *conn) enqueue(frame []byte, last bool) {
	c.queue.Lock()
	defer c.queue.Unlock()
	if c.queue.closing || c.queue.dead {
		return
	}
	if frame != nil {
		c.queue.frames = append(c.queue.frames, frame)
		c.queue.bytes += len(frame)
	}
	c.queue.closing = last
	if c.queue.bytes > hardQueueBytes {
		c.s.log.WithField("client", c.nc.RemoteAddr()).Warn("Client does not read its answers; connection closed")
		c.queue.dead = true
		_ = c.nc.Close()
	}
	if last { // a client that does not read must not hold the writer for ever
		_ = c.nc.SetWriteDeadline(time.Now().Add(lingerWait))
	}
	c.queue.changed.Broadcast()
}

// kill ends the connection without waiting for anything.
func (c *conn) kill() {
	c.queue.Lock()
	c.queue.dead = true
	c.queue.changed.Broadcast()
	c.queue.Unlock()
	_ = c.nc.Close()
}

// writeLoop writes what is queued, all that is there at a time.
func (c *conn) writeLoop() {
	defer c.kill()
	closing := c.writeQueued()
	close(c.sent)
	if closing {
		c.linger()
	}
}

// writeQueued writes until the connection breaks (false) or its last answer is out (true).
func (c *conn) writeQueued() bool {
	for {
		c.queue.Lock()
		for len(c.queue.frames) == 0 && !c.queue.closing && !c.queue.dead {
			c.queue.changed.Wait()
		}
		frames, closing, dead := c.queue.frames, c.queue.closing, c.queue.dead
		c.queue.frames, c.queue.bytes = nil, 0
		c.queue.changed.Broadcast()
		c.queue.Unlock()
		if dead {
			return false
		}
		if len(frames) > 0 {
			if _, err := frames.WriteTo(c.nc); err != nil {
				return false
			}
			continue
		}
		if closing {
			return true
		}
	}
}

// linger lets the client read the last answer: closing a socket with unread input would throw away what was sent.
func (c *conn) linger() {
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok { // TCP and TLS alike
		_ = half.CloseWrite()
	}
	_ = c.nc.SetReadDeadline(time.Now().Add(lingerWait))
	c.queue.Lock()
	defer c.queue.Unlock()
	for !c.queue.dead { // the reader ends on the client's close or the deadline, and kills
		c.queue.changed.Wait()
	}
}

// waitForRoom blocks while too many answers wait for the client to read them.
func (c *conn) waitForRoom() (ok bool) {
	c.queue.Lock()
	defer c.queue.Unlock()
	for c.queue.bytes > softQueueBytes && !c.queue.dead {
		c.queue.changed.Wait()
	}
	return !c.queue.dead
}

// readLoop reads requests until the connection ends, and tells the engine of the end.
func (c *conn) readLoop() {
	defer c.s.leave(c)
	defer c.kill()
	err := c.read()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		c.s.log.WithError(err).WithField("client", c.nc.RemoteAddr()).Debug("Connection ended")
	}
	if c.e != nil {
		c.e.submit(event{kind: evGone, conn: c})
	}
}

func (c *conn) read() error {
	_ = c.nc.SetReadDeadline(time.Now().Add(firstFrameWait))
	var head [4]byte
	if _, err := io.ReadFull(c.nc, head[:]); err != nil {
		return err
	}
	if command, ok := fourLetter(string(head[:])); ok {
		if e := c.s.engine.Load(); e != nil {
			e.submit(event{kind: evCommand, conn: c, command: command, name: string(head[:])})
		} else {
			c.enqueue([]byte(c.s.runDeputy(string(head[:]))), true)
		}
		_, err := io.Copy(io.Discard, io.LimitReader(c.nc, 1024))
		// Whoever asked by `echo ruok | nc` has said all and closed its side; the answer is still owed.
		select {
		case <-c.sent:
		case <-c.s.done:
		}
		return err
	}
	if c.e = c.s.engine.Load(); c.e == nil {
		return c.relay(head[:])
	}
	frame, err := c.frame(head)
	if err != nil {
		return err
	}
	req, err := proto.DecodeConnect(frame)
	if err != nil {
		return err
	}
	_ = c.nc.SetReadDeadline(time.Time{}) // from here on the session's timeout watches over the connection
	if !c.submit(event{kind: evConnect, conn: c, connect: req, certificate: certificateOf(c.nc), size: int64(len(frame))}) {
		return net.ErrClosed
	}
	for {
		if _, err := io.ReadFull(c.nc, head[:]); err != nil {
			return err
		}
		if frame, err = c.frame(head); err != nil {
			return err
		}
		h, body, err := proto.DecodeHeader(frame)
		if err != nil {
			return err
		}
		ev := event{kind: evRequest, conn: c, header: h, size: int64(len(frame))}
		if proto.Known(h.Op) {
			// A body that does not decode is answered with a marshalling error by the core.
			ev.request, _ = proto.DecodeRequest(h.Op, body)
		}
		if !c.submit(ev) {
			return net.ErrClosed
		}
	}
}

// submit takes a slot and passes the event on; it waits while the client has too much in flight.
func (c *conn) submit(ev event) bool {
	if !c.waitForRoom() {
		return false
	}
	select {
	case c.slots <- struct{}{}:
	case <-c.e.done:
		return false
	}
	if !c.e.budget.take(ev.size) {
		return false
	}
	ev.received = time.Now()
	return c.e.submit(ev)
}

// frame reads the body of a frame whose length head carries. It grows with what arrives: a length alone reserves nothing.
func (c *conn) frame(head [4]byte) ([]byte, error) {
	n := int32(binary.BigEndian.Uint32(head[:]))
	if n < 0 || int(n) > c.s.cfg.JuteMaxBuffer {
		return nil, fmt.Errorf("frame of %d bytes is over the limit of %d (jute.maxbuffer)", n, c.s.cfg.JuteMaxBuffer)
	}
	buf := make([]byte, 0, min(int(n), stepBytes))
	for len(buf) < int(n) {
		step := min(int(n)-len(buf), stepBytes)
		buf = append(buf, make([]byte, step)...)
		if _, err := io.ReadFull(c.nc, buf[len(buf)-step:]); err != nil {
			return nil, err
		}
	}
	return buf, nil
}
