package fetcher

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

// Driven is one fetcher without goroutine and connection: whoever owns it carries its requests and says what time it
// is, so that one thread can run many brokers in an order of its own.
type Driven struct {
	l     *loop
	asked action // what was asked and waits for its answer
	req   kmsg.Request
}

// NewDriven returns a fetcher for the replicas of one leader. The error is an IBP that cannot be read.
func NewDriven(cfg Config, leader partition.Endpoint) (*Driven, error) {
	m, err := New(cfg)
	if err != nil {
		return nil, err
	}
	return &Driven{l: idleLoop(&m.cfg, key{leader: leader}, m.versions, nil)}, nil
}

// Add begins to follow, or goes on in another epoch.
func (d *Driven) Add(from []partition.FetchFrom) { d.l.add(from) }

// Remove stops following and tells how many partitions are left.
func (d *Driven) Remove(tps []commitlog.TopicPartition) int { return d.l.remove(tps) }

// Next does what can be done without the leader and returns what to ask it. Without a request there is nothing to do for
// sleep, or, if that is negative, until something is added. It must not be called while a request is out.
func (d *Driven) Next() (req kmsg.Request, sleep time.Duration) {
	for {
		a := d.l.mu.core.next(d.l.cfg.Now())
		switch {
		case a.sleep != nil:
			return nil, *a.sleep
		case a.resync != nil:
			d.l.resync(a.resync)
		case a.cut != nil:
			d.l.carryOut(a.cut)
		default:
			d.asked, d.req = a, d.l.request(a)
			return d.req, 0
		}
	}
}

// Answer brings what became of the request: the leader's answer, or why there is none.
func (d *Driven) Answer(resp kmsg.Response, err error) {
	d.l.tellTrouble(d.l.answered(d.asked, d.req, resp, err))
}
