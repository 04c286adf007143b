package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/zkstate/embedded/core"
)

// serverID is the top byte of session ids, 1 as for a standalone ZooKeeper.
const serverID = 1

// Server is a running embedded ZooKeeper.
type Server struct {
	cfg      Config
	log      *logrus.Entry
	listener net.Listener
	secure   net.Listener // nil without TLS
	store    *store
	engine   atomic.Pointer[engine] // who answers clients; nil on a member of an ensemble that does not lead
	ensemble *ensemble              // nil: it stands alone
	started  time.Time
	done     chan struct{} // closed when the server serves no more
	stop     sync.Once
	wg       sync.WaitGroup // accept loop, readers, writers

	mu struct {
		sync.Mutex
		conns  map[*conn]struct{}
		perIP  map[string]int
		nextID core.Conn
		closed bool
		err    error
	}
}

// Start opens the data directory, takes over what it holds, and serves. Sessions found there have their whole timeout to
// reconnect.
func Start(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	st, state, err := openStore(cfg.DataDir)
	if err != nil {
		return nil, fmt.Errorf("embedded ZooKeeper: %w", err)
	}
	s := &Server{cfg: cfg, log: cfg.Log, store: st, started: time.Now(), done: make(chan struct{})}
	s.mu.conns, s.mu.perIP = map[*conn]struct{}{}, map[string]int{}
	if err = s.listen(); err == nil {
		if err = s.begin(state); err != nil {
			err = errors.Join(err, s.unlisten())
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("embedded ZooKeeper: %w", err), st.close())
	}
	for _, w := range cfg.Warnings {
		s.log.Warn(w)
	}
	s.wg.Go(func() { s.accept(s.listener, s.takeClient) })
	if s.secure != nil {
		s.wg.Go(func() { s.accept(s.secure, s.takeClient) })
	}
	return s, nil
}

// begin starts what answers: an engine, or this server's part in an ensemble.
func (s *Server) begin(state core.State) error {
	log := s.log.WithFields(logrus.Fields{
		"addr": s.Addr(), "dataDir": s.cfg.DataDir, "nodes": len(state.Nodes), "sessions": len(state.Sessions), "zxid": fmt.Sprintf("0x%x", state.Zxid),
	})
	if s.cfg.Ensemble == nil {
		e, err := newEngine(s, state, serverID, s.store.commit)
		if err != nil {
			return err
		}
		s.engine.Store(e)
		log.Info("Embedded ZooKeeper is serving. It is one process without replication: if its disk is lost, so is the cluster's state.")
		go e.run()
		return nil
	}
	en, err := takePart(s, len(state.Nodes) > 0)
	if err != nil {
		return err
	}
	s.ensemble = en
	log.WithField("server", en.id).Infof("Embedded ZooKeeper is one of an ensemble of %d servers", len(en.servers))
	s.wg.Go(en.run)
	s.wg.Go(func() { s.accept(en.relays, func(nc net.Conn) { s.wg.Go(func() { s.takeRelayed(nc) }) }) })
	return nil
}

// Serve runs a server until ctx ends, or until its disk fails, which is the error.
func Serve(ctx context.Context, cfg Config) error {
	s, err := Start(cfg)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-s.Done():
	}
	return errors.Join(s.Err(), s.Close())
}

// listen binds the ports, both or none.
func (s *Server) listen() (err error) {
	if s.listener, err = net.Listen("tcp", s.cfg.Addr); err != nil {
		return err
	}
	if s.cfg.SecureAddr == "" {
		return nil
	}
	s.secure, err = tls.Listen("tcp", s.cfg.SecureAddr, s.cfg.TLS)
	if err != nil {
		_ = s.listener.Close()
	}
	return err
}

func (s *Server) unlisten() error {
	err := s.listener.Close()
	if s.secure != nil {
		err = errors.Join(err, s.secure.Close())
	}
	if s.ensemble != nil {
		err = errors.Join(err, s.ensemble.relays.Close())
	}
	return err
}

// SecureAddr is the address for TLS, empty without.
func (s *Server) SecureAddr() string {
	if s.secure == nil {
		return ""
	}
	return s.secure.Addr().String()
}

// Addr is the address that clients connect to.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Done is closed when the server serves no more: after Close, or after its disk failed.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is why the server stopped serving by itself, nil otherwise.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.err
}

// Close ends all connections and the server. Sessions stay in the data directory and can be taken up after a new Start.
func (s *Server) Close() error {
	s.shutdown(nil)
	if s.ensemble != nil {
		s.ensemble.close()
	} else {
		<-s.engine.Load().stopped
	}
	s.wg.Wait()
	return s.store.close()
}

// shutdown begins the end, once; err is nil when it was asked for.
func (s *Server) shutdown(err error) {
	s.stop.Do(func() {
		s.mu.Lock()
		s.mu.closed, s.mu.err = true, err
		s.mu.Unlock()
		_ = s.unlisten()
		s.killAll()
		close(s.done)
		if s.ensemble == nil {
			s.engine.Load().stop()
		}
	})
}

// killAll ends all connections.
func (s *Server) killAll() {
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.mu.conns))
	s.mu.Unlock()
	for _, c := range conns {
		c.kill()
	}
}

// accept takes connections until its listener closes.
func (s *Server) accept(l net.Listener, take func(net.Conn)) {
	for {
		nc, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, or the like: it passes
			s.log.WithError(err).Warn("Embedded ZooKeeper cannot accept a connection")
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-s.done:
				return
			}
		}
		take(nc)
	}
}

// takeClient serves a client's connection.
func (s *Server) takeClient(nc net.Conn) {
	ip, _, _ := net.SplitHostPort(nc.RemoteAddr().String())
	if c := s.enter(nc, ip, true); c != nil {
		s.wg.Go(c.readLoop)
		s.wg.Go(c.writeLoop)
	}
}

// enter registers a connection, unless its address has too many already, if that counts, or the server is ending.
func (s *Server) enter(nc net.Conn, ip string, counts bool) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	tooMany := counts && s.cfg.MaxClientConns > 0 && s.mu.perIP[ip] >= s.cfg.MaxClientConns
	if tooMany || s.mu.closed {
		if tooMany {
			s.log.WithFields(logrus.Fields{"client": ip, "maxClientCnxns": s.cfg.MaxClientConns}).Warn("Too many connections from one address")
		}
		_ = nc.Close()
		return nil
	}
	s.mu.nextID++
	c := newConn(s, s.mu.nextID, nc, ip)
	s.mu.conns[c] = struct{}{}
	if c.counts = counts; counts {
		s.mu.perIP[ip]++
	}
	return c
}

// leave forgets a connection.
func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.mu.conns[c]; !ok {
		return
	}
	delete(s.mu.conns, c)
	if !c.counts {
		return
	}
	if s.mu.perIP[c.ip]--; s.mu.perIP[c.ip] == 0 {
		delete(s.mu.perIP, c.ip)
	}
}
