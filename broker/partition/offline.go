package partition

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

// LogDirFailed takes every replica in a failed log directory offline:
// KAFKA_STORAGE_ERROR from now on, for clients and for the controller (KIP-112,
// H45). It returns at once and may be called from inside an append: the work is
// done by the Manager's goroutine.
func (m *Manager) LogDirFailed(dir string) {
	m.failed.Lock()
	m.failed.dirs = append(m.failed.dirs, dir)
	m.failed.Unlock()
	select {
	case m.failed.tell <- struct{}{}:
	default:
	}
}

// offlineFailedDirs is the goroutine's part of LogDirFailed.
func (m *Manager) offlineFailedDirs() {
	m.failed.Lock()
	dirs := m.failed.dirs
	m.failed.dirs = nil
	m.failed.Unlock()
	for _, dir := range dirs {
		var gone []*Partition
		for _, p := range m.All() {
			if log := p.Log(); log != nil && log.ParentDir() == dir {
				gone = append(gone, p)
			} else if future := p.future(); future != nil && future.ParentDir() == dir {
				p.forgetFuture()
				m.logs.ForgetFuture(p.tp)
			}
		}
		m.takeOffline(gone)
		m.cfg.Log.WithField("dir", dir).Errorf("log directory failed, %d replicas are offline", len(gone))
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
