package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/broker/api"
	"barnabas/broker/commitlog"
	"barnabas/broker/fetcher"
	"barnabas/broker/group"
	"barnabas/broker/metadata"
	"barnabas/broker/metrics"
	"barnabas/broker/netserver"
	"barnabas/broker/partition"
	"barnabas/broker/peer"
	"barnabas/broker/quota"
	"barnabas/broker/txn"
	"barnabas/broker/vfs"
	"barnabas/config"
	"barnabas/zkstate"
)

const (
	zkReadTimeout       = 10 * time.Second
	drainTimeout        = 5 * time.Second // for answers that are under way when the broker stops
	noBrokerEpoch       = int64(-1)
	lookForRegistration = 50 * time.Millisecond
)

// Broker is one running broker.
type Broker struct {
	identity
	values *config.Values
	zk     *zkstate.Client
	log    *logrus.Entry

	server        *netserver.Server
	arrivals      *quota.Arrivals
	logs          *commitlog.Manager
	fetchers      *fetcher.Manager
	movers        *fetcher.Movers
	replicas      *partition.Manager
	groups        *group.Coordinator
	producerIDs   *producerIDs
	transactions  *txn.Coordinator
	cluster       *metadata.Cache
	peers         *peers
	control       *peers // by the control plane's listener; peers, where there is none
	isr           isrChanger
	live          *liveConfig
	features      *features
	security      *security
	registrations *registrations
	authorizer    *authorizer // nil: everybody may do everything
	tokens        *tokens     // nil: there are no delegation tokens here
	dispatcher    *api.Dispatcher
	requests      *metrics.Requests // nil: nobody asks for metrics

	followerThrottle partition.Throttle
	moveThrottle     partition.Throttle
	notes            *sessionNotes
	door             *door
	homeless         signal
	registration     struct {
		sync.Mutex
		endpoints []zkstate.Endpoint // as published
	}
	rooms rooms

	epoch atomic.Int64 // broker epoch, noBrokerEpoch while not registered
	state atomic.Int32 // for metrics

	life          context.Context // until Stop
	stopFollowing context.CancelFunc
	following     sync.WaitGroup
}

// isrChanger is one of the two ways of changing an ISR.
type isrChanger interface {
	partition.ISRChanger
	close()
}

// Open establishes who the broker is, opens its logs, and binds its listeners once no predecessor is registered any more. Nothing is served before Serve.
func Open(ctx context.Context, v *config.Values, zk *zkstate.Client, log *logrus.Entry) (*Broker, error) {
	credentials := newCredentials(zk, log.WithField("part", "security"))
	tokens := newTokens(zk, v, log.WithField("part", "security"))
	var id identity
	err := zk.ThroughSessions(ctx, "finding out who this broker is", func() (err error) {
		id, err = establish(ctx, zk, v, vfs.OS)
		return err
	})
	if err != nil {
		return nil, err
	}
	b := &Broker{identity: id, values: v, zk: zk, log: log.WithField("broker", id.brokerID), cluster: metadata.NewCache(), features: newFeatures(zk), registrations: newRegistrations(zk)}
	if err := b.openLive(ctx); err != nil {
		return nil, err
	}
	if b.security, err = newSecurity(ctx, b.live.values(), credentials, tokens, b.log.WithField("part", "security")); err != nil {
		return nil, err
	}
	b.tokens = tokens
	b.notes = newSessionNotes(zk, vfs.OS, id, b.log.WithField("part", "zookeeper"))
	b.door, b.homeless = newDoor(), newSignal()
	b.life, b.stopFollowing = context.WithCancel(context.Background())
	b.epoch.Store(noBrokerEpoch)
	b.state.Store(stateStarting)
	if b.authorizer, err = newAuthorizer(ctx, zk, v, b.log.WithField("part", "authorizer")); err != nil {
		return nil, err
	}
	if err := b.openLogs(ctx); err != nil {
		return nil, err
	}
	if b.security.usesCredentials() {
		if err := b.readCredentials(ctx); err != nil {
			return nil, errors.Join(err, b.logs.Close())
		}
	}
	if tokens != nil {
		if err := zk.ThroughSessions(ctx, "reading delegation tokens", func() error { return tokens.load(ctx) }); err != nil {
			return nil, errors.Join(err, b.logs.Close())
		}
	}
	err = zk.ThroughSessions(ctx, "waiting for the registration before to end", func() error { return zk.AwaitUnheld(ctx, zkstate.BrokerIDPath(b.brokerID)) })
	if err != nil {
		return nil, errors.Join(err, b.logs.Close())
	}
	if err := b.bind(); err != nil {
		return nil, errors.Join(err, b.logs.Close())
	}
	if err := b.join(); err != nil {
		return nil, errors.Join(err, b.logs.Close(), b.server.Close(ctx))
	}
	return b, nil
}

