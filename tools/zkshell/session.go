package zkshell

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"barnabas/tools/zkaccess"
	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/proto"
)

// The codes that the client itself gives.
const (
	codeConnectionLoss proto.Code = -4
	codeSessionExpired            = proto.SessionExpired
)

// session keeps one ZooKeeper session over connections: it connects when it is first needed and comes back after a loss.
type session struct {
	server  string // as the user wrote it
	hosts   []string
	chroot  string
	timeout time.Duration
	access  zkaccess.Access
	event   func(state, kind, path string)

	dial sync.Mutex // one attempt at a time
	mu   struct {
		sync.Mutex
		conn    *client.Conn
		session client.Session
		auth    []*proto.AuthRequest
		ended   bool // closed or expired
	}
}

// newSession reads "host:port,host:port/chroot". It does not connect yet.
func newSession(server string, timeout time.Duration, access zkaccess.Access, event func(state, kind, path string)) (*session, error) {
	hosts, chroot, cut := strings.Cut(server, "/")
	if cut && chroot != "" {
		chroot = "/" + chroot
		if err := validatePath(chroot); err != nil {
			return nil, err
		}
	}
	s := &session{server: server, chroot: chroot, timeout: timeout, access: access, event: event}
	for h := range strings.SplitSeq(hosts, ",") {
		h = strings.TrimSpace(h)
		if h == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(h); err != nil {
			h = net.JoinHostPort(strings.Trim(h, "[]"), "2181")
		}
		s.hosts = append(s.hosts, h)
	}
	if len(s.hosts) == 0 {
		return nil, fmt.Errorf("A HostProvider may not be empty!") //nolint:staticcheck // the original's text
	}
	return s, nil
}

func (s *session) closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.ended
}

func (s *session) connectInBackground() { go func() { _, _ = s.connected() }() }

// connected gives the live connection, or makes one: each server is tried once.
func (s *session) connected() (*client.Conn, error) {
	s.dial.Lock()
	defer s.dial.Unlock()
	s.mu.Lock()
	conn, remembered, auth, ended := s.mu.conn, s.mu.session, s.mu.auth, s.mu.ended
	s.mu.Unlock()
	if ended {
		return nil, &client.Error{Code: codeSessionExpired}
	}
	if conn != nil {
		select {
		case <-conn.Done():
			remembered = conn.Session()
			s.event("Disconnected", "None", "null")
		default:
			return conn, nil
		}
	}
	for _, host := range s.hosts {
		c, err := s.open(host, remembered)
		if errors.Is(err, client.ErrExpired) {
			s.end()
			s.event("Expired", "None", "null")
			return nil, &client.Error{Code: codeSessionExpired}
		}
		if err != nil {
			continue
		}
		s.mu.Lock()
		s.mu.conn, s.mu.session = c, c.Session()
		s.mu.Unlock()
		s.event("SyncConnected", "None", "null")
		for _, a := range auth {
			_, _ = c.Do(proto.OpAuth, a)
		}
		return c, nil
	}
	return nil, &client.Error{Code: codeConnectionLoss}
}

// open takes the session up at one server.
func (s *session) open(host string, remembered client.Session) (*client.Conn, error) {
	dialer := &net.Dialer{Timeout: s.timeout}
	var nc net.Conn
	var err error
	if s.access.TLS == nil {
		nc, err = dialer.Dial("tcp", host)
	} else {
		nc, err = tls.DialWithDialer(dialer, "tcp", host, s.access.TLS(host))
	}
	if err != nil {
		return nil, err
	}
	c, err := client.Open(nc, s.timeout, remembered, func(e client.Event) { s.event("SyncConnected", eventName(e.Type), s.strip(e.Path)) })
	if err != nil || s.access.Account == nil {
		return c, err
	}
	if err := c.Login(s.access.Account, host); err != nil {
		s.event("AuthFailed", "None", "null")
		c.Drop()
		return nil, err
	}
	return c, nil
}

func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.ended = true
}

// call sends one request; every failure is an error code, as ZooKeeper's client gives them.
func (s *session) call(op proto.Op, req proto.Request) (*proto.Reader, error) {
	c, err := s.connected()
	if err != nil {
		return nil, err
	}
	r, err := c.Call(op, req)
	var code *client.Error
	if err != nil && !errors.As(err, &code) {
		return nil, &client.Error{Code: codeConnectionLoss}
	}
	return r, err
}

// addAuth remembers an identity for this and every later connection.
func (s *session) addAuth(a *proto.AuthRequest) error {
	s.mu.Lock()
	s.mu.auth = append(s.mu.auth, a)
	conn := s.mu.conn
	s.mu.Unlock()
	if conn == nil {
		return nil
	}
	_, err := conn.Call(proto.OpAuth, a)
	return err
}

// close ends the session at the server.
func (s *session) close() {
	if s.closed() {
		return
	}
	if c, err := s.connected(); err == nil {
		_ = c.Close()
	}
	s.end()
	s.event("Closed", "None", "null")
}

// drop leaves without a word: the session lives on until its timeout, as after the original ends.
func (s *session) drop() {
	s.dial.Lock()
	defer s.dial.Unlock()
	s.mu.Lock()
	conn := s.mu.conn
	s.mu.ended = true
	s.mu.Unlock()
	if conn != nil {
		conn.Drop()
	}
}

// full puts the chroot before a path, strip takes it off.
func (s *session) full(path string) string {
	if s.chroot != "" && path == "/" {
		return s.chroot
	}
	return s.chroot + path
}

func (s *session) strip(path string) string {
	if path == s.chroot {
		return "/"
	}
	return strings.TrimPrefix(path, s.chroot)
}

func eventName(t proto.EventType) string {
	switch t {
	case proto.NodeCreated:
		return "NodeCreated"
	case proto.NodeDeleted:
		return "NodeDeleted"
	case proto.NodeDataChanged:
		return "NodeDataChanged"
	case proto.NodeChildrenChanged:
		return "NodeChildrenChanged"
	}
	return fmt.Sprintf("Unknown(%d)", t)
}
