package partition

import (
	"cmp"
	"slices"

	"barnabas/broker/commitlog"
)

// Driven is a Manager that does nothing by itself: whoever owns it says when ISRs are reviewed and logs are flushed, so
// that one thread can run many brokers in an order of its own. Requests that wait have deadlines of the real clock all
// the same; its owner gives them far ones.
type Driven struct{ *Manager }

// NewDriven is NewManager for an owner that drives.
func NewDriven(cfg Config, logs *commitlog.Manager, isr ISRChanger, fetchers Fetchers) Driven {
	m := newManager(cfg, logs, isr, fetchers)
	m.transitions = 1
	close(m.stopped) // there is no housekeeper to wait for
	return Driven{m}
}

// ReviewISRs asks for those to leave who lag, and repeats changes whose answer was uncertain.
func (d Driven) ReviewISRs() {
	for _, p := range d.inOrder() {
		p.shrinkISR()
	}
	d.retries.Lock()
	due := d.retries.due
	d.retries.due = map[*Partition]bool{}
	d.retries.Unlock()
	for _, p := range d.inOrder() {
		if due[p] {
			p.retryISR()
		}
	}
}

// FollowDirs takes the replicas of failed directories offline and brings back those of directories that came back.
func (d Driven) FollowDirs() { d.followDirs() }

// Flushes is how many partitions wait for a flush.
func (d Driven) Flushes() int {
	d.flusher.mu.Lock()
	defer d.flusher.mu.Unlock()
	return len(d.flusher.queue)
}

// Flush does the first of the flushes that commits wait for; false when there was none.
func (d Driven) Flush() bool {
	d.flusher.mu.Lock()
	if len(d.flusher.queue) == 0 {
		d.flusher.mu.Unlock()
		return false
	}
	p := d.flusher.queue[0]
	d.flusher.queue = d.flusher.queue[1:]
	d.flusher.mu.Unlock()
	p.flushNow()
	return true
}

func (d Driven) inOrder() []*Partition {
	all := d.All()
	slices.SortFunc(all, func(a, b *Partition) int {
		return cmp.Or(cmp.Compare(a.tp.Topic, b.tp.Topic), cmp.Compare(a.tp.Partition, b.tp.Partition))
	})
	return all
}
