package main

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/peer"
	"barnabas/controller"
)

// controllerSender carries the controller's requests to brokers, itself included, over one connection for each registration.
type controllerSender struct {
	clientID string
	timeout  time.Duration
	security peer.Security
	log      *logrus.Entry
	ctx      context.Context
	cancel   context.CancelFunc
	closing  sync.WaitGroup

	mu struct {
		sync.Mutex
		peers map[controller.Endpoint]*peer.Peer
	}
}

func newControllerSender(brokerID int32, timeout time.Duration, security peer.Security, log *logrus.Entry) *controllerSender {
	s := &controllerSender{clientID: strconv.Itoa(int(brokerID)), timeout: timeout, security: security, log: log}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.mu.peers = map[controller.Endpoint]*peer.Peer{}
	return s
}

// Send implements controller.Sender.
func (s *controllerSender) Send(to controller.Endpoint, req kmsg.Request, done func(kmsg.Response, error)) {
	s.mu.Lock()
	p := s.mu.peers[to]
	if p == nil {
		p = peer.New(peer.Config{ID: to.BrokerID, Addr: net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))), ClientID: s.clientID, Timeout: s.timeout, MaxInFlight: 1, Security: s.security, Log: s.log})
		s.mu.peers[to] = p
	}
	s.mu.Unlock()
	p.Send(s.ctx, req, done)
}

// Forget implements controller.Sender.
func (s *controllerSender) Forget(to controller.Endpoint) {
	s.mu.Lock()
	p := s.mu.peers[to]
	delete(s.mu.peers, to)
	s.mu.Unlock()
	if p != nil {
		s.closing.Go(func() { _ = p.Close() }) // fails what is in flight, whose callbacks may wait for the controller's loop
	}
}

// close ends every connection. The controller has stopped.
func (s *controllerSender) close() {
	s.cancel()
	s.mu.Lock()
	peers := s.mu.peers
	s.mu.peers = map[controller.Endpoint]*peer.Peer{}
	s.mu.Unlock()
	for _, p := range peers {
		_ = p.Close()
	}
	s.closing.Wait()
}
