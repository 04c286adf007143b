package broker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"barnabas/config"
	"barnabas/zkstate"
)

// Register makes the broker's ephemeral node in the session of now. It waits for a node of an earlier life to go, and fails when another process holds the id.
func (b *Broker) Register(ctx context.Context) error {
	b.registration.Lock()
	defer b.registration.Unlock()
	reg, err := b.registrationNow()
	if err != nil {
		return err
	}
	stat, err := b.zk.RegisterEphemeral(ctx, zkstate.BrokerIDPath(b.brokerID), reg.Encode())
	if err != nil {
		return err
	}
	b.registration.endpoints = reg.Endpoints
	b.epoch.Store(stat.Czxid)
	b.replicas.SetBrokerEpoch(stat.Czxid)
	b.state.CompareAndSwap(stateStarting, stateRunning)
	b.door.open()
	b.log.Infof("registered in cluster %s as broker %d, epoch %d, reached at %s", b.clusterID, b.brokerID, stat.Czxid, shown(reg.Endpoints))
	b.notes.leave(b.logs.Dirs(), stat.EphemeralOwner)
	return nil
}

// registrationNow is what this broker says of itself.
func (b *Broker) registrationNow() (zkstate.Broker, error) {
	endpoints, err := b.endpoints()
	reg := zkstate.Broker{ID: b.brokerID, Version: 5, Endpoints: endpoints, JMXPort: -1, TimestampMs: time.Now().UnixMilli()}
	if b.values.ProtocolVersion("inter.broker.protocol.version") < config.V2_7IV0 {
		reg.Version = 4
	}
	if rack := b.values.String("broker.rack"); rack != "" {
		reg.Rack = &rack
	}
	return reg, err
}

// advertiseAnew publishes other addresses when advertised.listeners has changed. Without a registration there is nothing to do: the next one has them.
func (b *Broker) advertiseAnew(ctx context.Context) {
	b.registration.Lock()
	defer b.registration.Unlock()
	reg, err := b.registrationNow()
	if b.epoch.Load() == noBrokerEpoch || err == nil && slices.Equal(reg.Endpoints, b.registration.endpoints) {
		return
	}
	if err == nil {
		_, err = b.zk.One(ctx, zkstate.Set(zkstate.BrokerIDPath(b.brokerID), reg.Encode(), zkstate.AnyVersion))
	}
	if errors.Is(err, zkstate.ErrNoNode) {
		return
	}
	if err != nil {
		b.log.WithError(err).Error("other addresses cannot be published; those before stay")
		return
	}
	b.registration.endpoints = reg.Endpoints
	b.log.Infof("reached at %s from now on", shown(reg.Endpoints))
}

// shown are addresses as configuration files have them.
func shown(endpoints []zkstate.Endpoint) string {
	var uris []string
	for _, e := range endpoints {
		uris = append(uris, config.Listener{Name: e.Listener, Host: e.Host, Port: int(e.Port)}.URI())
	}
	return strings.Join(uris, ",")
}

// SessionExpired says that the registration is gone. What this broker leads it goes on serving within the ISRs known; it can change none of them, and a new leader fences it.
func (b *Broker) SessionExpired() { b.epoch.Store(noBrokerEpoch) }

// SessionClosed says that the session was closed for good, after Stop: a successor has nothing to end.
func (b *Broker) SessionClosed() { b.notes.remove(b.logs.Dirs()) }

// BrokerEpoch implements api.BrokerEpoch: the czxid of the registration.
func (b *Broker) BrokerEpoch() int64 { return b.epoch.Load() }
