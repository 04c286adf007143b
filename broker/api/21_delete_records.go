package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

// DeleteRecords, key 21, versions 0 to 2.
//
//	1  throttled after the answer instead of before it (no change here)
//	2  flexible
//
// Offset -1 is the high watermark. The answer waits until every live replica
// has taken over the new log start.
func (d *Dispatcher) deleteRecords(c *call, req *kmsg.DeleteRecordsRequest) {
	snapshot := d.deps.Metadata.Load()
	offsets := make(map[commitlog.TopicPartition]int64)
	refused := make(map[commitlog.TopicPartition]partition.DeleteRecordsResult)
	rights := d.topicRights(c, kmsg.ACLOperationDelete)
	for i := range req.Topics {
		t := &req.Topics[i]
		for _, p := range t.Partitions {
			tp := commitlog.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			switch {
			case !rights.allow(t.Topic):
				refused[tp] = partition.DeleteRecordsResult{LowWatermark: -1, Err: kerr.TopicAuthorizationFailed}
			case snapshot.Partition(t.Topic, p.Partition) == nil:
				refused[tp] = partition.DeleteRecordsResult{LowWatermark: -1, Err: kerr.UnknownTopicOrPartition}
			case isInternal(t.Topic):
				refused[tp] = partition.DeleteRecordsResult{LowWatermark: -1, Err: kerr.InvalidTopicException}
			default:
				offsets[tp] = p.Offset
			}
		}
	}
	done := func(results map[commitlog.TopicPartition]partition.DeleteRecordsResult) {
		c.answer(deleteRecordsAnswer(req, func(tp commitlog.TopicPartition) partition.DeleteRecordsResult {
			if r, ok := refused[tp]; ok {
				return r
			}
			r := results[tp]
			d.faults("deleting records", r.Err)
			r.Err = placed(snapshot, tp.Topic, tp.Partition, r.Err)
			return r
		}))
	}
	if len(offsets) == 0 {
		done(nil)
		return
	}
	d.deps.Replicas.DeleteRecords(offsets, millis(req.TimeoutMillis), done)
}

// deleteRecordsAnswer has a row for each partition once, in the request's
// order.
func deleteRecordsAnswer(req *kmsg.DeleteRecordsRequest, result func(commitlog.TopicPartition) partition.DeleteRecordsResult) *kmsg.DeleteRecordsResponse {
	resp := kmsg.NewPtrDeleteRecordsResponse()
	topicAt := make(map[string]int)
	told := make(map[commitlog.TopicPartition]struct{})
	for i := range req.Topics {
		topic := req.Topics[i].Topic
		for _, p := range req.Topics[i].Partitions {
			tp := commitlog.TopicPartition{Topic: topic, Partition: p.Partition}
			if _, twice := told[tp]; twice {
				continue
			}
			told[tp] = struct{}{}
			at, found := topicAt[topic]
			if !found {
				at = len(resp.Topics)
				topicAt[topic] = at
				t := kmsg.NewDeleteRecordsResponseTopic()
				t.Topic = topic
				resp.Topics = append(resp.Topics, t)
			}
			r := result(tp)
			row := kmsg.NewDeleteRecordsResponseTopicPartition()
			row.Partition, row.LowWatermark = p.Partition, r.LowWatermark
			row.ErrorCode, _ = code(r.Err)
			resp.Topics[at].Partitions = append(resp.Topics[at].Partitions, row)
		}
	}
	return resp
}
