package peer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/wire"
)

// link is one connection. Answers come in the order of the requests, so those in flight are a queue; the socket's
// read deadline is always that of the oldest.
type link struct {
	peer   *Peer
	socket net.Conn
	proven bool // the reader's: an answer has come

	mu struct {
		sync.Mutex
		correlation int32
		inFlight    []*sent // oldest first
		dead        error
	}
}

type sent struct {
	*call
	correlation int32
}

func newLink(p *Peer, socket net.Conn) *link { return &link{peer: p, socket: socket} }

// send writes a call; false when the link was dead before and the call is untouched. From true on the link ends
// the call, whatever happens. Only the peer's sender calls it.
func (l *link) send(c *call) bool {
	l.mu.Lock()
	if l.mu.dead != nil {
		l.mu.Unlock()
		return false
	}
	l.mu.correlation++
	s := &sent{call: c, correlation: l.mu.correlation}
	l.mu.inFlight = append(l.mu.inFlight, s)
	if len(l.mu.inFlight) == 1 {
		_ = l.socket.SetReadDeadline(c.deadline) // fails on a closed socket only, and then so does the write
	}
	l.mu.Unlock()

	frame := l.peer.format.AppendRequest(wire.GetBuffer(0), c.req, s.correlation)
	_ = l.socket.SetWriteDeadline(c.deadline)
	_, err := l.socket.Write(frame)
	wire.PutBuffer(frame)
	if err != nil {
		l.kill(err)
	}
	return true
}

// kill closes the link and fails what is in flight. Whoever comes first says why.
func (l *link) kill(reason error) {
	l.mu.Lock()
	if l.mu.dead != nil {
		l.mu.Unlock()
		return
	}
	l.mu.dead = reason
	lost := l.mu.inFlight
	l.mu.inFlight = nil
	l.mu.Unlock()

	_ = l.socket.Close()
	l.peer.lost(l)
	l.peer.cfg.Log.WithError(reason).Debug("Connection to broker ended")
	for _, s := range lost {
		<-l.peer.slots
		s.done(nil, nil, fmt.Errorf("%s to broker %d: %w", kmsg.NameForKey(s.req.Key()), l.peer.cfg.ID, reason))
	}
}

// reader hands out answers until the link dies.
func (l *link) reader() {
	in := bufio.NewReaderSize(l.socket, 4096)
	for {
		if err := l.answer(in); err != nil {
			if !l.proven {
				l.peer.failed()
			}
			switch {
			case errors.Is(err, io.EOF):
				err = fmt.Errorf("the other side closed the connection: %w", io.ErrUnexpectedEOF)
			case errors.Is(err, os.ErrDeadlineExceeded):
				err = fmt.Errorf("%w: no answer within %s", kerr.RequestTimedOut, l.peer.cfg.Timeout)
			}
			l.kill(err)
			return
		}
	}
}

// answer reads one answer and ends its call.
func (l *link) answer(in *bufio.Reader) error {
	var head [8]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return err
	}
	size := int32(binary.BigEndian.Uint32(head[:])) - 4
	if size < 0 || size > l.peer.cfg.MaxResponseBytes {
		return fmt.Errorf("answer of %d bytes, at most %d are taken", size, l.peer.cfg.MaxResponseBytes)
	}
	s, err := l.oldest(int32(binary.BigEndian.Uint32(head[4:])))
	if err != nil {
		return err
	}
	var body []byte
	if s.pooled {
		body = wire.GetBuffer(int(size))[:size]
	} else {
		body = make([]byte, size)
	}
	if _, err := io.ReadFull(in, body); err != nil {
		return err
	}
	resp, err := decode(s.req, body)
	if err != nil {
		return fmt.Errorf("answer to %s version %d: %w", kmsg.NameForKey(s.req.Key()), s.req.GetVersion(), err)
	}
	if l.pop() {
		if !l.proven {
			l.proven = true
			l.peer.worked()
		}
		s.done(body, resp, nil)
	}
	return nil
}

// oldest gives the request that the answer with this correlation id must belong to.
func (l *link) oldest(correlation int32) (*sent, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.dead != nil {
		return nil, l.mu.dead
	}
	if len(l.mu.inFlight) == 0 || l.mu.inFlight[0].correlation != correlation {
		return nil, fmt.Errorf("answer with correlation id %d that nobody waits for", correlation)
	}
	return l.mu.inFlight[0], nil
}

// pop takes the oldest request out of the queue; false when kill has had it.
func (l *link) pop() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.dead != nil {
		return false
	}
	l.mu.inFlight[0] = nil
	l.mu.inFlight = l.mu.inFlight[1:]
	var deadline time.Time
	if len(l.mu.inFlight) > 0 {
		deadline = l.mu.inFlight[0].deadline
	}
	_ = l.socket.SetReadDeadline(deadline)
	<-l.peer.slots
	return true
}

// decode reads the answer to req from what follows the correlation id. Byte fields alias body.
func decode(req kmsg.Request, body []byte) (kmsg.Response, error) {
	resp := req.ResponseKind()
	if req.Key() == wire.KeyApiVersions {
		if len(body) >= 2 && int16(binary.BigEndian.Uint16(body)) == kerr.UnsupportedVersion.Code {
			resp.SetVersion(0) // the layout that everybody can read (KIP-511)
		}
	} else if resp.IsFlexible() {
		var err error
		if body, err = wire.SkipTags(body); err != nil {
			return nil, err
		}
	}
	return resp, resp.ReadFrom(body)
}
