package partition

import (
	"slices"

	"barnabas/broker/commitlog"
)

// Assigned is who has a partition, as a controller's metadata tells.
type Assigned struct {
	TP          commitlog.TopicPartition
	LeaderEpoch int32
	Replicas    []int32
}

// TakenAway ends the replicas that this broker has and metadata of a later leader epoch does not give to it (H34). Nobody
// else tells it so: a broker whose session was over while its replica was moved away gets no StopReplica for that, and
// would lead on for whoever still asks here. The log is kept, as that of a broker which has just started.
func (m *Manager) TakenAway(told []Assigned) {
	m.orders.Lock()
	defer m.orders.Unlock()
	var roles []Role
	for i := range told {
		a := &told[i]
		p := m.lookup(a.TP)
		if p == nil || slices.Contains(a.Replicas, m.cfg.BrokerID) {
			continue
		}
		if _, epoch := p.leaderHint(); epoch >= a.LeaderEpoch {
			continue
		}
		m.cfg.Log.WithField("partition", a.TP.String()).Infof("replica was moved away meanwhile: leader epoch %d has replicas %v", a.LeaderEpoch, a.Replicas)
		m.fetchers.Remove([]commitlog.TopicPartition{a.TP})
		if err := m.remove(a.TP, func(commitlog.TopicPartition) error { return nil }); err != nil {
			m.cfg.Log.WithField("partition", a.TP.String()).WithError(err).Error("the move between directories could not be ended")
		}
		roles = append(roles, Role{TP: a.TP, LeaderEpoch: a.LeaderEpoch, Stopped: true})
	}
	if m.cfg.OnRoles != nil && len(roles) > 0 {
		m.cfg.OnRoles(roles)
	}
}
