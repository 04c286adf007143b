package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Config holds what a Peer needs.
type Config struct {
	ID       int32  // of the other broker, for the log
	Addr     string // host:port
	ClientID string
	Timeout  time.Duration // of one request, waiting and connecting included; 0: 30 s [request.timeout.ms]
	// MaxInFlight limits the requests that are sent and not answered; 0: 5. Others wait their turn.
	MaxInFlight int
	// MaxResponseBytes is the largest answer; 0: 100 MiB.
	MaxResponseBytes int32
	ReceiveBuffer    int           // of the socket; -1 or 0: the system's choice [replica.socket.receive.buffer.bytes]
	BackoffMin       time.Duration // between attempts to connect; 0: 50 ms, doubled up to BackoffMax
	BackoffMax       time.Duration // 0: 1 s
	// Dial connects; nil: TCP.
	Dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	Security Security // the zero value: neither TLS nor SASL
	Log      *logrus.Entry
}

var (
	// ErrClosed is wrapped when the peer was closed.
	ErrClosed = errors.New("peer closed")
	// ErrNotSent is wrapped by every error of a request of which no byte went out, so that sending it again cannot
	// do anything twice.
	ErrNotSent = errors.New("request not sent")
	// ErrBusy is wrapped when too many requests wait already.
	ErrBusy = errors.New("too many requests wait for this broker")
)

const (
	maxWaiting       = 256 // requests that wait to be sent
	defaultTimeout   = 30 * time.Second
	defaultInFlight  = 5
	defaultResponse  = 100 << 20
	defaultBackoff   = 50 * time.Millisecond
	defaultBackoffTo = time.Second
)

// served is the range of versions that a broker serves of one API.
type served struct{ Min, Max int16 }

// Peer is a connection to another broker that is made when first needed, and made anew when lost. Its requests are
// sent in the order in which they were given, each once.
//
// Goroutines: sender, from New to Close, takes calls from the queue, connects and writes; one reader for each
// connection hands out the answers, and ends with the connection.
type Peer struct {
	cfg    Config
	format *kmsg.RequestFormatter
	queue  chan *call
	slots  chan struct{} // one for each request in flight
	ctx    context.Context
	stop   context.CancelFunc
	tasks  sync.WaitGroup

	mu struct {
		sync.Mutex
		closed   bool
		link     *link
		versions map[int16]served // of link
		pauses   pauses
	}
}

// call is a request on its way.
type call struct {
	req      kmsg.Request
	ctx      context.Context
	deadline time.Time
	done     func(kmsg.Response, error)
}

// New makes a peer; nothing is connected yet. Close ends it.
func New(cfg Config) *Peer {
	cfg = cfg.complete()
	p := &Peer{
		cfg:    cfg,
		format: kmsg.NewRequestFormatter(kmsg.FormatterClientID(cfg.ClientID)),
		queue:  make(chan *call, maxWaiting),
		slots:  make(chan struct{}, cfg.MaxInFlight),
	}
	p.mu.pauses = pauses{least: cfg.BackoffMin, most: cfg.BackoffMax}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.tasks.Go(p.sender)
	return p
}

// complete puts defaults in place.
func (cfg Config) complete() Config {
	cfg.Timeout = orDefault(cfg.Timeout, defaultTimeout)
	cfg.MaxInFlight = orDefault(cfg.MaxInFlight, defaultInFlight)
	cfg.MaxResponseBytes = orDefault(cfg.MaxResponseBytes, defaultResponse)
	cfg.BackoffMin = orDefault(cfg.BackoffMin, defaultBackoff)
	cfg.BackoffMax = orDefault(cfg.BackoffMax, defaultBackoffTo)
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	cfg.Log = cfg.Log.WithFields(logrus.Fields{"peer": cfg.ID, "addr": cfg.Addr})
	return cfg
}

func (cfg *Config) connect(ctx context.Context) (secured, error) {
	socket, err := cfg.Dial(ctx, "tcp", cfg.Addr)
	if err != nil {
		return secured{}, fmt.Errorf("cannot connect: %w", err)
	}
	if tcp, ok := socket.(*net.TCPConn); ok && cfg.ReceiveBuffer > 0 {
		_ = tcp.SetReadBuffer(cfg.ReceiveBuffer) // a wish; the kernel may clip it
	}
	return cfg.secure(ctx, socket)
}

