package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/broker"
	"barnabas/broker/metrics"
	"barnabas/config"
	"barnabas/controller"
	"barnabas/ssl"
	"barnabas/tools/console"
	"barnabas/tools/zkaccess"
	"barnabas/zkstate"
)

// ballastBytes are allocated and never touched. They cost no memory, but the garbage collector, which waits until as much was allocated as it found alive, counts them: without ballast a broker, whose
// live heap is some 10 MB, collects after each 10 MB of small requests.
const ballastBytes = 16 << 20

// node is one broker with its part of the controller and the ZooKeeper session that both live by. It is the only place that knows all three: it makes them, and passes on what becomes
// of the session.
type node struct {
	log        *logrus.Entry
	zk         *zkstate.Client
	broker     *broker.Broker
	controller *controller.Controller
	sender     *controllerSender
	metrics    *metrics.Server // nil: nobody asks for them
	console    *servedConsole  // nil: nobody looks
	will       *lastWill       // nil: there is none
	ballast    []byte

	cancel   context.CancelFunc
	events   *zkstate.Subscription
	watching sync.WaitGroup
}

const (
	registerRetry = time.Second
	stopTimeout   = 60 * time.Second
)

// startNode starts a broker and returns when it is registered and serves requests. will, which may be nil, is told the broker's sessions.
func startNode(v *config.Values, will *lastWill, log *logrus.Entry) (*node, error) {
	if v.String("zookeeper.connect") == "" {
		return nil, errors.New("zookeeper.connect is not set: a broker needs ZooKeeper")
	}
	users, err := consoleUsers(v)
	if err != nil {
		return nil, err
	}
	cfg, err := zooKeeper(v, log)
	if err != nil {
		return nil, err
	}
	zk, err := zkstate.Connect(cfg)
	if err != nil {
		return nil, fmt.Errorf("ZooKeeper at %s: %w", v.String("zookeeper.connect"), err)
	}
	n := &node{log: log, zk: zk, will: will, ballast: make([]byte, ballastBytes)}
	if err := n.start(v, users); err != nil {
		zk.Close()
		return nil, err
	}
	return n, nil
}

// zooKeeper is how the configuration says that ZooKeeper is to be spoken to.
func zooKeeper(v *config.Values, log *logrus.Entry) (zkstate.Config, error) {
	secure, err := ssl.ZooKeeper(v.String)
	if err != nil {
		return zkstate.Config{}, err
	}
	login, err := zkaccess.Login(os.Getenv("KAFKA_OPTS"))
	if err != nil {
		return zkstate.Config{}, err
	}
	if v.Bool("zookeeper.set.acl") && login == nil && (secure == nil || v.String("zookeeper.ssl.keystore.location") == "") {
		return zkstate.Config{}, errors.New("zookeeper.set.acl is true, but ZooKeeper would not know whose the nodes are: neither zookeeper.ssl.client.enable with zookeeper.ssl.keystore.location is set, " +
			"nor does KAFKA_OPTS name a JAAS file (-Djava.security.auth.login.config=FILE) with a section Client")
	}
	return zkstate.Config{
		Servers:        v.String("zookeeper.connect"),
		TLS:            secure,
		SASL:           login,
		SessionTimeout: v.Millis("zookeeper.session.timeout.ms"),
		ConnectTimeout: v.Millis("zookeeper.connection.timeout.ms"),
		MaxInFlight:    int(v.Int("zookeeper.max.in.flight.requests")),
		SecureACLs:     v.Bool("zookeeper.set.acl"),
		Log:            log.WithField("part", "zookeeper"),
	}, nil
}

