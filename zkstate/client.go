package zkstate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/zkstate/sasl"
)

// Auth is one credential presented to the ensemble, such as {"digest", "user:password"}.
type Auth struct{ Scheme, Credential string }

// Config is what a Client needs to know.
type Config struct {
	Servers        string        // zookeeper.connect: host:port,host:port/chroot
	SessionTimeout time.Duration // zookeeper.session.timeout.ms; default 18 s. The ensemble may grant another
	ConnectTimeout time.Duration // how long Connect waits for the first session; default SessionTimeout
	Auth           []Auth
	SASL           sasl.Login                    // as whom every connection is authenticated; nil: nobody
	TLS            func(addr string) *tls.Config // zookeeper.ssl.client.enable: how to speak to the server at host:port; nil for plaintext
	MaxInFlight    int                           // zookeeper.max.in.flight.requests, for each call of Do; default 10
	SecureACLs     bool                          // zookeeper.set.acl: nodes are made with Kafka's ACLs instead of open to all
	Reads          bool                          // nothing is to be written: a chroot that is missing is not made
	MaxPacketBytes int                           // jute.maxbuffer of the servers; default theirs, 1 MiB - 1
	Log            *logrus.Entry
}

const (
	defaultSessionTimeout = 18 * time.Second
	defaultMaxInFlight    = 10
	defaultMaxPacket      = 0xfffff
)

func (c Config) withDefaults() Config {
	if c.SessionTimeout <= 0 {
		c.SessionTimeout = defaultSessionTimeout
	}
	if c.ConnectTimeout <= 0 {
		c.ConnectTimeout = c.SessionTimeout
	}
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = defaultMaxInFlight
	}
	if c.MaxPacketBytes <= 0 {
		c.MaxPacketBytes = defaultMaxPacket
	}
	return c
}

// Client is a connection to an ensemble that survives its servers and its sessions. Its methods may be called by
// any goroutine.
//
// A single goroutine (run) owns the session core and dials; what happens on connections reaches it as reports.
// Operations look at the current generation under mu and then deal with its connection alone.
type Client struct {
	cfg     Config
	servers []string
	chroot  string
	log     *logrus.Entry

	reports chan report   // to run; never blocks for long, since run only does bookkeeping
	done    chan struct{} // closed when the client is closed
	stopped sync.WaitGroup
	closing sync.Once

	bulk bulk

	announced [AuthFailed + 1]atomic.Int64 // events about the session, by kind

	mu struct {
		sync.Mutex
		current       *generation
		past          []int64 // ids of ended sessions of this client, the latest last
		subscriptions map[*Subscription]struct{}
		closed        bool
	}
}

// Connect opens a session and makes the chroot if it is missing. It fails with ErrNoSession when no session could be had in
// Config.ConnectTimeout; from then on the client tries for ever.
func Connect(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	servers, chroot, err := parseConnect(cfg.Servers)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, servers: servers, chroot: chroot, log: cfg.Log,
		reports: make(chan report, 16), done: make(chan struct{})}
	c.mu.subscriptions = map[*Subscription]struct{}{}
	core := &sessionCore{}
	c.obey(core.start(), core)
	c.stopped.Add(1)
	go c.run(core)

	ctx, cancel := context.WithTimeout(context.Background(), cfg.ConnectTimeout)
	defer cancel()
	if err := c.current().wait(ctx); err != nil {
		c.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, c.noSession()
		}
		return nil, fmt.Errorf("connecting to ZooKeeper at %s: %w", cfg.Servers, err)
	}
	if cfg.Reads {
		return c, nil
	}
	if err := c.makeChroot(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("creating the chroot %s in ZooKeeper: %w", chroot, err)
	}
	return c, nil
}

// noSession is why a first session could not be had; what a certificate lacks is told only by the attempt to connect.
func (c *Client) noSession() error {
	err := fmt.Errorf("%w within %v from %s", ErrNoSession, c.cfg.ConnectTimeout, c.cfg.Servers)
	if refused := c.current().wire.refused.Load(); refused != nil {
		err = fmt.Errorf("%w: %w", err, *refused)
	}
	return err
}

// makeChroot creates the chroot path, which stands outside of what every other operation can name.
func (c *Client) makeChroot(ctx context.Context) error {
	if c.chroot == "" {
		return nil
	}
	outside := &Client{cfg: c.cfg, log: c.log, done: c.done} // the same session without the chroot
	outside.mu.current = c.current()
	return outside.CreateRecursive(ctx, c.chroot, nil)
}

