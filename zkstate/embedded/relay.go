package embedded

import (
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// A client of a server that does not lead. Its bytes go to the leader's relay port, after a word about who it is, and back.

const (
	relayProtocol = "barnabas-relay-1"
	relayWait     = 3 * time.Second
	maxRelayHello = 16 << 10
)

// relayed is what the leader is told of a client.
type relayed struct {
	Protocol    string `json:"protocol"`
	Server      uint64 `json:"server"` // that took it
	Client      string `json:"client"` // its address
	Certificate string `json:"certificate,omitempty"`
}

// errNoLeader ends a client's connection: it looks for another server.
var errNoLeader = errors.New("no leader to serve it")

// halfCloser is a connection whose one direction can end: TCP and TLS.
type halfCloser interface{ CloseWrite() error }

// relay passes a connection's bytes on, those that were read already first, until either side ends.
func (c *conn) relay(head []byte) error {
	en := c.s.ensemble
	addr := ""
	if en != nil {
		addr = en.leader()
	}
	if addr == "" {
		return errNoLeader
	}
	up, err := net.DialTimeout("tcp", addr, relayWait)
	if err != nil {
		return fmt.Errorf("the leader cannot be reached: %w", err)
	}
	defer up.Close() //nolint:errcheck // both sides have ended, or cannot be told
	hello, err := json.Marshal(relayed{relayProtocol, en.id, c.nc.RemoteAddr().String(), certificateOf(c.nc)})
	if err != nil {
		return err
	}
	begin := append(binary.BigEndian.AppendUint32(nil, uint32(len(hello))), hello...)
	if _, err := up.Write(append(begin, head...)); err != nil {
		return err
	}
	_ = c.nc.SetReadDeadline(time.Time{}) // the leader watches over the session
	back := make(chan struct{})
	c.s.wg.Go(func() {
		defer close(back)
		_, _ = io.Copy(c.nc, up)
		c.endRelay()
	})
	_, err = io.Copy(up, c.nc)
	_ = up.Close()
	<-back
	return err
}

// endRelay lets the client read the leader's last answer, as linger does.
func (c *conn) endRelay() {
	if half, ok := c.nc.(halfCloser); ok {
		_ = half.CloseWrite()
	}
	_ = c.nc.SetReadDeadline(time.Now().Add(lingerWait))
}

// passedOn is a client's connection as the leader has it.
type passedOn struct {
	net.Conn
	client      net.Addr
	certificate string
}

func (p *passedOn) RemoteAddr() net.Addr { return p.client }

func (p *passedOn) CloseWrite() error {
	if half, ok := p.Conn.(halfCloser); ok {
		return half.CloseWrite()
	}
	return nil
}

// takeRelayed hears who a relayed client is and serves it. It is not counted among its address's connections: the server that took it has done that.
func (s *Server) takeRelayed(nc net.Conn) {
	_ = nc.SetReadDeadline(time.Now().Add(relayWait))
	hello, err := readRelayed(nc)
	if err == nil && s.engine.Load() == nil {
		err = errNoLeader
	}
	var client *net.TCPAddr
	if err == nil {
		client, err = net.ResolveTCPAddr("tcp", hello.Client)
	}
	if err != nil {
		s.log.WithError(err).WithField("client", nc.RemoteAddr()).Debug("Relayed connection not taken")
		_ = nc.Close()
		return
	}
	if c := s.enter(&passedOn{nc, client, hello.Certificate}, client.IP.String(), false); c != nil {
		s.wg.Go(c.readLoop)
		s.wg.Go(c.writeLoop)
	}
}

func readRelayed(r io.Reader) (h relayed, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return h, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxRelayHello {
		return h, fmt.Errorf("a relay's first frame has %d bytes", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return h, err
	}
	if err := json.Unmarshal(body, &h); err != nil {
		return h, err
	}
	if h.Protocol != relayProtocol {
		return h, fmt.Errorf("relay of protocol %.40q, not %q", h.Protocol, relayProtocol)
	}
	return h, nil
}

var _ halfCloser = (*tls.Conn)(nil)
