package partition

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

// Replicas out of service (KIP-112, H45), and how they come back (H46).
//
// A replica whose log cannot be used keeps its name: a nil in Manager.mu.partitions, so that clients and the controller
// are answered KAFKA_STORAGE_ERROR. When its directory comes back, which only one does that was full, the name is
// forgotten, and the controller's next order makes the replica anew, like that of a broker that has just started.
//
// But not before the controller has taken notice of its being gone. Until then the replica is, to the controller, the
// leader of the present epoch, or a member of the ISR, with everything that it had before; and a log that comes back may
// be shorter: somebody has made room by hand. A replica that led on in the same epoch could give an offset to another
// record; one that counted as in sync could be elected without what was committed. A controller that is answered
// KAFKA_STORAGE_ERROR takes the replica out of leadership and ISR, and tells it so with a StopReplica, Kafka's as well as
// ours. That StopReplica is what is waited for.

// offline is what is known of a replica out of service. It is kept until an order has put the replica into service: one
// that fails once more before that is no news to the controller, which will not tell again.
type offline struct {
	known bool // to a controller
	back  bool // the log can be had again
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

// bringBack makes a place for the replicas of a directory that came back, for those that a controller knows to be gone
// at once. Also for those that have no log at all, once there is no directory left that may hold one.
func (m *Manager) bringBack(dir string) {
	all := !slices.ContainsFunc(m.logs.Dirs(), func(d commitlog.DirInfo) bool { return d.Err != nil })
	back, waiting := 0, 0
	m.mu.Lock()
	for tp, o := range m.mu.offline {
		log := m.logs.Get(tp)
		if m.mu.partitions[tp] != nil || log == nil && !all || log != nil && log.ParentDir() != dir {
			continue
		}
		o.back = true
		m.mu.offline[tp] = o
		if m.returnLocked(tp) {
			back++
		} else {
			waiting++
		}
	}
	m.mu.Unlock()
	m.resumeMovesTo(dir)
	m.cfg.Log.WithField("dir", dir).Warnf("log directory came back with %d replicas; %d more wait until the controller knows that they were gone", back, waiting)
	if back+waiting > 0 {
		m.announceReturn()
	}
}

// returnLocked forgets that a replica is offline, if it is time.
func (m *Manager) returnLocked(tp commitlog.TopicPartition) bool {
	o := m.mu.offline[tp]
	p, named := m.mu.partitions[tp]
	if !o.known || !o.back || !named || p != nil {
		return false
	}
	delete(m.mu.partitions, tp)
	m.mu.offline[tp] = offline{known: true}
	return true
}

// offlineIsKnown notes that a controller has stopped a replica; true when that lets the replica come back.
func (m *Manager) offlineIsKnown(tp commitlog.TopicPartition) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, is := m.mu.offline[tp]
	if !is {
		return false
	}
	o.known = true
	m.mu.offline[tp] = o
	return m.returnLocked(tp)
}

// inService forgets what is known of replicas that were offline.
func (m *Manager) inService(ts []transition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range ts {
		if ts[i].out.Err == nil {
			delete(m.mu.offline, ts[i].p.tp)
		}
	}
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
	m.mu.Lock()
	if m.mu.partitions[p.tp] == p {
		m.mu.partitions[p.tp] = nil
		m.leaveTrafficLocked(p)
		m.mu.offline[p.tp] = offline{known: m.mu.offline[p.tp].known}
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
