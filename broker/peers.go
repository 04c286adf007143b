package broker

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/metadata"
	"barnabas/broker/peer"
)

// peers keeps one connection to each other broker that this one asks things of. An address that changes in the metadata replaces the connection.
type peers struct {
	cluster  *metadata.Cache
	listener string // by which they are reached
	clientID string
	timeout  time.Duration
	security peer.Security
	log      *logrus.Entry

	mu struct {
		sync.Mutex
		byID   map[int32]*connectedPeer
		closed bool
	}
}

type connectedPeer struct {
	addr string
	*peer.Peer
}

func newPeers(cluster *metadata.Cache, listener string, brokerID int32, timeout time.Duration, security peer.Security, log *logrus.Entry) *peers {
	p := &peers{cluster: cluster, listener: listener, clientID: strconv.Itoa(int(brokerID)), timeout: timeout, security: security, log: log}
	p.mu.byID = map[int32]*connectedPeer{}
	return p
}

// to returns the connection to a broker, or an error while the metadata does not know where it is.
func (p *peers) to(id int32) (*peer.Peer, error) {
	b := p.cluster.Load().Brokers[id]
	if b == nil {
		return nil, fmt.Errorf("broker %d is not known to be alive", id)
	}
	e, ok := b.Endpoint(p.listener)
	if !ok {
		return nil, fmt.Errorf("broker %d has no listener %s", id, p.listener)
	}
	addr := net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil, context.Canceled
	}
	known := p.mu.byID[id]
	if known == nil || known.addr != addr {
		if known != nil {
			go known.Close() // waits for what is in flight, which must not hold up the new address
		}
		known = &connectedPeer{addr, peer.New(peer.Config{ID: id, Addr: addr, ClientID: p.clientID, Timeout: p.timeout, Security: p.security, Log: p.log})}
		p.mu.byID[id] = known
	}
	return known.Peer, nil
}

func (p *peers) close() {
	p.mu.Lock()
	all := p.mu.byID
	p.mu.byID, p.mu.closed = nil, true
	p.mu.Unlock()
	for _, known := range all {
		known.Close()
	}
}

// askController sends a request to the broker that is controller now, at the highest version that both know and at most limit.
func (p *peers) askController(ctx context.Context, req kmsg.Request, limit int16) (kmsg.Response, error) {
	id := p.cluster.Load().ControllerID
	if id == metadata.NoController {
		return nil, fmt.Errorf("no controller is known")
	}
	to, err := p.to(id)
	if err != nil {
		return nil, err
	}
	if err := to.Negotiate(ctx, req, limit); err != nil {
		return nil, err
	}
	return to.Do(ctx, req)
}
