package broker

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

// isrByController changes ISRs by AlterPartition requests to the controller (KIP-497), as inter.broker.protocol.version 2.7-IV2 and later wants it.
//
// One request is in flight at a time and carries everything that was asked meanwhile. A request without an answer, or refused as a whole, is sent again: the controller compares
// the partition epoch, and answers a change that already happened with success, so repeating is safe.
type isrByController struct {
	ask         func(context.Context, kmsg.Request, int16) (kmsg.Response, error)
	brokerID    int32
	brokerEpoch func() int64
	topicIDs    bool
	log         *logrus.Entry

	wake   chan struct{}
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu struct {
		sync.Mutex
		waiting map[commitlog.TopicPartition]isrItem
	}
}

type isrItem struct {
	partition.ISRChange
	done func(partition.ISRChanged, error)
}

const isrRetry = 50 * time.Millisecond

func newISRByController(ask func(context.Context, kmsg.Request, int16) (kmsg.Response, error), brokerID int32, brokerEpoch func() int64, topicIDs bool, log *logrus.Entry) *isrByController {
	c := &isrByController{ask: ask, brokerID: brokerID, brokerEpoch: brokerEpoch, topicIDs: topicIDs, log: log, wake: make(chan struct{}, 1)}
	c.mu.waiting = map[commitlog.TopicPartition]isrItem{}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.done.Go(c.run)
	return c
}

// ChangeISR implements partition.ISRChanger.
func (c *isrByController) ChangeISR(req partition.ISRChange, done func(partition.ISRChanged, error)) {
	c.mu.Lock()
	earlier, twice := c.mu.waiting[req.TP]
	c.mu.waiting[req.TP] = isrItem{req, done}
	c.mu.Unlock()
	if twice {
		earlier.done(partition.ISRChanged{PartitionEpoch: partition.None}, kerr.OperationNotAttempted)
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *isrByController) close() {
	c.cancel()
	c.done.Wait()
}

func (c *isrByController) run() {
	defer func() { c.finish(c.take(), context.Canceled) }()
	for {
		select {
		case <-c.wake:
		case <-c.ctx.Done():
			return
		}
		for items := c.take(); len(items) > 0; items = c.take() {
			if err := c.send(items); err != nil {
				c.log.WithError(err).Debug("asking the controller for new ISRs; will ask again")
				c.putBack(items)
				select {
				case <-time.After(isrRetry):
				case <-c.ctx.Done():
					return
				}
			}
		}
	}
}

func (c *isrByController) take() []isrItem {
	c.mu.Lock()
	defer c.mu.Unlock()
	items := make([]isrItem, 0, len(c.mu.waiting))
	for _, i := range c.mu.waiting {
		items = append(items, i)
	}
	clear(c.mu.waiting)
	return items
}

// putBack keeps items for the next request, unless the partition has asked anew since.
func (c *isrByController) putBack(items []isrItem) {
	var overtaken []isrItem
	c.mu.Lock()
	for _, i := range items {
		if _, newer := c.mu.waiting[i.TP]; newer {
			overtaken = append(overtaken, i)
		} else {
			c.mu.waiting[i.TP] = i
		}
	}
	c.mu.Unlock()
	c.finish(overtaken, kerr.OperationNotAttempted)
}

func (c *isrByController) finish(items []isrItem, err error) {
	for _, i := range items {
		i.done(partition.ISRChanged{PartitionEpoch: partition.None}, err)
	}
}

// send asks for the changes and reports each; an error means that nothing was reported and all are to be sent again.
func (c *isrByController) send(items []isrItem) error {
	req := kmsg.NewPtrAlterPartitionRequest()
	req.BrokerID, req.BrokerEpoch = c.brokerID, c.brokerEpoch()
	limit := int16(3)
	for _, i := range items {
		if !c.topicIDs || i.TopicID == (commitlog.TopicID{}) {
			limit = 1 // by name
		}
	}
	topics := map[string]int{}
	names := map[[16]byte]string{}
	for _, i := range items {
		at, known := topics[i.TP.Topic]
		if !known {
			at = len(req.Topics)
			topics[i.TP.Topic] = at
			names[i.TopicID] = i.TP.Topic
			t := kmsg.NewAlterPartitionRequestTopic()
			t.Topic, t.TopicID = i.TP.Topic, i.TopicID
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewAlterPartitionRequestTopicPartition()
		p.Partition, p.LeaderEpoch, p.PartitionEpoch = i.TP.Partition, i.LeaderEpoch, i.PartitionEpoch
		if i.Recovering {
			p.LeaderRecoveryState = 1
		}
		for _, m := range i.ISR {
			p.NewISR = append(p.NewISR, m.ID)
			e := kmsg.NewAlterPartitionRequestTopicPartitionNewEpochISR()
			e.BrokerID, e.BrokerEpoch = m.ID, m.BrokerEpoch
			p.NewEpochISR = append(p.NewEpochISR, e)
		}
		req.Topics[at].Partitions = append(req.Topics[at].Partitions, p)
	}

	answer, err := c.ask(c.ctx, req, limit)
	if err != nil {
		return err
	}
	resp := answer.(*kmsg.AlterPartitionResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return err
	}
	asked := map[commitlog.TopicPartition]isrItem{}
	for _, i := range items {
		asked[i.TP] = i
	}
	for _, t := range resp.Topics {
		name := t.Topic
		if resp.Version >= 2 {
			name = names[t.TopidID] // the library's spelling
		}
		for _, p := range t.Partitions {
			tp := commitlog.TopicPartition{Topic: name, Partition: p.Partition}
			i, ok := asked[tp]
			if !ok {
				continue
			}
			delete(asked, tp)
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				i.done(partition.ISRChanged{PartitionEpoch: partition.None}, err)
				continue
			}
			i.done(partition.ISRChanged{LeaderID: p.LeaderID, LeaderEpoch: p.LeaderEpoch, ISR: p.ISR, PartitionEpoch: p.PartitionEpoch, Recovering: p.LeaderRecoveryState == 1}, nil)
		}
	}
	for _, i := range asked { // a controller that leaves a partition out has not judged it
		i.done(partition.ISRChanged{PartitionEpoch: partition.None}, kerr.UnknownServerError)
	}
	return nil
}
