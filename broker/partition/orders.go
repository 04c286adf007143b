package partition

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

// transitionsAtOnce bounds how many replicas change their role at the same time:
// each writes an epoch checkpoint, and disks take several of those together.
const transitionsAtOnce = 16

// transition is one partition of an order on its way.
type transition struct {
	p     *Partition
	order *LeaderAndISRPartition
	out   *PartitionError
	idle  bool // nothing changes: the leader to follow is not alive
}

// ApplyLeaderAndISR carries out a controller's order. The first error refuses all
// of it: STALE_CONTROLLER_EPOCH (H25), or STALE_BROKER_EPOCH when it was meant
// for an earlier registration of this broker (KIP-380, H26; one for a later
// registration than this broker has learned of is accepted). The others are per
// partition, in request order:
//
//   - STALE_CONTROLLER_EPOCH: the leader epoch is not newer than the known one
//   - UNKNOWN_TOPIC_OR_PARTITION: this broker is not among the replicas
//   - INCONSISTENT_TOPIC_ID: the replica here is of another topic of that name,
//     given by the same controller
//   - KAFKA_STORAGE_ERROR: the log cannot be had
//
// A log of an earlier topic with the same name, one that the present controller
// has not spoken of, is set aside, not deleted, and a new one begins (KIP-516,
// H36). A full order (type 2) names everything this broker should have: other
// logs are set aside likewise (H34).
//
//lint:ignore ST1008 the refusal of all comes before the outcome of each, as in the answer
func (m *Manager) ApplyLeaderAndISR(req LeaderAndISR) (all error, each []PartitionError) {
	m.orders.Lock()
	defer m.orders.Unlock()
	if err := m.admitOrder(req.ControllerID, req.ControllerEpoch, req.BrokerEpoch, "LeaderAndIsr"); err != nil {
		return err, nil
	}
	if req.Type == RequestFull {
		m.setStraysAside(&req)
	}

	each = make([]PartitionError, len(req.Partitions))
	brokers := m.aliveBrokers()
	endpoint := func(id int32) (Endpoint, bool) {
		if b, ok := brokers[id]; ok {
			return b.Endpoint, true
		}
		e, ok := req.LiveLeaders[id]
		return e, ok
	}
	var leaders, followers []transition
	var renamed []FetchFrom
	for i := range req.Partitions {
		o := &req.Partitions[i]
		each[i] = PartitionError{TP: commitlog.TopicPartition{Topic: o.Topic, Partition: o.Partition}, TopicID: o.TopicID}
		p, err := m.classify(o, each[i].TP)
		if p == nil {
			each[i].Err = err
			if err == nil {
				renamed = append(renamed, m.knownByID(o, each[i].TP, endpoint)...)
			}
			continue
		}
		if o.Leader == m.cfg.BrokerID {
			leaders = append(leaders, transition{p: p, order: o, out: &each[i]})
		} else {
			followers = append(followers, transition{p: p, order: o, out: &each[i]})
		}
	}
	m.makeLeaders(leaders)
	m.makeFollowers(followers, endpoint)
	if len(renamed) > 0 {
		m.fetchers.Add(renamed)
	}
	m.goOnMoving(leaders)
	m.goOnMoving(followers)
	m.tellRoles(leaders, followers)
	return nil, each
}

// admitOrder refuses the orders of the past.
func (m *Manager) admitOrder(controller, controllerEpoch int32, brokerEpoch int64, what string) error {
	if own := m.brokerEpoch.Load(); brokerEpoch >= 0 && brokerEpoch < own {
		m.cfg.Log.Warnf("ignoring %s of controller %d for broker epoch %d, it is %d", what, controller, brokerEpoch, own)
		return kerr.StaleBrokerEpoch
	}
	if controllerEpoch < m.orders.controllerEpoch {
		m.cfg.Log.Warnf("ignoring %s of controller %d in epoch %d, the latest known is %d", what, controller, controllerEpoch, m.orders.controllerEpoch)
		return kerr.StaleControllerEpoch
	}
	m.orders.controllerEpoch = controllerEpoch
	return nil
}

// ControllerSeen notes the controller epoch of an UpdateMetadata, and refuses one
// of the past with STALE_CONTROLLER_EPOCH: a broker has one newest epoch for all
// that controllers send. A new controller tells of brokers before it orders
// anything, and from then on its predecessor's orders come too late (H25).
func (m *Manager) ControllerSeen(controllerEpoch int32) error {
	m.orders.Lock()
	defer m.orders.Unlock()
	if controllerEpoch < m.orders.controllerEpoch {
		return kerr.StaleControllerEpoch
	}
	m.orders.controllerEpoch = controllerEpoch
	return nil
}

