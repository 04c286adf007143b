package fetcher

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

// loop is the goroutine of one connection to one leader.
type loop struct {
	cfg    *Config
	key    key
	link   Transport
	log    *logrus.Entry
	cancel context.CancelFunc
	ended  chan struct{}
	told   chan struct{} // partitions came or went

	// mu guards the core. It is held while logs are appended to and cut, so that
	// after a removal nothing more happens to a log; never during a request.
	mu struct {
		sync.Mutex
		core *core
	}
}

func newLoop(cfg *Config, k key, v versions, link Transport) *loop {
	l := idleLoop(cfg, k, v, link)
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	go l.run(ctx)
	return l
}

// idleLoop is a loop without its goroutine.
func idleLoop(cfg *Config, k key, v versions, link Transport) *loop {
	l := &loop{
		cfg: cfg, key: k, link: link, ended: make(chan struct{}), told: make(chan struct{}, 1),
		log: cfg.Log.WithFields(logrus.Fields{"leader": k.leader.ID, "fetcher": k.number}),
	}
	l.mu.core = newCore(v, cfg.BrokerID, cfg.Backoff, limits{
		maxBytes: cfg.MaxBytes, partitionMax: cfg.PartitionMax, minBytes: cfg.MinBytes, maxWait: cfg.MaxWait,
	})
	return l
}

// add gives partitions to the loop.
func (l *loop) add(from []partition.FetchFrom) {
	l.mu.Lock()
	for _, f := range from {
		s, err := f.Partition.FollowerState(f.LeaderEpoch)
		if err != nil {
			// The next order for this partition brings it again.
			l.log.WithField("partition", f.Partition.TP().String()).WithError(err).Warn("not fetched")
			continue
		}
		l.mu.core.add(f.Partition, f.Partition.TP(), f.TopicID, f.LeaderEpoch, s)
	}
	l.mu.Unlock()
	l.tell()
}

// remove takes partitions away; none is being worked on when it returns. It
// tells how many are left.
func (l *loop) remove(tps []commitlog.TopicPartition) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, tp := range tps {
		l.mu.core.remove(tp)
	}
	return len(l.mu.core.parts)
}

// maxLag is how far the furthest partition is behind its leader.
func (l *loop) maxLag() (lag int64, partitions int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.mu.core.parts {
		lag = max(lag, p.lag)
	}
	return lag, len(l.mu.core.parts)
}

func (l *loop) tell() {
	select {
	case l.told <- struct{}{}:
	default:
	}
}

func (l *loop) stop() {
	l.cancel()
	l.link.Close()
	<-l.ended
}

func (l *loop) run(ctx context.Context) {
	defer close(l.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		l.mu.Lock()
		a := l.mu.core.next(l.cfg.Now())
		l.mu.Unlock()
		switch {
		case a.sleep != nil:
			sleep := *a.sleep
			if sleep < 0 {
				sleep = time.Hour
			}
			timer.Reset(sleep)
			select {
			case <-ctx.Done():
			case <-timer.C:
			case <-l.told:
			}
		case a.resync != nil:
			l.resync(a.resync)
		case a.cut != nil:
			l.carryOut(a.cut)
		default:
			l.ask(ctx, a)
		}
	}
}

// resync reads where logs stand after something went wrong with them.
func (l *loop) resync(ps []*part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range ps {
		if l.mu.core.parts[p.tp] != p {
			continue
		}
		s, err := p.handle.FollowerState(p.leaderEpoch)
		if err != nil {
			l.drop(p, err)
			continue
		}
		l.mu.core.start(p, s)
	}
}

// drop gives up a partition until an order brings it again: its log is offline,
// or it follows in another epoch by now.
func (l *loop) drop(p *part, err error) {
	l.mu.core.remove(p.tp)
	if !errors.Is(err, partition.ErrStale) {
		l.log.WithField("partition", p.tp.String()).WithError(err).Error("partition is not fetched any more")
	}
}

// ask does a round with the leader.
func (l *loop) ask(ctx context.Context, a action) {
	req := l.request(a)
	if a.fetch == nil {
		answer, err := l.link.Do(ctx, req)
		if bad := l.answered(a, req, answer, err); ctx.Err() == nil {
			l.tellTrouble(bad)
		}
		return
	}
	resp, release, err := l.link.Fetch(ctx, a.fetch.req)
	if bad := l.answered(a, req, resp, err); ctx.Err() == nil {
		l.tellTrouble(bad)
	}
	if err == nil && release != nil {
		release()
	}
}

// request is what an action asks the leader.
func (l *loop) request(a action) kmsg.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case a.epochs != nil:
		return l.mu.core.epochRequest(a.epochs)
	case a.locate != nil:
		return l.mu.core.offsetsRequest(a.locate, a.latest)
	}
	req := a.fetch.req
	if l.cfg.BrokerEpoch != nil && req.Version >= replicaStateVersion {
		req.ReplicaState.Epoch = l.cfg.BrokerEpoch()
	}
	return req
}

