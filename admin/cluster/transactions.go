package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/plan"
)

// A transaction hangs when records of it are in a partition and no coordinator will ever write a marker there: readers of committed records wait behind it for ever.

// Transaction is what a coordinator says of a transactional id when it lists them.
type Transaction struct {
	Coordinator int32
	ID, State   string
	Producer    int64
}

// ActiveProducer is a producer of which a partition's leader knows.
type ActiveProducer = kmsg.DescribeProducersResponseTopicPartitionActiveProducer

// OpenTransaction is a producer with an open transaction in a partition.
type OpenTransaction struct {
	Partition plan.Partition
	ActiveProducer
}

// StepError is an error with the step that it ended.
type StepError struct {
	Step string
	Err  error
}

func (e *StepError) Error() string { return e.Step + ": " + e.Err.Error() }

// Unwrap is what went wrong.
func (e *StepError) Unwrap() error { return e.Err }

// need fails unless brokers serve an API.
func (c *Cluster) need(ctx context.Context, request kmsg.Request, name string) error {
	served, err := Serves(ctx, c.client, request.Key())
	if err == nil && !served {
		err = fmt.Errorf("The node does not support %s", name)
	}
	return err
}

// Transactions asks all brokers for the transactional ids that they coordinate: those of some producers, or all; and those with a transaction that runs for longer than some milliseconds, or, when
// that is negative, any.
func (c *Cluster) Transactions(ctx context.Context, producers []int64, longerThan int64) ([]Transaction, error) {
	req := kmsg.NewPtrListTransactionsRequest()
	if err := c.need(ctx, req, "LIST_TRANSACTIONS"); err != nil {
		return nil, err
	}
	req.ProducerIDFilters, req.DurationFilterMillis = producers, longerThan
	var list []Transaction
	for _, shard := range c.client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			return nil, shard.Err
		}
		resp := shard.Resp.(*kmsg.ListTransactionsResponse)
		if longerThan >= 0 && resp.Version < 1 {
			return nil, errors.New("Duration filter can be set only when using API version 1 or higher. If client is connected to an older broker, do not specify duration filter or set duration filter to -1")
		}
		if err := Answered(resp.ErrorCode, nil); err != nil {
			return nil, err
		}
		for _, s := range resp.TransactionStates {
			list = append(list, Transaction{shard.Meta.NodeID, s.TransactionalID, s.TransactionState, s.ProducerID})
		}
	}
	slices.SortFunc(list, func(a, b Transaction) int {
		return cmp.Or(cmp.Compare(a.Coordinator, b.Coordinator), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// Transaction asks the coordinator of a transactional id for its state, and tells which broker that is.
func (c *Cluster) Transaction(ctx context.Context, id string) (kmsg.DescribeTransactionsResponseTransactionState, int32, error) {
	var none kmsg.DescribeTransactionsResponseTransactionState
	req := kmsg.NewPtrDescribeTransactionsRequest()
	if err := c.need(ctx, req, "DESCRIBE_TRANSACTIONS"); err != nil {
		return none, 0, err
	}
	req.TransactionalIDs = []string{id}
	for _, shard := range c.client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			return none, 0, shard.Err
		}
		for _, s := range shard.Resp.(*kmsg.DescribeTransactionsResponse).TransactionStates {
			return s, shard.Meta.NodeID, Answered(s.ErrorCode, nil)
		}
	}
	return none, 0, kerr.TransactionalIDNotFound
}

// PartitionsOfTransaction are the partitions that a transaction's coordinator will write markers to, in order.
func PartitionsOfTransaction(s kmsg.DescribeTransactionsResponseTransactionState) []plan.Partition {
	var list []plan.Partition
	for _, topic := range s.Topics {
		for _, id := range topic.Partitions {
			list = append(list, plan.Partition{Topic: topic.Topic, ID: id})
		}
	}
	slices.SortFunc(list, plan.Partition.Compare)
	return list
}

// Producers asks for the producers of partitions: their leaders, or one broker.
func (c *Cluster) Producers(ctx context.Context, partitions []plan.Partition, broker *int32) (map[plan.Partition][]ActiveProducer, error) {
	req := kmsg.NewPtrDescribeProducersRequest()
	if err := c.need(ctx, req, "DESCRIBE_PRODUCERS"); err != nil {
		return nil, err
	}
	byTopic := map[string]int{}
	for _, p := range partitions {
		if _, known := byTopic[p.Topic]; !known {
			byTopic[p.Topic] = len(req.Topics)
			t := kmsg.NewDescribeProducersRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		t := &req.Topics[byTopic[p.Topic]]
		t.Partitions = append(t.Partitions, p.ID)
	}
	var shards []kgo.ResponseShard
	if broker != nil {
		resp, err := c.client.Broker(int(*broker)).Request(ctx, req)
		shards = []kgo.ResponseShard{{Resp: resp, Err: err}}
	} else {
		shards = c.client.RequestSharded(ctx, req)
	}
	active := map[plan.Partition][]ActiveProducer{}
	for _, shard := range shards {
		if shard.Err != nil {
			return nil, shard.Err
		}
		for _, topic := range shard.Resp.(*kmsg.DescribeProducersResponse).Topics {
			for _, p := range topic.Partitions {
				if err := Answered(p.ErrorCode, p.ErrorMessage); err != nil {
					return nil, err
				}
				active[plan.Partition{Topic: topic.Topic, ID: p.Partition}] = p.ActiveProducers
			}
		}
	}
	return active, nil
}

// Hanging finds transactions to which nothing was written for longer than any may last, and for which no coordinator is going to write a marker. Leaders are asked, or one broker, for so many
// partitions at a time. Errors are *StepError.
func (c *Cluster) Hanging(ctx context.Context, partitions []plan.Partition, broker *int32, now time.Time, longerThan time.Duration) ([]OpenTransaction, error) {
	var open []OpenTransaction
	for some := range slices.Chunk(partitions, partitionBatch) {
		active, err := c.Producers(ctx, some, broker)
		if err != nil {
			where := "Optional.empty"
			if broker != nil {
				where = fmt.Sprintf("Optional[%d]", *broker)
			}
			return nil, &StepError{fmt.Sprintf("Failed to describe producers for %d partitions on broker %s", len(some), where), err}
		}
		for _, p := range some {
			for _, a := range active[p] {
				if a.CurrentTxnStartOffset >= 0 && now.UnixMilli()-a.LastTimestamp > longerThan.Milliseconds() {
					open = append(open, OpenTransaction{p, a})
				}
			}
		}
	}
	return c.withoutCoordinator(ctx, open)
}

// withoutCoordinator leaves those open transactions for which no coordinator is going to write a marker: it does not know the producer, or that this partition is part of its transaction.
func (c *Cluster) withoutCoordinator(ctx context.Context, open []OpenTransaction) ([]OpenTransaction, error) {
	if len(open) == 0 {
		return nil, nil
	}
	var producers []int64
	for _, o := range open {
		if !slices.Contains(producers, o.ProducerID) {
			producers = append(producers, o.ProducerID)
		}
	}
	listed, err := c.Transactions(ctx, producers, -1)
	if err != nil {
		return nil, &StepError{fmt.Sprintf("Failed to list transactions for %d producers", len(producers)), err}
	}
	awaited := map[int64][]plan.Partition{}
	for _, l := range listed {
		s, _, err := c.Transaction(ctx, l.ID)
		switch {
		case errors.Is(err, kerr.TransactionalIDNotFound):
		case err != nil:
			return nil, &StepError{fmt.Sprintf("Failed to describe %d transactions", len(listed)), err}
		default:
			awaited[l.Producer] = PartitionsOfTransaction(s)
		}
	}
	return slices.DeleteFunc(open, func(o OpenTransaction) bool { return slices.Contains(awaited[o.ProducerID], o.Partition) }), nil
}
