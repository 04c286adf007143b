package peer

import (
	"bufio"
	"sync"
	"time"

	"barnabas/broker/wire"
)

// link is one connection. Answers come in the order of the requests, so those in flight are a queue; the socket's
// read deadline is always that of the oldest.
type link struct {
	peer   *Peer
	socket secured
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

func newLink(p *Peer, socket secured) *link { return &link{peer: p, socket: socket} }

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
		s.done(nil, l.peer.cfg.failure(s.req, reason))
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
			l.kill(l.peer.cfg.whyNoAnswer(err))
			return
		}
	}
}

// answer reads one answer and ends its call.
func (l *link) answer(in *bufio.Reader) error {
	size, correlation, err := l.peer.cfg.readHead(in)
	if err != nil {
		return err
	}
	s, err := l.oldest(correlation)
	if err != nil {
		return err
	}
	resp, err := readBody(in, s.req, make([]byte, size))
	if err != nil {
		return err
	}
	if l.pop() {
		if !l.proven {
			l.proven = true
			l.peer.worked()
		}
		s.done(resp, nil)
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
		return nil, unasked(correlation)
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
