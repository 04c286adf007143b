package zkstate

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/sasl"
)

// dialer opens the connections of one generation. It resolves names at every attempt, since servers move, and looks
// at the first packet of each connection: go-zookeeper neither bounds how long a server may take to confirm a session
// (one that hangs would hold the client for many session timeouts while others are ready), nor how long that packet
// may be, nor tells what timeout the server granted and by which password the session is known.
type dialer struct {
	ctx       context.Context
	stop      context.CancelFunc
	limit     time.Duration
	tls       func(addr string) *tls.Config // nil in plaintext
	account   sasl.Login                    // nil: nobody
	denied    func()                        // told when a server refuses the account
	confirmed atomic.Pointer[confirmation]  // the last; nil: none yet
	refused   atomic.Pointer[error]         // why the last attempt to connect failed; nil: none did
	lease     lease
}

func newDialer(c *Client) *dialer {
	ctx, cancel := context.WithCancel(context.Background())
	limit := c.cfg.SessionTimeout / time.Duration(len(c.servers)+1)
	return &dialer{ctx: ctx, stop: cancel, limit: max(limit, time.Second), tls: c.cfg.TLS, account: c.cfg.SASL, denied: func() {}}
}

// timeout is the session timeout that the last server granted.
func (d *dialer) timeout() time.Duration {
	if c := d.confirmed.Load(); c != nil {
		return c.timeout
	}
	return 0
}

// alive tells whether the session cannot be over yet.
func (d *dialer) alive(now time.Time) bool { return d.lease.runs(now, d.timeout()) }

func (d *dialer) dial(network, address string, _ time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, d.limit)
	defer cancel()
	conn, err := d.connect(ctx, network, address)
	if err != nil {
		err = fmt.Errorf("%s: %w", address, err)
		if d.ctx.Err() == nil { // or it was given up, and only says so
			d.refused.Store(&err)
		}
		return nil, err
	}
	h := &handshake{Conn: conn, server: address, buffered: bufio.NewReaderSize(conn, readBuffer), dialer: d, deadline: time.Now().Add(d.limit)}
	h.asked.lease = &d.lease
	return h, nil
}

// connect opens a connection as the configuration wants it, over which nothing was said yet.
func (d *dialer) connect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil || d.tls == nil {
		return conn, err
	}
	secure := tls.Client(conn, d.tls(address))
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

// open takes a session up, or begins one, over a connection of its own, which is authenticated as those that dial gives. A server that hangs holds nobody up for longer than limit.
func (d *dialer) open(ctx context.Context, server string, session client.Session, limit time.Duration) (*client.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	nc, err := d.connect(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	conn, err := client.Open(nc, limit, session, nil)
	if err != nil || d.account == nil {
		return conn, err
	}
	defer context.AfterFunc(ctx, conn.Drop)()
	if err := conn.Login(d.account, server); err != nil {
		conn.Drop()
		return nil, err
	}
	return conn, nil
}

// handshake is a connection whose first packet is watched. It reads through a buffer: go-zookeeper asks the kernel twice
// for every packet.
type handshake struct {
	net.Conn
	server   string // its address, as it was asked for
	buffered *bufio.Reader
	dialer   *dialer
	deadline time.Time // for the first packet
	seen     []byte
	past     bool
	asked    conversation
}

const readBuffer = 16 << 10

func (h *handshake) SetReadDeadline(t time.Time) error {
	if !h.past && (t.IsZero() || t.After(h.deadline)) {
		t = h.deadline
	}
	return h.Conn.SetReadDeadline(t)
}

// Write notes when packets leave: go-zookeeper writes each by itself, with its length.
func (h *handshake) Write(p []byte) (int, error) {
	h.asked.leaves(time.Now())
	return h.Conn.Write(p)
}

func (h *handshake) Read(p []byte) (int, error) {
	n, err := h.buffered.Read(p)
	if !h.past {
		n, err = h.confirm(p, n, err)
	}
	h.asked.comes(p[:n])
	return n, err
}

// confirm looks at what was read of the first packet.
func (h *handshake) confirm(p []byte, n int, err error) (int, error) {
	h.seen = append(h.seen, p[:min(n, maxConfirmation-len(h.seen))]...)
	c, whole, bad := parseConfirmation(h.seen)
	if bad != nil {
		return 0, bad
	}
	if whole {
		if h.dialer.account != nil && c.session.ID != 0 {
			if err := h.login(h.dialer.account); err != nil {
				return 0, err
			}
		}
		h.dialer.confirmed.Store(&c)
		h.past, h.seen = true, nil
		if derr := h.Conn.SetReadDeadline(time.Time{}); derr != nil && err == nil {
			err = derr
		}
	}
	return n, err
}

// rotation goes through the servers by name, for ever, in an order shuffled once. It replaces go-zookeeper's own,
// which resolves names only once.
type rotation struct {
	mu      sync.Mutex
	servers []string
	next    int
	tried   int // since the last success
}

// Init takes the servers.
func (r *rotation) Init(servers []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers = append([]string(nil), servers...)
	rand.Shuffle(len(r.servers), func(i, j int) { r.servers[i], r.servers[j] = r.servers[j], r.servers[i] })
	return nil
}

// Len is the number of servers.
func (r *rotation) Len() int { return len(r.servers) }

// Next is the server to try, and whether all were tried since the last success: then the caller pauses.
func (r *rotation) Next() (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	again := r.tried >= len(r.servers)
	if again {
		r.tried = 0
	}
	server := r.servers[r.next%len(r.servers)]
	r.next++
	r.tried++
	return server, again
}

// Connected tells that the last server answered.
func (r *rotation) Connected() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried = 0
}

// debugLog is where go-zookeeper's own lines go.
type debugLog struct{ log *logrus.Entry }

func (l debugLog) Printf(format string, args ...any) { l.log.Debugf("ZooKeeper: "+format, args...) }
