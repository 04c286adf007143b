package broker

import (
	"context"
	"time"

	"barnabas/config"
	"barnabas/zkstate"
)

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

// BrokerEpoch implements api.BrokerEpoch: the czxid of the registration.
func (b *Broker) BrokerEpoch() int64 { return b.epoch.Load() }
