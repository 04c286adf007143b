package partition

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

// StopReplicas carries out a controller's order to stop following, and to delete
// where it says so. Errors for all are those of ApplyLeaderAndISR; per partition,
// in request order: FENCED_LEADER_EPOCH when the order is older than what this
// replica knows (KIP-570, H27), KAFKA_STORAGE_ERROR.
//
//lint:ignore ST1008 the refusal of all comes before the outcome of each, as in the answer
func (m *Manager) StopReplicas(req StopReplicas) (all error, each []PartitionError) {
	m.orders.Lock()
	defer m.orders.Unlock()
	if err := m.admitOrder(req.ControllerID, req.ControllerEpoch, req.BrokerEpoch, "StopReplica"); err != nil {
		return err, nil
	}
	each = make([]PartitionError, len(req.Partitions))
	var stop []int
	returned := false
	for i, r := range req.Partitions {
		tp := commitlog.TopicPartition{Topic: r.Topic, Partition: r.Partition}
		each[i].TP = tp
		each[i].Err = m.mayStop(tp, r)
		if each[i].Err == nil {
			stop = append(stop, i)
		} else if m.isBack(tp) {
			returned = true
		}
	}

	// Fetchers first: they append to the logs that may go.
	tps := make([]commitlog.TopicPartition, len(stop))
	for j, i := range stop {
		tps[j] = each[i].TP
	}
	m.fetchers.Remove(tps)
	var roles []Role
	for _, i := range stop {
		tp, del := each[i].TP, req.Partitions[i].Delete
		if del {
			each[i].Err = m.remove(tp, m.logs.Delete)
		} else if p := m.lookup(tp); p != nil && p.stoppedLate(req.Partitions[i].LeaderEpoch) {
			m.returnAgain(p)
			returned = true
		} else if p != nil {
			p.wakeAll()
		}
		if each[i].Err == nil {
			roles = append(roles, Role{TP: tp, LeaderEpoch: req.Partitions[i].LeaderEpoch, Stopped: true, Deleted: del})
		}
	}
	if m.cfg.OnRoles != nil && len(roles) > 0 {
		m.cfg.OnRoles(roles)
	}
	if returned {
		m.announceReturn()
	}
	return nil, each
}

// mayStop compares the order's leader epoch with the replica's. A deletion of
// the topic carries a sentinel, since the epoch is not raised for it; orders of
// versions without the field carry another.
func (m *Manager) mayStop(tp commitlog.TopicPartition, r StopReplica) error {
	m.mu.RLock()
	p, known := m.mu.partitions[tp]
	m.mu.RUnlock()
	if p == nil {
		if known && !(r.Delete && m.isBack(tp)) {
			return kerr.KafkaStorageError
		}
		return nil // the log may be on disk all the same: the broker was down meanwhile
	}
	_, epoch := p.leaderHint()
	if r.LeaderEpoch == EpochDuringDelete || r.LeaderEpoch == EpochNotGiven || r.LeaderEpoch >= epoch {
		return nil
	}
	m.cfg.Log.WithField("partition", tp.String()).Warnf("ignoring StopReplica (delete: %t) of leader epoch %d, it is %d", r.Delete, r.LeaderEpoch, epoch)
	return kerr.FencedLeaderEpoch
}

// remove ends a replica and gives its log to do.
func (m *Manager) remove(tp commitlog.TopicPartition, do func(commitlog.TopicPartition) error) error {
	m.mu.Lock()
	p := m.mu.partitions[tp]
	if p != nil {
		delete(m.mu.partitions, tp)
		m.leaveTrafficLocked(p)
	} else if m.mu.offline[tp].back {
		delete(m.mu.partitions, tp)
		delete(m.mu.offline, tp)
	}
	m.mu.Unlock()
	if p != nil {
		p.forgetFuture()
		p.die(kerr.NotLeaderForPartition)
	}
	return errors.Join(do(tp), m.logs.DeleteFuture(tp))
}

// setAside ends a replica and keeps its files under another name.
func (m *Manager) setAside(tp commitlog.TopicPartition) error {
	m.fetchers.Remove([]commitlog.TopicPartition{tp})
	return m.remove(tp, m.logs.SetAside)
}

// setStraysAside sets aside every log that a full order does not give to this
// broker: topics deleted, or replicas moved away, while it was not looking (H34).
func (m *Manager) setStraysAside(req *LeaderAndISR) {
	named := make(map[commitlog.TopicPartition]bool, len(req.Partitions))
	for i := range req.Partitions {
		o := &req.Partitions[i]
		if slices.Contains(o.Replicas, m.cfg.BrokerID) {
			named[commitlog.TopicPartition{Topic: o.Topic, Partition: o.Partition}] = true
		}
	}
	for _, log := range slices.Concat(m.logs.All(), m.logs.AllFuture()) {
		tp := log.TP()
		if named[tp] {
			continue
		}
		if log.IsFuture() && m.logs.Get(tp) != nil {
			continue // goes with its current log
		}
		m.cfg.Log.WithField("partition", tp.String()).Warn("stray log is set aside: the controller's full order does not name it")
		if err := m.setAside(tp); err != nil {
			m.cfg.Log.WithField("partition", tp.String()).WithError(err).Error("stray log could not be set aside")
		}
	}
}
