package tools

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// A transaction hangs when records of it are in a partition and no coordinator will ever write a marker there: readers of committed records wait behind it for ever. This file finds such
// transactions and, on demand, writes an abort marker in the coordinator's place.

// abortAsked says which transaction of a partition is to be aborted.
type abortAsked struct {
	partition        plan.Partition
	producer         int64
	epoch            int16
	coordinatorEpoch int32
}

func (a abortAsked) String() string {
	return fmt.Sprintf("AbortTransactionSpec(topicPartition=%v, producerId=%d, producerEpoch=%d, coordinatorEpoch=%d)", a.partition, a.producer, a.epoch, a.coordinatorEpoch)
}

func (t transactionTool) abort() error {
	a, err := t.readAbort()
	if err != nil {
		return err
	}
	if err := t.writeAbort(a); err != nil {
		return transactionsFailed("Failed to abort transaction "+a.String(), abortRefused(a, err))
	}
	return nil
}

func (t transactionTool) readAbort() (abortAsked, error) {
	a := abortAsked{partition: t.partition()}
	if t.call.Has("start-offset") {
		return t.transactionFrom(a.partition, t.call.Int("start-offset"))
	}
	if !t.call.Has("producer-id") {
		return a, errors.New("The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)")
	}
	for _, needed := range []string{"producer-epoch", "coordinator-epoch"} {
		if !t.call.Has(needed) {
			return a, errors.New("Missing required argument --" + needed)
		}
	}
	// A producer whose coordinator never wrote a marker is listed with epoch -1; no coordinator is older than 0.
	a.producer, a.epoch, a.coordinatorEpoch = t.call.Int("producer-id"), int16(t.call.Int("producer-epoch")), max(int32(t.call.Int("coordinator-epoch")), 0)
	return a, nil
}

// transactionFrom finds the open transaction of a partition that begins at an offset.
func (t transactionTool) transactionFrom(p plan.Partition, start int64) (abortAsked, error) {
	active, err := cluster.New(t.client).Producers(t.ctx, []plan.Partition{p}, nil)
	if err != nil {
		return abortAsked{}, transactionsFailed(fmt.Sprintf("Failed to validate producer state for partition %v", p), err)
	}
	for _, a := range active[p] {
		if start >= 0 && a.CurrentTxnStartOffset == start {
			return abortAsked{p, a.ProducerID, int16(a.ProducerEpoch), max(a.CoordinatorEpoch, 0)}, nil
		}
	}
	return abortAsked{}, fmt.Errorf("Could not find any open transactions starting at offset %d on partition %v", start, p)
}

func (t transactionTool) writeAbort(a abortAsked) error {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	m.ProducerID, m.ProducerEpoch, m.CoordinatorEpoch = a.producer, a.epoch, a.coordinatorEpoch
	topic := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	topic.Topic, topic.Partitions = a.partition.Topic, []int32{a.partition.ID}
	m.Topics = append(m.Topics, topic)
	req.Markers = append(req.Markers, m)
	for _, shard := range t.client.RequestSharded(t.ctx, req) {
		if shard.Err != nil {
			return shard.Err
		}
		for _, marker := range shard.Resp.(*kmsg.WriteTxnMarkersResponse).Markers {
			for _, topic := range marker.Topics {
				for _, p := range topic.Partitions {
					if err := answered(p.ErrorCode, nil); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// abortRefused says why a partition's leader refused a marker.
func abortRefused(a abortAsked, err error) error {
	for code, text := range map[*kerr.Error]string{
		kerr.ClusterAuthorizationFailed:   "WriteTxnMarkers request with %v failed due to cluster authorization error",
		kerr.InvalidProducerEpoch:         "WriteTxnMarkers request with %v failed due an invalid producer epoch",
		kerr.TransactionCoordinatorFenced: "WriteTxnMarkers request with %v failed since the provided coordinator epoch " + strconv.Itoa(int(a.coordinatorEpoch)) + " has been fenced by the active coordinator",
	} {
		if errors.Is(err, code) {
			return fmt.Errorf(text, a)
		}
	}
	var code *kerr.Error
	if errors.As(err, &code) {
		return fmt.Errorf("WriteTxnMarkers request with %v failed due to unexpected error: %s", a, code.Description)
	}
	return err
}

func (t transactionTool) findHanging() error {
	broker := t.broker()
	switch {
	case !t.call.Has("topic") && broker == nil:
		return errors.New("The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search")
	case t.call.Has("partition") && !t.call.Has("topic"):
		return errors.New("The --partition argument requires --topic to be provided")
	}
	partitions, err := t.searched(broker)
	if err != nil {
		return err
	}
	now := time.Now()
	hanging, err := cluster.New(t.client).Hanging(t.ctx, partitions, broker, now, time.Duration(t.call.Int("max-transaction-timeout"))*time.Minute)
	var step *cluster.StepError
	if errors.As(err, &step) {
		err = transactionsFailed(step.Step, step.Err)
	}
	if err != nil {
		return err
	}
	rows := [][]string{{"Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp", "Duration(min)"}}
	for _, o := range hanging {
		rows = append(rows, []string{o.Partition.Topic, strconv.Itoa(int(o.Partition.ID)), strconv.FormatInt(o.ProducerID, 10), strconv.Itoa(int(o.ProducerEpoch)), strconv.Itoa(int(o.CoordinatorEpoch)),
			strconv.FormatInt(o.CurrentTxnStartOffset, 10), strconv.FormatInt(o.LastTimestamp, 10), strconv.FormatInt((now.UnixMilli()-o.LastTimestamp)/time.Minute.Milliseconds(), 10)})
	}
	t.table(rows)
	return nil
}

// searched lists the partitions that are searched: one, those of a topic, or those of all topics; of these, where a broker is named, the ones that it has a replica of.
func (t transactionTool) searched(broker *int32) ([]plan.Partition, error) {
	if t.call.Has("partition") {
		return []plan.Partition{t.partition()}, nil
	}
	req := kmsg.NewPtrMetadataRequest()
	failed := "Failed to list topics"
	if t.call.Has("topic") {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(t.call.Value("topic"))
		req.Topics, failed = append(req.Topics, topic), "Failed to describe 1 topics"
	}
	resp, err := req.RequestWith(t.ctx, t.client)
	if err != nil {
		return nil, transactionsFailed(failed, err)
	}
	var list []plan.Partition
	for _, topic := range resp.Topics {
		if err := answered(topic.ErrorCode, nil); err != nil {
			return nil, transactionsFailed(failed, err)
		}
		for _, p := range topic.Partitions {
			if broker == nil || slices.Contains(p.Replicas, *broker) {
				list = append(list, plan.Partition{Topic: *topic.Topic, ID: p.Partition})
			}
		}
	}
	slices.SortFunc(list, plan.Partition.Compare)
	return list, nil
}
