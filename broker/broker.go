package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
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
	registerBackoff     = time.Second
	lookForRegistration = 50 * time.Millisecond
)

// Broker is one running broker.
type Broker struct {
	identity
	values    *config.Values
	zk        *zkstate.Client
	log       *logrus.Entry
	advertise []zkstate.Endpoint

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
	rooms            rooms

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
		if err = zk.MakePersistentPaths(ctx); err == nil {
			id, err = establish(ctx, zk, v, vfs.OS)
		}
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
	if b.security.credentials != nil {
		b.live.users = credentials
		if err := zk.ThroughSessions(ctx, "reading credentials", func() error { return credentials.load(ctx) }); err != nil {
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

// BrokerEpoch implements api.BrokerEpoch: the czxid of the registration.
func (b *Broker) BrokerEpoch() int64 { return b.epoch.Load() }

// Addr is the address that a listener is bound to.
func (b *Broker) Addr(listener string) net.Addr { return b.server.Addr(listener) }

func (b *Broker) bind() error {
	v := b.live.values()
	limits, err := connectionLimits(b.life, v, b.security.listeners)
	if err != nil {
		return err
	}
	b.arrivals.Limit(arrivalLimits(v, b.security.listeners))
	cfg := netserver.Config{
		Listeners:       b.security.listeners,
		MaxRequestBytes: int32(b.values.Int("socket.request.max.bytes")),
		QueuedMaxBytes:  queuedMaxBytes(b.values),
		Limits:          limits,
		Protected:       []string{b.values.InterBrokerListener(), b.values.ControlListener()},
		Arrivals:        b.arrivals,
		IdleTimeout:     b.values.Millis("connections.max.idle.ms"),
		SendBuffer:      int(b.values.Int("socket.send.buffer.bytes")),
		ReceiveBuffer:   int(b.values.Int("socket.receive.buffer.bytes")),
		Log:             b.log.WithField("part", "network"),
	}
	if backlog, set := b.values.Lookup("socket.listen.backlog.size"); set {
		cfg.Backlog, _ = strconv.Atoi(backlog) // Kafka's default of 50 would shrink the system's queue
	}
	if b.server, err = netserver.Listen(cfg); err != nil {
		return err
	}
	b.advertise, err = b.endpoints()
	return err
}

// queuedMaxBytes bounds the requests held at once. Kafka's default is no bound; ours is one that a small machine survives and a loaded one does not feel.
func queuedMaxBytes(v *config.Values) int64 {
	const sane = 256 << 20
	if n := v.Int("queued.max.request.bytes"); n > 0 {
		return n
	}
	return max(sane, 2*v.Int("socket.request.max.bytes"))
}

// endpoints are the addresses to publish: an empty host becomes this machine's name, port 0 the one that was bound.
func (b *Broker) endpoints() ([]zkstate.Endpoint, error) {
	advertised, err := b.values.AdvertisedListeners()
	if err != nil {
		return nil, err
	}
	var out []zkstate.Endpoint
	for _, l := range advertised {
		if l.Host == "" {
			if l.Host, err = os.Hostname(); err != nil {
				return nil, fmt.Errorf("this machine's name, needed for advertised.listeners: %w", err)
			}
		}
		if l.Port == 0 {
			if addr, ok := b.server.Addr(l.Name).(*net.TCPAddr); ok {
				l.Port = addr.Port
			}
		}
		out = append(out, zkstate.Endpoint{Listener: l.Name, Protocol: l.Protocol, Host: l.Host, Port: int32(l.Port)})
	}
	return out, nil
}

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
		RecoveryThreadsPerDir:         int(v.Int("num.recovery.threads.per.data.dir")),
		RetentionCheck:                v.Millis("log.retention.check.interval.ms"),
		FlushCheck:                    v.Millis("log.flush.scheduler.interval.ms"),
		CheckpointInterval:            v.Millis("log.flush.offset.checkpoint.interval.ms"),
		StartOffsetCheckpointInterval: v.Millis("log.flush.start.offset.checkpoint.interval.ms"),
		HighWatermarkInterval:         v.Millis("replica.high.watermark.checkpoint.interval.ms"),
		ProducerIDExpiration:          v.Millis("producer.id.expiration.ms"),
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
		NumFetchers:  int(v.Int("num.replica.fetchers")),
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

// reloadKeyStores takes over the key stores that dynamic settings name.
func (b *Broker) reloadKeyStores(v *config.Values) {
	if err := b.security.reload(v); err != nil {
		b.log.WithError(err).Error("key stores cannot be read anew; those before stay in use")
	}
}

// AdvertisedBetweenBrokers is where other brokers reach this one, as host:port.
func (b *Broker) AdvertisedBetweenBrokers() (string, error) {
	endpoints, err := b.endpoints()
	if err != nil {
		return "", err
	}
	name := b.values.InterBrokerListener()
	for _, e := range endpoints {
		if e.Listener == name {
			return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))), nil
		}
	}
	return "", fmt.Errorf("the listener between brokers, %s, is not advertised", name)
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

// Controller is this process's part of the cluster's controller.
type Controller interface {
	api.Controller
	// SetUncleanElection tells the default of unclean.leader.election.enable, UncleanElectionEnabled that a topic's own setting allows it now.
	SetUncleanElection(on bool)
	UncleanElectionEnabled(topic string)
}

// Serve answers requests from the first registration on.
func (b *Broker) Serve(controller Controller) {
	b.live.broker = func(v *config.Values) {
		controller.SetUncleanElection(v.Bool("unclean.leader.election.enable"))
		b.setThrottles()
		b.reloadKeyStores(v)
		b.limitConnections(v)
		b.logs.ConfigureCleaner(cleanerConfig(v))
	}
	b.setThrottles()
	b.live.changed = func(topic string, c commitlog.Config) {
		if c.UncleanElection {
			controller.UncleanElectionEnabled(topic)
		}
	}
	v := b.values
	ibp := v.ProtocolVersion("inter.broker.protocol.version")
	adm := admin.New(admin.Config{
		BrokerID:                 b.brokerID,
		DefaultPartitions:        int32(v.Int("num.partitions")),
		DefaultReplicationFactor: int16(v.Int("default.replication.factor")),
		TopicIDs:                 ibp >= config.V2_8IV0,
		DeleteTopics:             v.Bool("delete.topic.enable"),
		Table:                    admin.NewConfigTable(v),
		Passwords:                b.live.passwords,
		Judge:                    b.judge,
		Log:                      b.log.WithField("part", "admin"),
	}, b.zk)
	var gate api.Authorizer
	if b.authorizer != nil {
		gate = b.authorizer
	}
	var delegated api.Tokens
	if b.tokens != nil {
		delegated = b.tokens
	}
	var meter api.Meter
	if v.String("barnabas.metrics.listener") != "" {
		b.requests = metrics.NewRequests(measuredAPIs())
		meter = b.requests
	}
	b.dispatcher = api.New(api.Config{
		BrokerID:               b.brokerID,
		ClusterID:              b.clusterID,
		InterBrokerListener:    v.InterBrokerListener(),
		AutoCreateTopics:       v.Bool("auto.create.topics.enable"),
		DeleteTopics:           v.Bool("delete.topic.enable"),
		OffsetMetadataMaxBytes: int(v.Int("offset.metadata.max.bytes")),
		FetchMaxBytes:          int32(v.Int("fetch.max.bytes")),
		FetchSessionSlots:      int(v.Int("max.incremental.fetch.session.cache.slots")),
		VerifyTransactions:     b.verifyTransactions,
		MarkerTimeout:          v.Millis("request.timeout.ms"),
		AutoTopic:              b.autoTopic,
		FeaturesEpoch:          b.features.version.Load,
		Log:                    b.log.WithField("part", "api"),
	}, api.Dependencies{
		Replicas: b.replicas, Metadata: b.cluster, Admin: adm, Controller: controller, ProducerIDs: b.producerIDs, BrokerEpoch: b, Registrations: b.registrations,
		Groups: b.groups, Transactions: b.transactions, LegacyOffsets: legacyOffsets{b.zk},
		Authorizer: gate, Tokens: delegated, Meter: meter, Quotas: b.live.quotas.held,
	})
	ctx := b.life
	events := b.zk.Subscribe()
	b.following.Go(func() {
		defer events.Close()
		if err := b.live.catchUp(ctx); err != nil && ctx.Err() == nil {
			b.log.WithError(err).Warn("reading configuration changes")
		}
		b.live.follow(ctx, events.C())
	})
	features := b.zk.Subscribe()
	b.following.Go(func() {
		defer features.Close()
		b.features.follow(ctx, features.C())
	})
	if b.authorizer != nil {
		lists := b.zk.Subscribe()
		b.following.Go(func() {
			defer lists.Close()
			b.authorizer.follow(ctx, lists.C())
		})
	}
	if b.tokens != nil {
		told := b.zk.Subscribe()
		b.following.Go(func() {
			defer told.Close()
			b.tokens.follow(ctx, told.C())
		})
		b.following.Go(func() {
			b.tokens.sweep(ctx, v.Millis("delegation.token.expiry.check.interval.ms"), controller.IsActive)
		})
	}
	for _, keep := range b.security.keepers {
		b.following.Go(func() { keep(ctx) })
	}
	b.registrations.changed = b.dispatcher.RegistrationsChanged
	registered := b.zk.Subscribe()
	b.following.Go(func() {
		defer registered.Close()
		b.registrations.follow(ctx, registered.C())
	})
	b.security.gate.Next = b.dispatcher
	b.door.Handler = b.security.gate
	b.attendFullDirs()
	b.server.Serve(b.door)
}

// autoTopic is how a topic is laid out that is made because somebody asked for it.
func (b *Broker) autoTopic(name string) api.AutoTopic {
	v := b.live.values()
	switch name {
	case "__consumer_offsets":
		return api.AutoTopic{Partitions: int32(v.Int("offsets.topic.num.partitions")), ReplicationFactor: int16(v.Int("offsets.topic.replication.factor")), Configs: map[string]string{
			"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": v.String("offsets.topic.segment.bytes")}}
	case "__transaction_state":
		return api.AutoTopic{Partitions: int32(v.Int("transaction.state.log.num.partitions")), ReplicationFactor: int16(v.Int("transaction.state.log.replication.factor")), Configs: map[string]string{
			"cleanup.policy": "compact", "compression.type": "uncompressed", "segment.bytes": v.String("transaction.state.log.segment.bytes"),
			"min.insync.replicas": v.String("transaction.state.log.min.isr"), "unclean.leader.election.enable": "false"}}
	}
	return api.AutoTopic{Partitions: int32(v.Int("num.partitions")), ReplicationFactor: int16(v.Int("default.replication.factor"))}
}

// Register makes the broker's ephemeral node in the session of now. It waits for a node of an earlier life to go, and fails when another process holds the id.
func (b *Broker) Register(ctx context.Context) error {
	v := b.values
	reg := zkstate.Broker{ID: b.brokerID, Version: 5, Endpoints: b.advertise, JMXPort: -1, TimestampMs: time.Now().UnixMilli()}
	if v.ProtocolVersion("inter.broker.protocol.version") < config.V2_7IV0 {
		reg.Version = 4
	}
	if rack := v.String("broker.rack"); rack != "" {
		reg.Rack = &rack
	}
	stat, err := b.zk.RegisterEphemeral(ctx, zkstate.BrokerIDPath(b.brokerID), reg.Encode())
	if err != nil {
		return err
	}
	b.epoch.Store(stat.Czxid)
	b.replicas.SetBrokerEpoch(stat.Czxid)
	b.state.CompareAndSwap(stateStarting, stateRunning)
	b.door.open()
	b.log.Infof("registered in cluster %s as broker %d, epoch %d", b.clusterID, b.brokerID, stat.Czxid)
	b.notes.leave(b.logs.Dirs(), stat.EphemeralOwner)
	return nil
}

// SessionExpired says that the registration is gone. What this broker leads it goes on serving within the ISRs known; it can change none of them, and a new leader fences it.
func (b *Broker) SessionExpired() { b.epoch.Store(noBrokerEpoch) }

// SessionClosed says that the session was closed for good, after Stop: a successor has nothing to end.
func (b *Broker) SessionClosed() { b.notes.remove(b.logs.Dirs()) }

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

// handOver asks the controller to move leaderships away (controlled shutdown), as often as configured.
func (b *Broker) handOver(ctx context.Context) {
	retries := b.values.Int("controlled.shutdown.max.retries")
	for attempt := int64(0); ; attempt++ {
		remaining, err := b.askToStop(ctx)
		if err == nil && remaining == 0 {
			return
		}
		if err != nil {
			b.log.WithError(err).Warn("controlled shutdown was not possible")
		} else {
			b.log.Warnf("controlled shutdown: %d partitions are still led from here", remaining)
		}
		if attempt >= retries {
			b.log.Warn("stopping without handing everything over; the controller will see this broker's session end")
			return
		}
		if !b.registeredAfter(ctx, b.values.Millis("controlled.shutdown.retry.backoff.ms")) {
			return
		}
	}
}

// registeredAfter waits, and tells whether it is worth asking the controller again: without a registration there is nothing to hand over, since the others see this broker gone.
func (b *Broker) registeredAfter(ctx context.Context, pause time.Duration) bool {
	over := time.NewTimer(pause)
	defer over.Stop()
	look := time.NewTicker(lookForRegistration)
	defer look.Stop()
	for b.epoch.Load() != noBrokerEpoch {
		select {
		case <-look.C:
		case <-over.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
	return false
}

func (b *Broker) askToStop(ctx context.Context) (remaining int, err error) {
	req := kmsg.NewPtrControlledShutdownRequest()
	req.BrokerID, req.BrokerEpoch = b.brokerID, b.epoch.Load()
	ctx, cancel := context.WithTimeout(ctx, b.values.Millis("controller.socket.timeout.ms"))
	defer cancel()
	answer, err := b.peers.askController(ctx, req, 3)
	if err != nil {
		return 0, err
	}
	resp := answer.(*kmsg.ControlledShutdownResponse)
	return len(resp.PartitionsRemaining), kerr.ErrorForCode(resp.ErrorCode)
}