func (n *node) start(v *config.Values, users console.Users) error {
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	events := n.zk.Subscribe()
	_, generation := n.zk.Session()

	var err error
	if n.broker, err = broker.Open(ctx, v, n.zk, n.log); err != nil {
		cancel()
		events.Close()
		return err
	}
	n.sender = newControllerSender(n.broker.ID(), v.Millis("controller.socket.timeout.ms"), n.broker.ControlPlane(), n.log.WithField("part", "controller"))
	n.controller, err = controller.New(controller.Config{
		BrokerID:          n.broker.ID(),
		IBP:               v.ProtocolVersion("inter.broker.protocol.version").String(),
		Listener:          v.ControlListener(),
		LeaderListener:    v.InterBrokerListener(),
		DeleteTopics:      v.Bool("delete.topic.enable"),
		UncleanElection:   v.Bool("unclean.leader.election.enable"),
		AutoRebalance:     v.Bool("auto.leader.rebalance.enable"),
		RebalanceInterval: time.Duration(v.Int("leader.imbalance.check.interval.seconds")) * time.Second,
		RebalancePercent:  int(v.Int("leader.imbalance.per.broker.percentage")),
		Log:               n.log.WithField("part", "controller"),
	}, n.zk, n.sender)
	if err == nil {
		n.controller.Start()
		n.broker.Serve(n.controller)
		err = n.serveMetrics(v.String("barnabas.metrics.listener"))
	}
	if err == nil {
		err = n.serveConsole(v, users)
	}
	if err == nil {
		err = n.zk.ThroughSessions(ctx, "registering", func() error { return n.broker.Register(ctx) })
	}
	if err != nil {
		cancel()
		events.Close()
		return errors.Join(err, n.stopParts())
	}
	n.registered()
	n.events = events
	n.watching.Go(func() { n.watch(ctx, events.C(), generation) })
	return nil
}

// watch passes on what becomes of the session. registered is the generation in which the broker has its node.
func (n *node) watch(ctx context.Context, events <-chan zkstate.Event, registered int) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-events:
			if !open {
				return
			}
			switch e.Kind {
			case zkstate.SessionExpired, zkstate.SessionLapsed:
				n.log.Warnf("%s: neither leader changes nor controllership until there is a session again", e.Kind)
				n.controller.SessionExpired()
				n.broker.SessionExpired()
			case zkstate.SessionStarted:
				if e.Generation > registered && n.register(ctx) {
					registered = e.Generation
				}
			case zkstate.Connected:
				// A session that lapsed may turn out to be alive: its node and watches hold, and its registration is read back.
				if n.register(ctx) {
					registered = e.Generation
				}
			}
		}
	}
}

// watchToTheEnd tells a broker that is stopping when its session ends before it: without a registration there is nothing to hand over to anybody, and nobody to wait for.
func (n *node) watchToTheEnd(events <-chan zkstate.Event) {
	for e := range events {
		if e.Kind == zkstate.SessionExpired || e.Kind == zkstate.SessionLapsed {
			n.broker.SessionExpired()
		}
	}
}

// register makes the broker's node until it is there or the session is gone again; true means that it is there.
func (n *node) register(ctx context.Context) bool {
	_, generation := n.zk.Session()
	for {
		err := n.broker.Register(ctx)
		if err == nil {
			n.registered()
			return true
		}
		if _, now := n.zk.Session(); now != generation || errors.Is(err, zkstate.ErrSessionExpired) || ctx.Err() != nil {
			return false // another event follows
		}
		n.log.WithError(err).Error("registering in ZooKeeper; will try again")
		select {
		case <-time.After(registerRetry):
		case <-ctx.Done():
			return false
		}
	}
}

// registered lets what depends on the broker's node go on.
func (n *node) registered() {
	n.controller.SessionReady()
	if n.will == nil {
		return
	}
	id, _ := n.zk.Session()
	if key, known := n.zk.SessionKey(id); known {
		n.will.bequeath(key)
	}
}

// stop ends everything in order; the session, and with it the ephemeral nodes, goes last.
func (n *node) stop() error {
	n.cancel()
	n.watching.Wait()
	n.watching.Go(func() { n.watchToTheEnd(n.events.C()) })
	err := n.stopParts()
	n.events.Close()
	n.watching.Wait()
	n.zk.Close()
	n.broker.SessionClosed()
	select {
	case <-n.broker.Homeless():
		return errors.Join(broker.ErrHomeless, err)
	default:
		return err
	}
}

func (n *node) stopParts() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var err error
	if n.console != nil {
		err = n.console.close()
	}
	err = errors.Join(err, n.broker.Stop(ctx))
	if n.metrics != nil { // until now it shows how far the stop is
		err = errors.Join(err, n.metrics.Close())
	}
	if n.controller != nil {
		n.controller.Stop()
		n.sender.close()
	}
	return err
}
