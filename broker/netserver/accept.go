package netserver

import (
	"errors"
	"net"
	"time"
)

const (
	acceptBackoffMin = 5 * time.Millisecond
	acceptBackoffMax = time.Second
)

// acceptLoop accepts until the listener is closed. While the server is full or connections come too fast, one accepted
// connection per listener waits here and the others in the kernel's queue, as with Kafka.
func (s *Server) acceptLoop(b *bound) {
	log := s.cfg.Log.WithField("listener", b.Name)
	backoff := acceptBackoffMin
	for {
		socket, err := b.socket.Accept()
		switch {
		case err == nil:
			backoff = acceptBackoffMin
			s.welcome(b, socket)
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors, or the client has gone already: it passes
			log.WithError(err).Warn("Cannot accept a connection")
			select {
			case <-s.stopped:
				return
			case <-time.After(backoff):
			}
			backoff = min(2*backoff, acceptBackoffMax)
		}
	}
}

// welcome starts a connection on an accepted socket, or closes it when it may not come in.
func (s *Server) welcome(b *bound, socket net.Conn) {
	from := addressOf(socket)
	if s.guests.full(b.Name) {
		if allowed, _ := s.complaints.allow(time.Now()); allowed {
			s.cfg.Log.WithField("listener", b.Name).
				Warn("No more connections are taken until others are closed: raise max.connections or the limit of open files")
		}
	}
	if err := s.guests.enter(b.Name, from); err != nil {
		s.cfg.Log.WithField("client", socket.RemoteAddr().String()).WithError(err).Debug("Connection refused")
		if early := new(turnedAway); errors.As(err, &early) {
			s.lobby.hold(socket, early.after)
		} else {
			_ = socket.Close()
		}
		return
	}
	if tcp, ok := socket.(*net.TCPConn); ok && s.cfg.SendBuffer > 0 {
		_ = tcp.SetWriteBuffer(s.cfg.SendBuffer) // a wish; the kernel may clip it
	}
	c := newConn(s, socket, from, b.Listener)
	if !s.enter(c, b) {
		s.guests.leave(b.Name, from)
		_ = socket.Close()
		return
	}
	s.makeRoom()
}