// Close ends the session, so that its ephemeral nodes go at once, and everything that waits.
func (c *Client) Close() {
	c.closing.Do(func() { close(c.done) })
	c.stopped.Wait()
}

// run is the shell's loop.
func (c *Client) run(core *sessionCore) {
	defer c.stopped.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		var r report
		select {
		case r = <-c.reports:
		case <-timer.C:
			r.kind = tick
		case <-c.done:
			c.shutdown(core)
			return
		}
		for _, s := range c.obey(core.handle(r, time.Now()), core) {
			timer.Reset(time.Until(s.at))
		}
	}
}

// obey does what the core wants and returns the wakes, which need the loop's timer.
func (c *Client) obey(steps []step, core *sessionCore) (wakes []step) {
	for _, s := range steps {
		switch s.kind {
		case announce:
			c.announce(s.event)
		case open:
			c.current().open(core.session, core.timeout)
		case shut:
			c.current().shut()
		case end:
			c.retire(ErrSessionExpired)
		case dial:
			c.dial(core.generation)
		case wake:
			wakes = append(wakes, s)
		}
	}
	return wakes
}

func (c *Client) current() *generation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.current
}

// Announced is how many events of a kind, other than those of watches, there were since the client was made.
func (c *Client) Announced(kind EventKind) int64 { return c.announced[kind].Load() }

func (c *Client) announce(e Event) {
	c.announced[e.Kind].Add(1)
	entry := c.log.WithFields(logrus.Fields{"session": fmt.Sprintf("0x%x", e.Session), "generation": e.Generation})
	switch e.Kind {
	case SessionStarted, Connected:
		entry.Info("ZooKeeper: ", e.Kind)
	default:
		entry.Warn("ZooKeeper: ", e.Kind)
	}
	c.publish(e)
}

func (c *Client) publish(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.mu.subscriptions {
		s.push(e)
	}
}

// retire fails the current generation for good.
func (c *Client) retire(reason error) {
	c.mu.Lock()
	g := c.mu.current
	if id := g.sessionID(); id != 0 {
		c.mu.past = append(c.mu.past, id)
	}
	c.mu.Unlock()
	g.end(reason)
}

// dial makes the generation n current, with a connection of its own.
func (c *Client) dial(n int) {
	g := newGeneration(c, n)
	c.mu.Lock()
	c.mu.current = g
	c.mu.Unlock()
	c.stopped.Add(1)
	go func() {
		defer c.stopped.Done()
		g.serve()
	}()
}

// shutdown ends the session with a goodbye, and the consumers of events.
func (c *Client) shutdown(core *sessionCore) {
	core.handle(report{kind: closing}, time.Now())
	c.mu.Lock()
	g, subs := c.mu.current, c.mu.subscriptions
	c.mu.closed, c.mu.subscriptions = true, nil
	c.mu.Unlock()
	g.shut()
	g.end(ErrClosed)
	for s := range subs {
		s.Close()
	}
}

// tell hands a report to the loop. It gives up when the client is closing.
func (c *Client) tell(r report) {
	select {
	case c.reports <- r:
	case <-c.done:
	}
}

// Session is the id and the generation of the session of now; id 0 means that the session of that generation has not
// begun yet.
func (c *Client) Session() (id int64, generation int) {
	g := c.current()
	return g.sessionID(), g.number
}

// SessionTimeout is what the ensemble granted to the session of now, or what was asked for before it began.
func (c *Client) SessionTimeout() time.Duration {
	if d := c.current().grantedTimeout(); d > 0 {
		return d
	}
	return c.cfg.SessionTimeout
}

type generationKey struct{}

// WithGeneration makes operations under the returned context fail with ErrSessionExpired unless the session of now
// is the one of that generation. Without it an operation belongs to the generation at the moment of the call.
func WithGeneration(ctx context.Context, generation int) context.Context {
	return context.WithValue(ctx, generationKey{}, generation)
}

// generationOf is the generation that a call under ctx belongs to.
func (c *Client) generationOf(ctx context.Context) (*generation, error) {
	g := c.current()
	if want, ok := ctx.Value(generationKey{}).(int); ok && want != g.number {
		return nil, ErrSessionExpired
	}
	return g, nil
}