// ID is the broker's number.
func (b *Broker) ID() int32 { return b.brokerID }

// ClusterID is the cluster's id.
func (b *Broker) ClusterID() string { return b.clusterID }

// openLive reads what is set dynamically: it may be what makes a listener's key store readable.
func (b *Broker) openLive(ctx context.Context) error {
	b.live = newLiveConfig(b.zk, b.values, strconv.Itoa(int(b.brokerID)), b.log.WithField("part", "configuration"))
	b.arrivals = b.live.addresses.held
	err := b.zk.ThroughSessions(ctx, "reading settings", func() error {
		if err := b.live.reencrypt(ctx); err != nil {
			return err
		}
		return b.live.load(ctx)
	})
	if err != nil {
		return fmt.Errorf("reading dynamic settings: %w", err)
	}
	return nil
}

func (b *Broker) openLogs(ctx context.Context) error {
	v := b.values
	if err := prepareDirs(v.LogDirs()); err != nil {
		return err
	}
	var err error
	b.logs, err = commitlog.Open(commitlog.ManagerConfig{
		Dirs:                          absolute(v.LogDirs()),
		FS:                            vfs.OS,
		Default:                       logConfig(b.live.values(), nil),
		TopicConfig:                   b.live.forTopic,
		RecoveryThreadsPerDir:         int(b.live.values().Int("num.recovery.threads.per.data.dir")),
		RetentionCheck:                v.Millis("log.retention.check.interval.ms"),
		FlushCheck:                    v.Millis("log.flush.scheduler.interval.ms"),
		CheckpointInterval:            v.Millis("log.flush.offset.checkpoint.interval.ms"),
		StartOffsetCheckpointInterval: v.Millis("log.flush.start.offset.checkpoint.interval.ms"),
		HighWatermarkInterval:         v.Millis("replica.high.watermark.checkpoint.interval.ms"),
		ProducerIDExpiration:          b.live.values().Millis("producer.id.expiration.ms"),
		ProducerIDCheck:               v.Millis("producer.id.expiration.check.interval.ms"),
		MaxTransactionTimeout:         v.Millis("transaction.max.timeout.ms"),
		MaxDecompressed:               maxDecompressed(v),
		Cleaner:                       cleanerConfig(b.live.values()),
		BrokerEpoch:                   b.BrokerEpoch,
		Now:                           time.Now,
		Log:                           b.log.WithField("part", "log"),
		OnDirFailure:                  b.dirFailed,
		OnLocked:                      func(dirs []commitlog.DirInfo) { b.notes.endPredecessor(ctx, dirs) },
	})
	if err != nil {
		return err
	}
	if err := writeMeta(vfs.OS, b.logs.Dirs(), b.identity); err != nil {
		return errors.Join(err, b.logs.Close())
	}
	return nil
}

// readCredentials reads what SCRAM has to know of users, and has it told of changes from then on.
func (b *Broker) readCredentials(ctx context.Context) error {
	if b.live.users != nil {
		return nil
	}
	b.live.users = b.security.credentials
	return b.zk.ThroughSessions(ctx, "reading credentials", func() error { return b.security.credentials.load(ctx) })
}

// maxDecompressed bounds what one compressed batch may grow to: generous beside the largest batch, small beside the memory.
func maxDecompressed(v *config.Values) int {
	return int(min(max(64<<20, 20*v.Int("message.max.bytes")), 1<<30))
}

