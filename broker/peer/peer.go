package peer

import (
	"context"
	"net"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Config holds what a Peer needs.
type Config struct {
	ID       int32  // of the other broker, for the log
	Addr     string // host:port
	ClientID string
	Timeout  time.Duration // of one request, connecting included; 0: 30 s [request.timeout.ms]
	// MaxInFlight limits the requests that are sent and not answered; 0: 5. More wait in Do and Send.
	MaxInFlight      int
	MaxResponseBytes int32         // 0: 100 MiB
	ReceiveBuffer    int           // of the socket; -1 or 0: the system's choice [replica.socket.receive.buffer.bytes]
	BackoffMin       time.Duration // between attempts to connect; 0: 50 ms, doubled up to BackoffMax
	BackoffMax       time.Duration // 0: 1 s
	// Dial connects; nil: TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	Log  *logrus.Entry
}

// Range is the range of versions that a broker serves of one API.
type Range struct{ Min, Max int16 }

// Peer is a connection to another broker that is made when first needed and made anew when lost.
type Peer struct{}

// New makes a peer; nothing is connected yet.
func New(cfg Config) *Peer { panic("not yet") }

// Do sends a request at the version that the caller has set (or that Negotiate chose) and waits for its answer.
// A request that was sent and lost its connection is not sent again: the caller knows whether it may be repeated.
func (p *Peer) Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) { panic("not yet") }

// Send is Do without waiting: done is called exactly once, from another goroutine, and must not block. Requests
// are sent in the order of the calls to Send and Do. Send itself waits while MaxInFlight requests are in flight.
func (p *Peer) Send(ctx context.Context, req kmsg.Request, done func(kmsg.Response, error)) {
	panic("not yet")
}

// Fetch is Do for a fetch whose answer may be big: the records in the response alias a pooled buffer, which is
// reused after release is called. Release is not nil when err is nil, and is called once.
func (p *Peer) Fetch(ctx context.Context, req *kmsg.FetchRequest) (resp *kmsg.FetchResponse, release func(), err error) {
	panic("not yet")
}

// Versions asks which versions the other broker serves; the answer is kept until the connection is lost.
func (p *Peer) Versions(ctx context.Context) (map[int16]Range, error) { panic("not yet") }

// Negotiate sets req to the highest version that the other broker serves, at most limit.
func (p *Peer) Negotiate(ctx context.Context, req kmsg.Request, limit int16) error { panic("not yet") }

// Connected tells whether there is a connection now.
func (p *Peer) Connected() bool { panic("not yet") }

// Close ends the connection, fails what is in flight and waits for the peer's goroutines.
func (p *Peer) Close() error { panic("not yet") }
