package zkstate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// generation is one session and the connection that carries it. go-zookeeper would open the next session on the same
// connection and send there what was queued under the old one; so each generation has a connection of its own, which
// is closed, from within the callback that reports the expiry, before it could connect again.
type generation struct {
	client *Client
	number int
	conn   *zk.Conn
	made   chan struct{} // closed once conn is set, or could not be
	ended  chan struct{} // closed when the generation is over
	wire   *dialer

	authenticated atomic.Bool

	mu struct {
		sync.Mutex
		session  int64
		timeout  time.Duration
		usable   chan struct{} // closed while operations may pass; replaced when they may not
		isUsable bool
		reason   error // why it is over
	}
}

func newGeneration(c *Client, number int) *generation {
	g := &generation{client: c, number: number, made: make(chan struct{}), ended: make(chan struct{}), wire: newDialer(c)}
	g.mu.usable = make(chan struct{})
	g.wire.denied = func() { c.tell(report{kind: refused, generation: number}) }
	return g
}

// serve opens the connection and stays until it is closed and gone.
func (g *generation) serve() {
	c := g.client
	conn, events, err := zk.Connect(c.servers, c.cfg.SessionTimeout,
		zk.WithHostProvider(&rotation{}), zk.WithDialer(g.wire.dial), zk.WithLogger(debugLog{c.log}), zk.WithLogInfo(false),
		zk.WithMaxConnBufferSize(c.cfg.MaxPacketBytes+packetSlack), zk.WithMaxBufferSize(maxAnswer), zk.WithEventCallback(g.happened))
	if err != nil { // only an empty list of servers, which parseConnect has refused
		c.log.WithError(err).Error("ZooKeeper: cannot begin a connection")
		close(g.made)
		return
	}
	g.conn = conn
	close(g.made)
	<-g.ended
	g.wire.stop()
	conn.Close()
	for range events { // closed when the connection's goroutines are done
	}
}

// Sizes of go-zookeeper's buffers: a packet may be as large as the servers take, plus its length and headers; an
// answer (the children of a big directory) may be larger.
const (
	packetSlack = 4096
	maxAnswer   = 256 << 20
)

// happened runs on the connection's goroutine for every event, before go-zookeeper goes on.
func (g *generation) happened(e zk.Event) {
	<-g.made
	if g.conn == nil {
		return
	}
	if e.Type != zk.EventSession {
		g.watched(e)
		return
	}
	switch e.State {
	case zk.StateHasSession:
		if len(g.client.cfg.Auth) > 0 && !g.authenticated.Load() {
			// The credentials go over the connection that waits for this callback.
			g.client.stopped.Add(1)
			go g.authenticate()
			return
		}
		g.tellEstablished()
	case zk.StateDisconnected:
		g.client.tell(report{kind: lost, generation: g.number})
	case zk.StateExpired:
		g.client.tell(report{kind: expired, generation: g.number})
		// Close marks the connection as quitting at once; go-zookeeper looks at that mark before it connects again.
		g.conn.Close()
	}
}

func (g *generation) tellEstablished() {
	g.client.tell(report{kind: established, generation: g.number, session: g.conn.SessionID(), timeout: g.wire.timeout()})
}

const authRetry = time.Second

// authenticate presents the credentials once per session; go-zookeeper repeats them after a reconnection by itself.
func (g *generation) authenticate() {
	defer g.client.stopped.Done()
	for {
		err := g.addAuth()
		if err == nil {
			if g.authenticated.CompareAndSwap(false, true) {
				g.tellEstablished()
			}
			return
		}
		if !errors.Is(err, zk.ErrAuthFailed) {
			return // the connection broke: the next one begins again
		}
		g.client.tell(report{kind: refused, generation: g.number})
		select {
		case <-time.After(authRetry):
		case <-g.ended:
			return
		}
	}
}

func (g *generation) addAuth() error {
	for _, a := range g.client.cfg.Auth {
		if err := g.conn.AddAuth(a.Scheme, []byte(a.Credential)); err != nil {
			return err
		}
	}
	return nil
}

var watchKinds = map[zk.EventType]EventKind{zk.EventNodeCreated: NodeCreated, zk.EventNodeDeleted: NodeDeleted,
	zk.EventNodeDataChanged: NodeDataChanged, zk.EventNodeChildrenChanged: NodeChildrenChanged}

func (g *generation) watched(e zk.Event) {
	kind, ok := watchKinds[e.Type]
	if !ok {
		return // watches that go-zookeeper gives up with the session: SessionExpired says it all
	}
	g.client.publish(Event{Kind: kind, Path: fromChroot(g.client.chroot, e.Path), Session: g.sessionID(), Generation: g.number})
}

func (g *generation) open(session int64, timeout time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.session, g.mu.timeout = session, timeout
	if !g.mu.isUsable {
		g.mu.isUsable = true
		close(g.mu.usable)
	}
}

func (g *generation) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.isUsable {
		g.mu.isUsable = false
		g.mu.usable = make(chan struct{})
	}
}

func (g *generation) end(reason error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.reason == nil {
		g.mu.reason = reason
		close(g.ended)
	}
}

// over is why the generation ended, or nil.
func (g *generation) over() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.reason
}

func (g *generation) sessionID() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.session
}

func (g *generation) grantedTimeout() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.timeout
}

// wait returns when operations may pass, with an error when they never will.
func (g *generation) wait(ctx context.Context) error {
	g.mu.Lock()
	usable := g.mu.usable
	g.mu.Unlock()
	select {
	case <-g.ended:
		return g.over()
	default:
	}
	select {
	case <-usable:
		return nil
	case <-g.ended:
		return g.over()
	case <-ctx.Done():
		return ctx.Err()
	}
}

const retryPause = 20 * time.Millisecond

// pause keeps a repeated operation from spinning while the news that the connection broke is on its way.
func (g *generation) pause(ctx context.Context) error {
	t := time.NewTimer(retryPause)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-g.ended:
		return g.over()
	case <-ctx.Done():
		return ctx.Err()
	}
}
