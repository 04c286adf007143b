package netserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/broker/quota"
	"barnabas/broker/wire"
)

// Listener is one address to listen on.
type Listener struct {
	Name     string
	Host     string // empty: every interface
	Port     int    // 0: any free one, see Server.Addr
	Protocol string // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; the SASL is the handler's
	// TLS encrypts the connections of a listener whose protocol has SSL in its name, and of no other.
	TLS *tls.Config
	// Identify says for whom the holder of a certificate acts that TLS has verified; nil: for nobody in particular.
	Identify func(*x509.Certificate) (wire.Principal, error)
}

// Config holds a server's settings. Names in brackets are those of Kafka's broker settings.
type Config struct {
	Listeners       []Listener
	MaxRequestBytes int32           // largest frame [socket.request.max.bytes]
	QueuedMaxBytes  int64           // bytes of requests being read or handled; 0: no limit [queued.max.request.bytes]
	Limits          Limits          // of connections, as long as Server.Limit has put no others in force
	Protected       []string        // listeners that others make room for: those between brokers
	Arrivals        *quota.Arrivals // holds new connections to their limits per second
	IdleTimeout     time.Duration   // 0: never [connections.max.idle.ms]
	// SendBuffer is that of the socket; -1 or 0: the system's choice [socket.send.buffer.bytes]. Kafka's 100 KiB sends
	// big pieces of files at two thirds of the processor time that the system's growing buffers take.
	SendBuffer int
	// ReceiveBuffer is that of the socket; -1 or 0: the system's choice [socket.receive.buffer.bytes]. The system's
	// choice is kept, too, where it grows to this size by itself.
	ReceiveBuffer int
	Backlog       int // connections waiting to be accepted; 0: as many as the system allows [socket.listen.backlog.size]
	Log           *logrus.Entry
}

// Server accepts connections and exchanges frames with a handler.
type Server struct {
	cfg     Config
	handler wire.Handler
	memory  *budget
	guests  *guests
	lobby   *lobby
	stopped chan struct{} // closed when Close begins

	complaints pace // about clients

	listening struct {
		sync.Mutex
		bound            []*bound
		serving, closing bool
	}
	acceptors sync.WaitGroup // accept loops and the caretaker; added to only while !listening.closing
	conns     struct {
		sync.Mutex
		open    map[*conn]struct{}
		nextID  uint64
		closing bool
		running sync.WaitGroup // one for each connection's goroutine; added to only while !closing
	}
}

// bound is a listener that has its socket.
type bound struct {
	Listener
	socket net.Listener
	shut   bool // guarded by Server.conns: nobody comes in by it any more
}

// Listen binds every listener, or none: after an error nothing is left bound.
func Listen(cfg Config) (*Server, error) {
	if cfg.MaxRequestBytes <= 0 {
		return nil, fmt.Errorf("the largest request has to be positive, not %d bytes", cfg.MaxRequestBytes)
	}
	descriptors := descriptorLimit()
	s := &Server{
		cfg:     cfg,
		memory:  newBudget(cfg.QueuedMaxBytes),
		guests:  newGuests(cfg, descriptors),
		lobby:   newLobby(descriptors),
		stopped: make(chan struct{}),
	}
	s.conns.open = make(map[*conn]struct{})
	for _, l := range cfg.Listeners {
		if err := s.Open(l); err != nil {
			s.closeSockets()
			return nil, err
		}
	}
	return s, nil
}

// Open binds one listener more. If the server serves, it accepts connections by it from then on.
func (s *Server) Open(l Listener) error {
	socket, err := bind(s.cfg, l)
	if err != nil {
		return err
	}
	s.listening.Lock()
	defer s.listening.Unlock()
	if s.listening.closing {
		return errors.Join(errStopping, socket.Close())
	}
	b := &bound{Listener: l, socket: socket}
	s.listening.bound = append(s.listening.bound, b)
	s.guests.among(len(s.listening.bound))
	if s.listening.serving {
		s.acceptors.Go(func() { s.acceptLoop(b) })
	}
	return nil
}