// join makes the parts that know each other.
func (b *Broker) join() error {
	v := b.values
	ibp := v.ProtocolVersion("inter.broker.protocol.version")
	b.peers = newPeers(b.cluster, v.InterBrokerListener(), b.brokerID, v.Millis("request.timeout.ms"), b.security.between, b.log.WithField("part", "peer"))
	b.control = b.peers
	if name := v.ControlListener(); name != v.InterBrokerListener() {
		b.control = newPeers(b.cluster, name, b.brokerID, v.Millis("request.timeout.ms"), b.security.control, b.log.WithField("part", "peer"))
	}
	if ibp >= config.V2_7IV2 {
		b.isr = newISRByController(b.control.askController, b.brokerID, b.BrokerEpoch, ibp >= config.V2_8IV0, b.log.WithField("part", "isr"))
	} else {
		b.isr = newISRByZooKeeper(b.zk, b.log.WithField("part", "isr"))
	}
	var err error
	b.fetchers, err = fetcher.New(fetcher.Config{
		BrokerID:     b.brokerID,
		BrokerEpoch:  b.BrokerEpoch,
		IBP:          ibp.String(),
		NumFetchers:  int(b.live.values().Int("num.replica.fetchers")),
		MaxBytes:     int32(v.Int("replica.fetch.response.max.bytes")),
		PartitionMax: int32(v.Int("replica.fetch.max.bytes")),
		MinBytes:     int32(v.Int("replica.fetch.min.bytes")),
		MaxWait:      v.Millis("replica.fetch.wait.max.ms"),
		Backoff:      v.Millis("replica.fetch.backoff.ms"),
		Throttle:     &b.followerThrottle,
		Dial:         b.dialLeader,
		Log:          b.log.WithField("part", "fetcher"),
		Now:          time.Now,
	})
	if err != nil {
		return err
	}
	b.movers = fetcher.NewMovers(fetcher.MoversConfig{
		Threads:  moverThreads(v),
		MaxBytes: int32(v.Int("replica.fetch.max.bytes")),
		Backoff:  v.Millis("replica.fetch.backoff.ms"),
		Throttle: &b.moveThrottle,
		Log:      b.log.WithField("part", "mover"),
		Now:      time.Now,
	})
	var selector partition.Selector
	if v.String("replica.selector.class") == "org.apache.kafka.common.replica.RackAwareReplicaSelector" {
		selector = partition.RackAware{}
	}
	b.replicas = partition.NewManager(partition.Config{
		BrokerID:          b.brokerID,
		ReplicaLagTimeMax: v.Millis("replica.lag.time.max.ms"),
		Selector:          selector,
		Flush:             flushPolicies[v.String("barnabas.flush.policy")],
		InMetadata:        b.inMetadata,
		OnRoles:           b.rolesChanged,
		OnReturn:          b.askForOrders,
		Movers:            b.movers,
		FS:                vfs.OS,
		Log:               b.log.WithField("part", "partition"),
		Now:               time.Now,
	}, b.logs, b.isr, b.fetchers)
	b.groups = b.newGroups()
	b.producerIDs = newProducerIDs(b.zk, b.brokerID)
	b.transactions = b.newTransactions()

	b.live.apply = b.logs.UpdateTopicConfig
	return nil
}

// moverThreads is how many replicas are moved between log directories at a time: one per directory unless told.
func moverThreads(v *config.Values) int {
	if text, set := v.Lookup("num.replica.alter.log.dirs.threads"); set {
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
	}
	return len(v.LogDirs())
}

var flushPolicies = map[string]partition.FlushPolicy{"kafka": partition.FlushAsKafka, "thin-isr": partition.FlushThinISR, "always": partition.FlushAlways}

func (b *Broker) inMetadata(tp commitlog.TopicPartition) bool {
	return b.cluster.Load().Partition(tp.Topic, tp.Partition) != nil
}

func (b *Broker) dialLeader(leader partition.Endpoint, _ int) fetcher.Transport {
	return peer.NewLine(peer.Config{
		ID:            leader.ID,
		Addr:          net.JoinHostPort(leader.Host, strconv.Itoa(int(leader.Port))),
		ClientID:      fmt.Sprintf("broker-%d-fetcher", b.brokerID),
		Timeout:       b.values.Millis("replica.socket.timeout.ms"),
		ReceiveBuffer: int(b.values.Int("replica.socket.receive.buffer.bytes")),
		Security:      b.security.between,
		Log:           b.log.WithField("part", "fetcher"),
	})
}

// BetweenBrokers is how this broker's connections to others are secured.
func (b *Broker) BetweenBrokers() peer.Security { return b.security.between }

// ControlPlane is how connections of the controller to brokers are secured.
func (b *Broker) ControlPlane() peer.Security { return b.security.control }

// rolesChanged tells the coordinators, and drops what is remembered of topics that were deleted here.
func (b *Broker) rolesChanged(roles []partition.Role) {
	b.coordinate(roles)
	for _, r := range roles {
		if r.Deleted {
			b.live.forget(r.TP.Topic)
		}
	}
}

// Stop hands leaderships over, closes connections, and closes the logs cleanly.
func (b *Broker) Stop(ctx context.Context) error {
	b.state.Store(stateHandingOver)
	if b.values.Bool("controlled.shutdown.enable") && b.epoch.Load() != noBrokerEpoch {
		b.handOver(ctx)
	}
	b.groups.Close() // while appends are still answered; members that wait would hold the connections open
	b.transactions.Close()
	drain, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	b.door.close()
	err := b.server.Close(drain)
	b.stopFollowing()
	if b.dispatcher != nil {
		b.dispatcher.Close()
	}
	b.fetchers.Close()
	b.movers.Close()
	b.replicas.Close()
	b.isr.close()
	b.peers.close()
	b.control.close()
	b.following.Wait()
	return errors.Join(err, b.logs.Close())
}
