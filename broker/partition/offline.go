package partition

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

// Replicas out of service (KIP-112, H45), and how they come back (H46).
//
// A replica whose log cannot be used keeps its name: a nil in Manager.mu.partitions, so that clients and the controller
// are answered KAFKA_STORAGE_ERROR. When its directory comes back, which only one does that was full, the controller is
// asked for orders, and an order makes the replica anew, like that of a broker that has just started.
//
// But not any order. To a controller that has not taken notice the replica is the leader of the present epoch, or a member
// of the ISR, with everything that it had before; and a log that comes back may be shorter: somebody has made room by
// hand. A replica that led on in the same epoch could give an offset to another record; one that counted as in sync could
// be elected without what was committed. Such an order is refused, unless it is to follow with a log that holds all that it
// held. The refusal is what a controller takes notice by: it takes
// the replica out of leadership and ISR, and says so with a StopReplica, upon which it is asked again.
//
// That StopReplica may come late, when orders have brought the replica back already: it names the leader epoch of the last
// of them. The controller goes on to believe that the replica follows, which does not. So it is offline once more, and the
// controller is asked for another order.

// offline is what is known of a replica out of service.
type offline struct {
	back bool  // the log can be had again
	held int64 // where the log ended when it was last used; None: not known
}

// dirEvent is a log directory that failed or came back.
type dirEvent struct {
	dir  string
	back bool
}

// LogDirFailed takes every replica in a failed log directory offline:
// KAFKA_STORAGE_ERROR from now on, for clients and for the controller (KIP-112,
// H45). It returns at once and may be called from inside an append: the work is
// done by the Manager's goroutine.
func (m *Manager) LogDirFailed(dir string) { m.noteDir(dirEvent{dir: dir}) }

// LogDirReturned brings the replicas back whose logs commitlog.Manager.Reopen has brought back. It returns at once;
// Config.OnReturn is told when there is something to order.
func (m *Manager) LogDirReturned(dir string) { m.noteDir(dirEvent{dir, true}) }

func (m *Manager) noteDir(e dirEvent) {
	m.dirs.Lock()
	m.dirs.events = append(m.dirs.events, e)
	m.dirs.Unlock()
	select {
	case m.dirs.tell <- struct{}{}:
	default:
	}
}

// followDirs is the goroutine's part of LogDirFailed and LogDirReturned.
func (m *Manager) followDirs() {
	m.dirs.Lock()
	events := m.dirs.events
	m.dirs.events = nil
	m.dirs.Unlock()
	for _, e := range events {
		if e.back {
			m.bringBack(e.dir)
		} else {
			m.offlineDir(e.dir)
		}
	}
}

func (m *Manager) offlineDir(dir string) {
	var gone []*Partition
	for _, p := range m.All() {
		if log := p.Log(); log != nil && log.ParentDir() == dir {
			gone = append(gone, p)
		} else if future := p.future(); future != nil && future.ParentDir() == dir {
			p.forgetFuture()
			m.logs.ForgetFuture(future)
		}
	}
	m.takeOffline(gone)
	m.cfg.Log.WithField("dir", dir).Errorf("log directory failed, %d replicas are offline", len(gone))
	m.tellGone(gone)
}

// tellGone says that this broker does not lead what went offline: a coordinator of such a partition could only make
// promises.
func (m *Manager) tellGone(gone []*Partition) {
	if m.cfg.OnRoles == nil || len(gone) == 0 {
		return
	}
	roles := make([]Role, len(gone))
	for i, p := range gone {
		_, epoch := p.leaderHint()
		roles[i] = Role{TP: p.tp, LeaderEpoch: epoch, Stopped: true}
	}
	m.orders.Lock() // an order that was carried out before is told before
	defer m.orders.Unlock()
	m.cfg.OnRoles(roles)
}

// bringBack lets the replicas of a directory that came back be made anew. Also those that have no log at all, once there
// is no directory left that may hold one.
func (m *Manager) bringBack(dir string) {
	all := !slices.ContainsFunc(m.logs.Dirs(), func(d commitlog.DirInfo) bool { return d.Err != nil })
	back := 0
	m.mu.Lock()
	for tp, o := range m.mu.offline {
		log := m.logs.Get(tp)
		if log == nil && all || log != nil && log.ParentDir() == dir {
			m.mu.offline[tp] = offline{true, o.held}
			back++
		}
	}
	m.mu.Unlock()
	m.resumeMovesTo(dir)
	m.cfg.Log.WithField("dir", dir).Warnf("log directory came back with %d replicas", back)
	if back > 0 {
		m.announceReturn()
	}
}