func orDefault[T int | int32 | time.Duration](value, fallback T) T {
	if value <= 0 {
		return fallback
	}
	return value
}

// Send sends a request at the version that its caller has set, and returns at once. done is called exactly once,
// from another goroutine, and must not block. ctx is only looked at until the request is sent; after that the
// answer, the time-out or the loss of the connection ends it. A request that was sent and lost is not sent again:
// its caller knows whether it may be repeated.
func (p *Peer) Send(ctx context.Context, req kmsg.Request, done func(kmsg.Response, error)) {
	p.submit(&call{req: req, ctx: ctx, done: done})
}

func (p *Peer) submit(c *call) {
	c.deadline = time.Now().Add(p.cfg.Timeout)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		p.fail(c, ErrClosed)
		return
	}
	select {
	case p.queue <- c:
	default:
		p.fail(c, ErrBusy)
	}
}

// fail ends a call that was not queued, from a goroutine of its own: its caller may hold locks.
func (p *Peer) fail(c *call, err error) {
	go c.done(nil, p.unsent(c, err))
}

func (p *Peer) unsent(c *call, err error) error { return p.cfg.unsent(c.req, err) }

func (cfg *Config) unsent(req kmsg.Request, err error) error {
	return cfg.failure(req, fmt.Errorf("%w: %w", ErrNotSent, err))
}

// failure says whose request failed.
func (cfg *Config) failure(req kmsg.Request, err error) error {
	return fmt.Errorf("%s to broker %d: %w", kmsg.NameForKey(req.Key()), cfg.ID, err)
}

// Do is Send and waiting for the answer, or for ctx.
func (p *Peer) Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	type outcome struct {
		resp kmsg.Response
		err  error
	}
	answered := make(chan outcome, 1) // an answer after ctx has ended is left to the garbage collector
	p.Send(ctx, req, func(resp kmsg.Response, err error) { answered <- outcome{resp, err} })
	select {
	case o := <-answered:
		return o.resp, o.err
	case <-ctx.Done():
		return nil, p.cfg.failure(req, ctx.Err())
	}
}

// versionsAsked is the version of ApiVersions that is asked. A broker that does not know it answers with version 0.
const versionsAsked = 3

// versions asks which versions the other broker serves; the answer is kept until the connection is lost.
func (p *Peer) versions(ctx context.Context) (map[int16]served, error) {
	p.mu.Lock()
	known := p.mu.versions
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version = versionsAsked
	req.ClientSoftwareName, req.ClientSoftwareVersion = "barnabas", "peer"
	answer, err := p.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := answer.(*kmsg.ApiVersionsResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil && !errors.Is(err, kerr.UnsupportedVersion) {
		return nil, fmt.Errorf("ApiVersions to broker %d: %w", p.cfg.ID, err)
	}
	versions := make(map[int16]served, len(resp.ApiKeys))
	for _, row := range resp.ApiKeys {
		versions[row.ApiKey] = served{Min: row.MinVersion, Max: row.MaxVersion}
	}
	p.mu.Lock()
	if p.mu.link != nil {
		p.mu.versions = versions
	}
	p.mu.Unlock()
	return versions, nil
}

// Negotiate sets req to the highest version that both sides know and that is not above limit.
func (p *Peer) Negotiate(ctx context.Context, req kmsg.Request, limit int16) error {
	versions, err := p.versions(ctx)
	if err != nil {
		return err
	}
	served, ok := versions[req.Key()]
	version := min(served.Max, limit, req.MaxVersion())
	if !ok || version < served.Min {
		return fmt.Errorf("%s at most version %d to broker %d: %w", kmsg.NameForKey(req.Key()), limit, p.cfg.ID, kerr.UnsupportedVersion)
	}
	req.SetVersion(version)
	return nil
}

// Close ends the connection, fails what waits or is in flight, and returns when the peer's goroutines have ended.
// It may be called again.
func (p *Peer) Close() error {
	p.mu.Lock()
	p.mu.closed = true
	l := p.mu.link
	p.mu.Unlock()
	p.stop()
	if l != nil {
		l.kill(ErrClosed)
	}
	p.tasks.Wait()
	return nil
}
