package broker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/partition"
	"barnabas/zkstate"
)

// isrByZooKeeper changes ISRs by writing the partition's state znode, conditional on its version, and tells the controller by a notification: the way before
// inter.broker.protocol.version 2.7-IV2. Notifications are gathered as Kafka gathers them, since each makes the controller update every broker.
type isrByZooKeeper struct {
	zk  *zkstate.Client
	log *logrus.Entry

	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu struct {
		sync.Mutex
		changed              []zkstate.TopicPartition
		lastChange, lastTold time.Time
	}
}

// How often notifications are considered, how long changes must have been quiet, and how long they may be held back.
const (
	isrTellEvery = 2500 * time.Millisecond
	isrQuiet     = 5 * time.Second
	isrHoldMax   = 60 * time.Second
)

func newISRByZooKeeper(zk *zkstate.Client, log *logrus.Entry) *isrByZooKeeper {
	c := &isrByZooKeeper{zk: zk, log: log}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.done.Go(c.tell)
	return c
}

// ChangeISR implements partition.ISRChanger.
func (c *isrByZooKeeper) ChangeISR(req partition.ISRChange, done func(partition.ISRChanged, error)) {
	c.done.Go(func() { done(c.change(req)) })
}

func (c *isrByZooKeeper) close() {
	c.cancel()
	c.done.Wait()
}

func (c *isrByZooKeeper) change(req partition.ISRChange) (partition.ISRChanged, error) {
	refused := partition.ISRChanged{PartitionEpoch: partition.None}
	path := zkstate.PartitionStatePath(req.TP.Topic, req.TP.Partition)
	want := zkstate.PartitionState{Leader: req.LeaderID, LeaderEpoch: req.LeaderEpoch, ControllerEpoch: req.ControllerEpoch}
	for _, m := range req.ISR {
		want.ISR = append(want.ISR, m.ID)
	}
	r, err := c.zk.One(c.ctx, zkstate.Set(path, want.Encode(), req.PartitionEpoch))
	version := r.Stat.Version
	switch {
	case err == nil:
	case errors.Is(err, zkstate.ErrBadVersion), errors.Is(err, zkstate.ErrConnectionLoss):
		// The write may be our own, whose answer was lost: what stands there decides.
		got, readErr := c.zk.One(c.ctx, zkstate.Get(path))
		if readErr != nil {
			return refused, readErr
		}
		state, readErr := zkstate.DecodePartitionState(got.Data)
		if readErr != nil {
			return refused, readErr
		}
		if state.LeaderEpoch != want.LeaderEpoch || state.Leader != want.Leader {
			return refused, kerr.FencedLeaderEpoch
		}
		current := partition.ISRChanged{LeaderID: state.Leader, LeaderEpoch: state.LeaderEpoch, ISR: state.ISR, PartitionEpoch: got.Stat.Version}
		if !slices.Equal(state.ISR, want.ISR) {
			return current, kerr.InvalidUpdateVersion
		}
		version = got.Stat.Version
	default:
		return refused, err
	}
	c.mu.Lock()
	c.mu.changed = append(c.mu.changed, zkstate.TopicPartition{Topic: req.TP.Topic, Partition: req.TP.Partition})
	c.mu.lastChange = time.Now()
	c.mu.Unlock()
	return partition.ISRChanged{LeaderID: want.Leader, LeaderEpoch: want.LeaderEpoch, ISR: want.ISR, PartitionEpoch: version}, nil
}

func (c *isrByZooKeeper) tell() {
	ticker := time.NewTicker(isrTellEvery)
	defer ticker.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case now := <-ticker.C:
			c.mu.Lock()
			changed := c.mu.changed
			due := len(changed) > 0 && (now.Sub(c.mu.lastChange) > isrQuiet || now.Sub(c.mu.lastTold) > isrHoldMax)
			if due {
				c.mu.changed, c.mu.lastTold = nil, now
			}
			c.mu.Unlock()
			if !due {
				continue
			}
			if err := c.zk.NotifyISRChange(c.ctx, changed); err != nil {
				c.log.WithError(err).Warn("telling the controller of changed ISRs; will tell again")
				c.mu.Lock()
				c.mu.changed = append(changed, c.mu.changed...)
				c.mu.Unlock()
			}
		}
	}
}
