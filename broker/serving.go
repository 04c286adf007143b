package broker

import (
	"barnabas/admin"
	"barnabas/broker/api"
	"barnabas/broker/commitlog"
	"barnabas/broker/metrics"
	"barnabas/config"
	"barnabas/zkstate"
	"context"
)

// Controller is this process's part of the cluster's controller.
type Controller interface {
	api.Controller
	// SetUncleanElection tells the default of unclean.leader.election.enable, UncleanElectionEnabled that a topic's own setting allows it now.
	SetUncleanElection(on bool)
	UncleanElectionEnabled(topic string)
}

// Serve answers requests from the first registration on.
func (b *Broker) Serve(controller Controller) {
	b.keepFresh()
	b.heedSettings(controller)
	b.dispatcher = b.newDispatcher(controller)
	b.followTree(controller)
	b.security.gate.Next = b.dispatcher
	b.door.Handler = b.security.gate
	b.attendFullDirs()
	b.server.Serve(b.door)
}

// heedSettings has what may change while the broker runs take effect, at once for what has changed before.
func (b *Broker) heedSettings(controller Controller) {
	b.live.broker = func(v *config.Values) {
		controller.SetUncleanElection(v.Bool("unclean.leader.election.enable"))
		b.setThrottles()
		b.changeListeners(v)
		b.reloadKeyStores(v)
		b.limitConnections(v)
		b.logs.ConfigureCleaner(cleanerConfig(v))
		b.logs.ExpireProducerIDs(v.Millis("producer.id.expiration.ms"))
		b.fetchers.Resize(int(v.Int("num.replica.fetchers")))
		b.advertiseAnew(b.life)
	}
	b.live.broker(b.live.values()) // the parts began with what the file says
	b.live.changed = func(topic string, c commitlog.Config) {
		if c.UncleanElection {
			controller.UncleanElectionEnabled(topic)
		}
	}
}

// newDispatcher puts the parts of this broker behind its APIs.
func (b *Broker) newDispatcher(controller Controller) *api.Dispatcher {
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
	return api.New(api.Config{
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
}

// followTree starts what learns from ZooKeeper as long as the broker lives, and what ends delegation tokens.
func (b *Broker) followTree(controller Controller) {
	follow := func(with func(context.Context, <-chan zkstate.Event)) {
		events := b.zk.Subscribe()
		b.following.Go(func() {
			defer events.Close()
			with(b.life, events.C())
		})
	}
	follow(func(ctx context.Context, events <-chan zkstate.Event) {
		if err := b.live.catchUp(ctx); err != nil && ctx.Err() == nil {
			b.log.WithError(err).Warn("reading configuration changes")
		}
		b.live.follow(ctx, events)
	})
	follow(b.features.follow)
	if b.authorizer != nil {
		follow(b.authorizer.follow)
	}
	if b.tokens != nil {
		follow(b.tokens.follow)
		b.following.Go(func() {
			b.tokens.sweep(b.life, b.values.Millis("delegation.token.expiry.check.interval.ms"), controller.IsActive)
		})
	}
	b.registrations.changed = b.dispatcher.RegistrationsChanged
	follow(b.registrations.follow)
}

// autoTopic is how a topic is laid out that is made because somebody asked for it.
func (b *Broker) autoTopic(name string) api.AutoTopic {
	v := b.live.values()
	switch name {
	case offsetsTopic:
		return api.AutoTopic{Partitions: int32(v.Int("offsets.topic.num.partitions")), ReplicationFactor: int16(v.Int("offsets.topic.replication.factor")), Configs: map[string]string{
			"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": v.String("offsets.topic.segment.bytes")}}
	case transactionTopic:
		return api.AutoTopic{Partitions: int32(v.Int("transaction.state.log.num.partitions")), ReplicationFactor: int16(v.Int("transaction.state.log.replication.factor")), Configs: map[string]string{
			"cleanup.policy": "compact", "compression.type": "uncompressed", "segment.bytes": v.String("transaction.state.log.segment.bytes"),
			"min.insync.replicas": v.String("transaction.state.log.min.isr"), "unclean.leader.election.enable": "false"}}
	}
	return api.AutoTopic{Partitions: int32(v.Int("num.partitions")), ReplicationFactor: int16(v.Int("default.replication.factor"))}
}

// keepFresh starts what keeps the means of authentication fresh.
func (b *Broker) keepFresh() {
	for _, keep := range b.security.keepers {
		b.following.Go(func() { keep(b.life) })
	}
	for _, e := range b.security.open() {
		b.keep(e)
	}
}

// reloadKeyStores takes over the key stores that dynamic settings name.
func (b *Broker) reloadKeyStores(v *config.Values) {
	if err := b.security.reload(v); err != nil {
		b.log.WithError(err).Error("key stores cannot be read anew; those before stay in use")
	}
}