// answered applies an answer to the core and carries out what follows, under one
// hold of the lock: a partition removed before it is not touched, one removed
// after it has everything behind it.
func (l *loop) answered(a action, asked kmsg.Request, answer kmsg.Response, err error) []trouble {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, c := l.cfg.Now(), l.mu.core
	var ops []op
	var bad []trouble
	switch req := asked.(type) {
	case *kmsg.OffsetForLeaderEpochRequest:
		resp, ok := answer.(*kmsg.OffsetForLeaderEpochResponse)
		ops, bad = c.answerEpochs(now, req, resp, orNoAnswer(err, ok))
	case *kmsg.ListOffsetsRequest:
		resp, ok := answer.(*kmsg.ListOffsetsResponse)
		ops, bad = c.answerOffsets(now, req, a.latest, resp, orNoAnswer(err, ok))
	default:
		resp, ok := answer.(*kmsg.FetchResponse)
		ops, bad = c.answerFetch(now, a.fetch, resp, orNoAnswer(err, ok))
	}
	l.carryOutLocked(ops)
	return bad
}

func orNoAnswer(err error, answered bool) error {
	if err == nil && !answered {
		return errNoAnswer
	}
	return err
}

// tellTrouble logs what the leader said, once for many partitions.
func (l *loop) tellTrouble(bad []trouble) {
	for i := 0; i < len(bad); {
		j := i + 1
		for j < len(bad) && bad[j].err.Error() == bad[i].err.Error() {
			j++
		}
		entry := l.log.WithError(bad[i].err).WithField("partition", bad[i].tp.String())
		if j-i > 1 {
			entry = entry.WithField("partitions", j-i)
		}
		entry.Warn("fetching from the leader failed; will go on after a pause")
		i = j
	}
}

func (l *loop) carryOut(ops []op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.carryOutLocked(ops)
}

// carryOutLocked does what the core wants with the logs. A log that fails does
// not keep the others from going on.
func (l *loop) carryOutLocked(ops []op) {
	took := false
	for i := range ops {
		o := &ops[i]
		if l.mu.core.parts[o.part.tp] != o.part || o.part.leaderEpoch != o.epoch {
			continue
		}
		s, finished, err := l.do(o)
		entry := l.log.WithField("partition", o.part.tp.String())
		switch {
		case errors.Is(err, partition.ErrStale), errors.Is(err, kerr.KafkaStorageError), errors.Is(err, kerr.NotLeaderForPartition):
			l.drop(o.part, err)
			continue
		case err != nil:
			entry.WithError(err).Errorf("log operation at offset %d failed; will be tried again", o.offset)
		case o.kind != appendRecords && s.End != o.part.logEnd:
			entry.Infof("log was cut for leader epoch %d: it ends at %d now (leader's epoch %d ends at %d)", o.epoch, s.End, o.leaderFound, o.leaderEnd)
		}
		l.mu.core.done(l.cfg.Now(), o, s, finished, err)
		if o.kind == appendRecords && l.cfg.Throttle != nil && len(o.fetched.Records) > 0 && o.part.handle.FollowerNamed() {
			l.cfg.Throttle.Take(l.cfg.Now(), int64(len(o.fetched.Records)))
			took = true
		}
	}
	if took {
		l.hold()
	}
}

// hold leaves out what the throttle holds back, once something it counts was fetched.
func (l *loop) hold() {
	now := l.cfg.Now()
	if wait := l.cfg.Throttle.Wait(now); wait > 0 {
		l.mu.core.hold(now.Add(wait), func(p *part) bool { return p.handle.FollowerNamed() })
	}
}

// do carries out one operation; finished tells that the logs agree afterwards.
func (l *loop) do(o *op) (s partition.FollowerState, finished bool, err error) {
	p := o.part.handle
	switch o.kind {
	case appendRecords:
		s, err = p.AppendFetched(o.fetched)
		return s, true, err
	case cutAt:
		s, err = p.TruncateTo(o.epoch, o.offset)
		return s, o.finished, err
	case emptyAt:
		s, err = p.TruncateFully(o.epoch, o.offset)
		return s, true, err
	}
	if s, err = p.FollowerState(o.epoch); err != nil {
		return s, false, err
	}
	ownFound, ownEnd := int32(-1), int64(-1)
	if o.leaderFound >= 0 {
		if ownFound, ownEnd, err = p.EndOffsetForEpoch(o.epoch, o.leaderFound); err != nil {
			return s, false, err
		}
	}
	offset, finished := cutPoint(o.leaderFound, o.leaderEnd, ownFound, ownEnd, s.End, min(o.offset, s.End))
	s, err = p.TruncateTo(o.epoch, offset)
	return s, finished, err
}
