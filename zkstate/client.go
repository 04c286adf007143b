package zkstate

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
)

// Auth is one credential presented to the ensemble, such as {"digest", "user:password"}.
type Auth struct{ Scheme, Credential string }

// Config is what a Client needs to know.
type Config struct {
	Servers        string        // zookeeper.connect: host:port,host:port/chroot
	SessionTimeout time.Duration // zookeeper.session.timeout.ms; default 18 s. The ensemble may grant another
	ConnectTimeout time.Duration // how long Connect waits for the first session; default SessionTimeout
	Auth           []Auth
	MaxInFlight    int  // zookeeper.max.in.flight.requests; default 10
	SecureACLs     bool // zookeeper.set.acl: nodes are made with Kafka's ACLs instead of open to all
	Log            *logrus.Entry
}

// Client is a connection to an ensemble that survives its servers and its sessions. Its methods may be called by
// any goroutine.
type Client struct{}

// Connect opens a session and makes the chroot if it is missing. It fails when no session could be had in
// Config.ConnectTimeout; from then on the client tries for ever.
func Connect(cfg Config) (*Client, error) { panic("not built") }

// Close ends the session, so that its ephemeral nodes go at once, and everything that waits.
func (c *Client) Close() {}

// Do runs operations, up to Config.MaxInFlight at a time, and answers each by itself in the order given. Operations
// that touch the same node, or a node and one above it, run in the order given unless both only read. While no
// server is reachable it waits. The error is not nil only when no operation was tried: the client is closed, ctx is
// done, or there is no session (ErrSessionExpired; the operations' results say the same).
func (c *Client) Do(ctx context.Context, ops []Op) ([]Result, error) { panic("not built") }

// Multi runs operations all or nothing. When it fails, the error is that of the operation that made it fail, and
// the results say which it was; the others have ErrRolledBack.
func (c *Client) Multi(ctx context.Context, ops []Op) ([]Result, error) { panic("not built") }

// Subscribe delivers every event from now on, in order, to one consumer. Nothing is dropped: node events that are
// still undelivered are merged when they are equal, so a slow consumer costs no more memory than it has watches.
func (c *Client) Subscribe() *Subscription { panic("not built") }

// Events is Subscribe for a consumer that lives as long as the client: the channel closes with the client.
func (c *Client) Events() <-chan Event { panic("not built") }

// Session is the id and the generation of the session of now; generation 0 is before the first, and id 0 means
// that the last one is over and the next has not begun.
func (c *Client) Session() (id int64, generation int) { panic("not built") }

// WithGeneration makes operations under the returned context fail with ErrSessionExpired unless the session of now
// is the one of that generation. Without it an operation belongs to the generation at the moment of the call.
func WithGeneration(ctx context.Context, generation int) context.Context { panic("not built") }

// Subscription is one consumer's queue of events.
type Subscription struct{}

// C is where the events arrive; it closes with the client or the subscription.
func (s *Subscription) C() <-chan Event { panic("not built") }

// Close ends the subscription.
func (s *Subscription) Close() {}