// Shut closes a listener. Requests that came by it are answered before their connections are closed; it does not wait for that.
func (s *Server) Shut(listener string) {
	s.listening.Lock()
	defer s.listening.Unlock()
	at := slices.IndexFunc(s.listening.bound, func(b *bound) bool { return b.Name == listener })
	if at < 0 {
		return
	}
	b := s.listening.bound[at]
	s.listening.bound = slices.Delete(s.listening.bound, at, at+1)
	s.guests.among(len(s.listening.bound))
	_ = b.socket.Close() // it may have failed already; nothing hangs on it
	s.conns.Lock()
	b.shut = true
	s.conns.Unlock()
	for _, c := range s.snapshot() {
		if c.via.Name == listener {
			c.stopReading()
		}
	}
}

func bind(cfg Config, l Listener) (net.Listener, error) {
	if encrypted := l.Protocol == "SSL" || l.Protocol == "SASL_SSL"; encrypted != (l.TLS != nil) {
		return nil, fmt.Errorf("listener %s: security protocol %s and TLS settings do not go together", l.Name, l.Protocol)
	}
	config := net.ListenConfig{Control: socketOptions(cfg.ReceiveBuffer)}
	socket, err := config.Listen(context.Background(), "tcp", net.JoinHostPort(l.Host, strconv.Itoa(l.Port)))
	if err != nil {
		return nil, fmt.Errorf("listener %s: %w", l.Name, err)
	}
	if err := setBacklog(socket, cfg.Backlog); err != nil {
		return nil, errors.Join(fmt.Errorf("listener %s: %w", l.Name, err), socket.Close())
	}
	return socket, nil
}

// Addr is the bound address of a listener, nil when there is none of that name.
func (s *Server) Addr(listener string) net.Addr {
	s.listening.Lock()
	defer s.listening.Unlock()
	for _, b := range s.listening.bound {
		if b.Name == listener {
			return b.socket.Addr()
		}
	}
	return nil
}

// Connections is the number of open connections.
func (s *Server) Connections() int {
	s.conns.Lock()
	defer s.conns.Unlock()
	return len(s.conns.open)
}

// Serve starts to accept connections and returns at once. It is called once.
func (s *Server) Serve(h wire.Handler) {
	s.handler = h
	s.listening.Lock()
	defer s.listening.Unlock()
	s.listening.serving = true
	for _, b := range s.listening.bound {
		s.acceptors.Go(func() { s.acceptLoop(b) })
	}
	s.acceptors.Go(s.caretaker)
}

// Close stops accepting and reading, lets the requests that are being handled be answered until ctx is done, and
// returns when every connection is closed and every goroutine has ended. It gives ctx's error when it had to cut
// answers off. It is called once.
func (s *Server) Close(ctx context.Context) error {
	close(s.stopped)
	s.closeSockets()
	s.guests.stop()
	s.acceptors.Wait()
	s.lobby.close()
	for _, c := range s.closeDoor() {
		c.stopReading()
	}
	ended := make(chan struct{})
	go func() {
		s.conns.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	for _, c := range s.snapshot() {
		c.kill(ctx.Err())
	}
	<-ended
	return ctx.Err()
}

func (s *Server) closeSockets() {
	s.listening.Lock()
	defer s.listening.Unlock()
	s.listening.closing = true
	for _, b := range s.listening.bound {
		_ = b.socket.Close() // it may have failed already; nothing hangs on it
	}
}

// enter registers a connection and starts it, unless the server or the listener it came by is closing.
func (s *Server) enter(c *conn, by *bound) bool {
	s.conns.Lock()
	defer s.conns.Unlock()
	if s.conns.closing || by.shut {
		return false
	}
	s.conns.nextID++
	c.wire.ID = s.conns.nextID
	s.conns.open[c] = struct{}{}
	s.conns.running.Go(c.run)
	return true
}

func (s *Server) leave(c *conn) {
	s.conns.Lock()
	delete(s.conns.open, c)
	s.conns.Unlock()
}

func (s *Server) closeDoor() []*conn {
	s.conns.Lock()
	s.conns.closing = true
	s.conns.Unlock()
	return s.snapshot()
}

func (s *Server) snapshot() []*conn {
	s.conns.Lock()
	defer s.conns.Unlock()
	open := make([]*conn, 0, len(s.conns.open))
	for c := range s.conns.open {
		open = append(open, c)
	}
	return open
}