// classify finds (or makes) the replica that an order is for; nil with the
// outcome when there is nothing more to do.
func (m *Manager) classify(o *LeaderAndISRPartition, tp commitlog.TopicPartition) (*Partition, error) {
	m.mu.RLock()
	p, known := m.mu.partitions[tp]
	m.mu.RUnlock()
	back := known && p == nil && m.mayReturn(o, tp)
	if known && p == nil && !back {
		return nil, kerr.KafkaStorageError
	}
	if !slices.Contains(o.Replicas, m.cfg.BrokerID) {
		m.cfg.Log.WithField("partition", tp.String()).Warnf("ignoring LeaderAndIsr: broker is not among replicas %v", o.Replicas)
		return nil, kerr.UnknownTopicOrPartition
	}

	if log := m.logs.Get(tp); log != nil && !o.TopicID.IsZero() && !log.TopicID().IsZero() && log.TopicID() != o.TopicID {
		if p != nil && !o.IsNew && p.controllerEpoch() == m.orders.controllerEpoch {
			m.cfg.Log.WithField("partition", tp.String()).Errorf("topic id is %s here, %s in the order", log.TopicID(), o.TopicID)
			return nil, kerr.InconsistentTopicID
		}
		m.cfg.Log.WithField("partition", tp.String()).Warnf("log of an earlier topic (id %s, now %s) is set aside", log.TopicID(), o.TopicID)
		if err := m.setAside(tp); err != nil {
			return nil, err
		}
		p = nil
	}

	if p == nil && !back && m.restartedUnseen(o, tp) {
		m.cfg.Log.WithField("partition", tp.String()).Warnf("this broker led in epoch %d before it crashed, and others are in sync: it does not lead on", o.LeaderEpoch)
		m.mu.Lock()
		m.mu.partitions[tp], m.mu.offline[tp] = nil, offline{back: true, held: None}
		m.mu.Unlock()
		return nil, kerr.KafkaStorageError
	}
	if p == nil {
		m.mu.Lock()
		p = newPartition(m, tp)
		p.state.brokers = m.mu.brokers
		m.mu.partitions[tp] = p
		m.mu.Unlock()
		p.returned = back
		return p, nil
	}
	_, epoch := p.leaderHint()
	switch {
	case o.LeaderEpoch > epoch:
		return p, nil
	case o.LeaderEpoch == epoch && !o.TopicID.IsZero():
		// The controller began to use topic ids without electing anybody.
		if log := p.Log(); log != nil && log.TopicID().IsZero() {
			return nil, log.SetTopicID(o.TopicID)
		}
	}
	return nil, kerr.StaleControllerEpoch
}

// knownByID tells the fetcher of a partition that its topic has an id now.
func (m *Manager) knownByID(o *LeaderAndISRPartition, tp commitlog.TopicPartition, endpoint func(int32) (Endpoint, bool)) []FetchFrom {
	leader, alive := endpoint(o.Leader)
	p := m.lookup(tp)
	if p == nil || !alive || o.Leader == m.cfg.BrokerID || m.orders.closed {
		return nil
	}
	leader.ID = o.Leader
	return []FetchFrom{{Partition: p, TopicID: o.TopicID, Leader: leader, LeaderEpoch: o.LeaderEpoch}}
}

func (p *Partition) controllerEpoch() int32 {
	p.role.RLock()
	defer p.role.RUnlock()
	return p.state.controllerEpoch
}

// together runs do for each transition, some at a time, and notes the outcomes.
func (m *Manager) together(ts []transition, do func(*transition) error) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, m.transitions)
	for i := range ts {
		t := &ts[i]
		slots <- struct{}{}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			if err := do(t); err != nil {
				t.out.Err = err
			}
		}()
	}
	wg.Wait()
	for i := range ts {
		if err := ts[i].out.Err; err != nil && errors.Is(err, kerr.KafkaStorageError) {
			m.cfg.Log.WithField("partition", ts[i].p.tp.String()).WithError(err).Error("replica is offline")
			m.takeOffline([]*Partition{ts[i].p})
		}
	}
}

// makeLeaders stops the fetchers first: what a leader's log holds at its epoch's
// start is what its followers will be measured by.
func (m *Manager) makeLeaders(ts []transition) {
	if len(ts) == 0 {
		return
	}
	m.fetchers.Remove(names(ts))
	m.together(ts, func(t *transition) error { return t.p.becomeLeader(t.order) })
	for _, t := range ts {
		t.p.wakeAll()
	}
}

// makeFollowers first makes followers, so that no client appends any more, then
// stops the fetchers of the past, answers who waits, and starts fetching. A
// partition whose leader is not alive keeps its state; only its log is made, so
// that its high watermark stays in the checkpoint (KAFKA-1647).
func (m *Manager) makeFollowers(ts []transition, endpoint func(int32) (Endpoint, bool)) {
	if len(ts) == 0 {
		return
	}
	m.together(ts, func(t *transition) error {
		if _, alive := endpoint(t.order.Leader); !alive {
			t.idle = true
			m.cfg.Log.WithField("partition", t.p.tp.String()).Warnf("cannot follow in leader epoch %d: leader %d is not alive", t.order.LeaderEpoch, t.order.Leader)
			return t.p.makeLog(t.order)
		}
		return t.p.becomeFollower(t.order)
	})
	follow := slices.DeleteFunc(slices.Clone(ts), func(t transition) bool {
		return t.out.Err != nil || t.idle
	})
	m.fetchers.Remove(names(follow))
	from := make([]FetchFrom, 0, len(follow))
	for _, t := range follow {
		t.p.wakeAll()
		leader, _ := endpoint(t.order.Leader)
		leader.ID = t.order.Leader
		from = append(from, FetchFrom{Partition: t.p, TopicID: t.order.TopicID, Leader: leader, LeaderEpoch: t.order.LeaderEpoch})
	}
	if !m.orders.closed {
		m.fetchers.Add(from)
	}
}