// mayReturn tells that an order can be carried out for a replica that was offline, and forgets that it was.
func (m *Manager) mayReturn(o *LeaderAndISRPartition, tp commitlog.TopicPartition) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, log := m.mu.offline[tp], m.logs.Get(tp)
	whole := log != nil && known.held != None && log.EndOffset() >= known.held
	if !known.back || o.trusts(m.cfg.BrokerID) && (o.Leader == m.cfg.BrokerID || !whole) {
		return false
	}
	delete(m.mu.offline, tp)
	delete(m.mu.partitions, tp)
	return true
}

// restartedUnseen tells that an order takes this broker to have led all the time in an epoch that it led in before a crash: its controller has not seen it gone, as one that is elected meanwhile
// has not. Its log may be shorter now than what it has acknowledged, and others in sync have that (H20): it is offline, like a replica whose disk came back, until it is ordered to follow.
func (m *Manager) restartedUnseen(o *LeaderAndISRPartition, tp commitlog.TopicPartition) bool {
	log := m.logs.Get(tp)
	if log == nil || !log.Recovery().Ran || o.Leader != m.cfg.BrokerID || len(o.ISR) < 2 {
		return false
	}
	latest, known := log.LatestEpoch()
	return known && o.LeaderEpoch <= latest
}

// trusts tells that the order takes a replica to have all that it had. One that is the last that was in sync does not lead
// before it is elected, in another epoch.
func (o *LeaderAndISRPartition) trusts(id int32) bool {
	last := o.Leader < 0 && len(o.ISR) == 1
	return o.Leader == id || slices.Contains(o.ISR, id) && !last
}

// isBack tells that a replica waits for an order to come back.
func (m *Manager) isBack(tp commitlog.TopicPartition) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.mu.offline[tp].back
}

// stoppedLate tells that a StopReplica may be older than the order by which the replica came back. One that is meant names a
// later epoch, or a deletion follows, which finds the replica offline and does it no less.
func (p *Partition) stoppedLate(epoch int32) bool {
	_, now := p.leaderHint()
	return p.returned && (epoch == now || epoch == EpochNotGiven)
}

// returnAgain takes a replica that came back out of service until the next order.
func (m *Manager) returnAgain(p *Partition) {
	m.cfg.Log.WithField("partition", p.tp.String()).Warn("replica that came back was stopped by an older order; the controller is asked for another")
	m.takeOffline([]*Partition{p})
	m.mu.Lock()
	m.mu.offline[p.tp] = offline{true, m.mu.offline[p.tp].held}
	m.mu.Unlock()
}

func (m *Manager) announceReturn() {
	if m.cfg.OnReturn != nil {
		m.cfg.OnReturn()
	}
}

// resumeMovesTo goes on with the moves of replicas that stayed in service while the directory that they are moved to did
// not.
func (m *Manager) resumeMovesTo(dir string) {
	var moving []*Partition
	for _, p := range m.All() {
		p.role.Lock()
		if p.role.dead == nil && p.role.log != nil {
			p.resumeMoveLocked()
		}
		if p.role.future != nil && p.role.future.ParentDir() == dir {
			moving = append(moving, p)
		}
		p.role.Unlock()
	}
	if len(moving) > 0 {
		m.cfg.Movers.Start(moving)
	}
}

// breakdown takes one replica offline because an invariant does not hold: going
// on could lose or fork data, and a restart reads the log anew.
func (m *Manager) breakdown(p *Partition, err error) {
	if p.broken.Swap(true) {
		return
	}
	m.cfg.Log.WithField("partition", p.tp.String()).WithError(err).Error("INVARIANT BROKEN, the replica goes offline until restart")
	m.markOffline(p)
	p.die(kerr.KafkaStorageError)
	m.cfg.Movers.Stop([]commitlog.TopicPartition{p.tp})
}

// markOffline keeps the name, so that requests are told the reason.
func (m *Manager) markOffline(p *Partition) {
	held := int64(None)
	if log := p.Log(); log != nil {
		held = log.EndOffset()
	}
	m.mu.Lock()
	if m.mu.partitions[p.tp] == p {
		m.mu.partitions[p.tp] = nil
		m.leaveTrafficLocked(p)
		m.mu.offline[p.tp] = offline{held: held}
	}
	m.mu.Unlock()
}

func (m *Manager) takeOffline(gone []*Partition) {
	tps := make([]commitlog.TopicPartition, len(gone))
	for i, p := range gone {
		tps[i] = p.tp
		m.markOffline(p)
		p.die(kerr.KafkaStorageError)
	}
	m.fetchers.Remove(tps)
	m.cfg.Movers.Stop(tps)
}
