package netserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"barnabas/broker/wire"
)

const (
	// A frame gets memory for its first piece at once, and for growth times what has arrived whenever that is
	// full. So a stranger makes the server set aside 16 bytes for each that it sends, beyond 4 KiB. The copies that
	// growing costs are not paid twice: a connection whose frames have come in whole gets memory for as big a
	// frame, up to maxTrust, at once.
	firstPiece = 4 << 10
	growth     = 16
	maxTrust   = 4 << 20

	// While clients wait for memory, a frame that takes longer than stallAfter has to come in at stallRate at least.
	stallAfter = 10 * time.Second
	stallRate  = 64 << 10 // bytes per second
)

const (
	smallestBuffer = 512
	largestBuffer  = 8 << 10
)

// frameReader cuts the bytes of a connection into frames. It reads into a small buffer, which takes length and frame
// with one system call and costs an idle connection little; what does not fit is read straight into the frame's own
// memory. The buffer grows with the frames that it would have taken, were it larger.
type frameReader struct {
	conn       *conn
	buf        []byte
	start, end int // what is buffered and not consumed
	trust      int // largest frame that has come in whole, at most maxTrust

	// Of the frame being read, for the caretaker: when it began (Unix ns; 0: none is, or it waits for memory), and
	// how many bytes have come.
	began   atomic.Int64
	arrived atomic.Int64
}

// next reads one frame and charges it to the memory budget.
func (r *frameReader) next() (*exchange, error) {
	if err := r.conn.unmuted(); err != nil {
		return nil, err
	}
	for r.end-r.start < 4 {
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
	size := int32(binary.BigEndian.Uint32(r.buf[r.start:]))
	limit := r.conn.server.cfg.MaxRequestBytes
	if own := r.conn.wire.FrameLimit; own > 0 {
		limit = min(limit, own)
	}
	if size < 0 || size > limit {
		return nil, &protocolError{fmt.Errorf("frame of %d bytes, at most %d are allowed%s", size, limit, otherProtocol(r.buf[r.start:r.end]))}
	}
	r.start += 4
	x := &exchange{conn: r.conn}
	frame, err := r.body(&x.claim, int(size))
	r.began.Store(0)
	if err != nil {
		wire.PutBuffer(frame)
		r.conn.server.memory.release(&x.claim)
		return nil, err
	}
	r.trust = max(r.trust, min(int(size), maxTrust))
	r.growBuffer(int(size) + 4)
	now := time.Now()
	r.conn.wire.Touch(now)
	x.Init(&r.conn.wire, frame, now, x)
	return x, nil
}

// otherProtocol tells what a stream may be that begins with an impossible length.
func otherProtocol(start []byte) string {
	switch first := string(start[:4]); {
	case start[0] == 0x16 && start[1] == 3:
		return " (the client speaks TLS; this listener does not)"
	case first == "GET " || first == "POST" || first == "PUT " || first == "HEAD" || first == "OPTI":
		return " (the client speaks HTTP)"
	default:
		return ""
	}
}

// body reads the size bytes of a frame. After an error it gives the buffer that it used.
func (r *frameReader) body(c *claim, size int) ([]byte, error) {
	room := min(size, max(firstPiece, r.trust, r.end-r.start)) // what has arrived needs room in any case
	if err := r.charge(c, room); err != nil {
		return nil, err
	}
	frame := wire.GetBuffer(room)
	taken := min(size, r.end-r.start)
	frame = append(frame, r.buf[r.start:r.start+taken]...)
	r.start += taken
	if len(frame) == size {
		return frame, nil
	}
	r.arrived.Store(int64(taken))
	r.began.Store(time.Now().UnixNano())
	for len(frame) < size {
		if len(frame) == room {
			more := min(size, room*growth)
			if err := r.charge(c, more-room); err != nil {
				return frame, err
			}
			grown := append(wire.GetBuffer(more), frame...)
			wire.PutBuffer(frame)
			frame, room = grown, more
		}
		n, err := r.read(frame[len(frame):room])
		frame = frame[:len(frame)+n]
		r.arrived.Add(int64(n))
		if err != nil {
			return frame, err
		}
		if len(frame) < size {
			r.conn.touch()
		}
	}
	return frame, nil
}

// charge takes memory for n more bytes of a frame. Before it waits, the answers that are ready go out.
func (r *frameReader) charge(c *claim, n int) error {
	memory := r.conn.server.memory
	if memory.take(c, int64(n)) {
		return nil
	}
	r.conn.flush()
	began := r.began.Swap(0)
	waited := time.Now()
	if err := memory.wait(c, int64(n), r.conn.dying); err != nil {
		return err
	}
	if began != 0 {
		r.began.Store(began + int64(time.Since(waited)))
	}
	return nil
}

// fill reads once into the small buffer.
func (r *frameReader) fill() error {
	if r.start > 0 {
		copy(r.buf, r.buf[r.start:r.end])
		r.end -= r.start
		r.start = 0
	}
	n, err := r.read(r.buf[r.end:])
	r.end += n
	return err
}

// growBuffer makes room for frames of so many bytes, between two of them.
func (r *frameReader) growBuffer(size int) {
	if size <= len(r.buf) || size > largestBuffer || r.start < r.end {
		return
	}
	room := len(r.buf)
	for room < size {
		room *= 2
	}
	r.buf, r.start, r.end = make([]byte, room), 0, 0
}

// read reads once from the socket.
func (r *frameReader) read(p []byte) (int, error) {
	n, err := r.conn.socket.Read(p)
	if n > 0 {
		return n, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, errStopping // only stopReading sets a deadline
	}
	return 0, err
}

// holdsFrame tells whether the next frame is there without reading.
func (r *frameReader) holdsFrame() bool {
	n := r.end - r.start
	return n >= 4 && int64(n-4) >= int64(binary.BigEndian.Uint32(r.buf[r.start:]))
}

// stalled tells whether the frame being read comes in too slowly for a time when others wait for memory.
func (r *frameReader) stalled(now time.Time) bool {
	began := r.began.Load()
	if began == 0 {
		return false
	}
	took := now.Sub(time.Unix(0, began))
	return took > stallAfter && float64(r.arrived.Load()) < stallRate*took.Seconds()
}