func names(ts []transition) []commitlog.TopicPartition {
	tps := make([]commitlog.TopicPartition, len(ts))
	for i, t := range ts {
		tps[i] = t.p.tp
	}
	return tps
}

func (m *Manager) tellRoles(leaders, followers []transition) {
	if m.cfg.OnRoles == nil {
		return
	}
	var roles []Role
	for _, t := range slices.Concat(leaders, followers) {
		if t.out.Err == nil && !t.idle {
			roles = append(roles, Role{TP: t.p.tp, Leader: t.order.Leader == m.cfg.BrokerID, LeaderEpoch: t.order.LeaderEpoch})
		}
	}
	if len(roles) > 0 {
		m.cfg.OnRoles(roles)
	}
}

// becomeLeader takes leadership in the order's epoch.
func (p *Partition) becomeLeader(o *LeaderAndISRPartition) error {
	p.role.Lock()
	s, broken, err := p.becomeLeaderLocked(o)
	p.role.Unlock()
	if err != nil {
		return err
	}
	p.finish(s, broken)
	return nil
}

func (p *Partition) becomeLeaderLocked(o *LeaderAndISRPartition) (step, error, error) {
	if err := p.makeLogLocked(o); err != nil {
		return step{}, nil, err
	}
	log := p.role.log
	if err := p.m.lostAlone(log, o); err != nil {
		return step{}, nil, err
	}
	end := log.EndPosition()
	if err := log.AssignEpochStart(o.LeaderEpoch, end.Offset); err != nil {
		return step{}, nil, fmt.Errorf("note start of leader epoch %d: %w", o.LeaderEpoch, err)
	}
	now := p.m.cfg.Now()
	p.state.Lock()
	defer p.state.Unlock()
	p.state.lead(now, o, end, log.HighWatermarkPosition(), log.RecoveryPoint())
	s := step{highWatermark: p.state.advance(now, end, log.Config().MinInsync)}
	broken := p.settle(log, &s)
	p.m.cfg.Log.WithField("partition", p.tp.String()).Infof("leader in epoch %d from offset %d, partition epoch %d, high watermark %d, ISR %v, replicas %v",
		o.LeaderEpoch, end.Offset, o.PartitionEpoch, p.state.hw.Offset, o.ISR, o.Replicas)
	return s, broken, nil
}

// becomeFollower gives up leadership, if there was one, for the order's leader.
func (p *Partition) becomeFollower(o *LeaderAndISRPartition) error {
	p.role.Lock()
	defer p.role.Unlock()
	if p.state.role == roleLeader {
		p.role.term++
	}
	if err := p.makeLogLocked(o); err != nil {
		return err
	}
	p.state.Lock()
	p.state.follow(o)
	p.state.Unlock()
	p.m.cfg.Log.WithField("partition", p.tp.String()).Infof("follower of %d in epoch %d, log end %d, high watermark %d",
		o.Leader, o.LeaderEpoch, p.role.log.EndOffset(), p.role.log.HighWatermark())
	return nil
}

func (p *Partition) makeLog(o *LeaderAndISRPartition) error {
	p.role.Lock()
	defer p.role.Unlock()
	return p.makeLogLocked(o)
}

// makeLogLocked gets the partition's log, from disk or new. While a log
// directory is offline only a partition that is known to be new may begin
// anywhere: an older one's log may be the one that cannot be seen (H45).
func (p *Partition) makeLogLocked(o *LeaderAndISRPartition) error {
	if p.role.dead != nil {
		return p.role.dead
	}
	m := p.m
	if p.role.log == nil {
		if m.logs.Get(p.tp) == nil && !o.IsNew {
			for _, d := range m.logs.Dirs() {
				if d.Err != nil {
					return fmt.Errorf("log directory %s is offline and may hold the log: %w", d.Path, kerr.KafkaStorageError)
				}
			}
		}
		log, err := m.logs.GetOrCreate(p.tp, o.TopicID, false)
		if err != nil {
			return fmt.Errorf("open log: %w", err)
		}
		p.role.log = log
		p.resumeMoveLocked()
	}
	if err := p.role.log.Err(); err != nil {
		return err
	}
	if !o.TopicID.IsZero() && p.role.log.TopicID().IsZero() {
		return p.role.log.SetTopicID(o.TopicID)
	}
	return nil
}
