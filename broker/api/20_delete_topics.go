package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/metadata"
)

// DeleteTopics, key 20, versions 0 to 6, to the controller.
//
//	1  throttle time
//	3  TOPIC_DELETION_DISABLED (before: INVALID_REQUEST)
//	4  flexible
//	5  error messages, which Kafka leaves empty here; THROTTLING_QUOTA_EXCEEDED
//	   (KIP-599); before, the client has to pause
//	6  topics by id
//
// The answer is given when the topics are gone from this broker's metadata, or
// when the time is over, with REQUEST_TIMED_OUT: the deletion goes on all the
// same. A timeout of zero or less does not wait and is always
// REQUEST_TIMED_OUT, as in Kafka.
func (d *Dispatcher) deleteTopics(c *call, req *kmsg.DeleteTopicsRequest) {
	op := &deleteCall{call: c, d: d, req: req, resp: kmsg.NewPtrDeleteTopicsResponse(), mutations: c.mutations(5)}
	topics := deletedTopics(req)
	switch {
	case !d.deps.Controller.IsActive():
		op.refuse(topics, kerr.NotController)
		return
	case !d.cfg.DeleteTopics && req.Version < 3:
		op.refuse(topics, kerr.InvalidRequest)
		return
	case !d.cfg.DeleteTopics:
		op.refuse(topics, kerr.TopicDeletionDisabled)
		return
	}
	for i := range topics {
		if topics[i].Topic != nil && topics[i].TopicID != ([16]byte{}) {
			op.refuse(topics, kerr.InvalidRequest)
			return
		}
	}
	snapshot := d.deps.Metadata.Load()
	names := op.permitted(op.names(topics, snapshot), snapshot)
	if len(names) == 0 {
		op.answerFor(op.resp, op.owed())
		return
	}
	d.work(c, func(ctx context.Context) { op.marked(d.deps.Admin.DeleteTopics(ctx, names)) })
}

type deleteCall struct {
	*call
	d    *Dispatcher
	req  *kmsg.DeleteTopicsRequest
	resp *kmsg.DeleteTopicsResponse
	mutations
}

// deletedTopics lists what is to be deleted in the form of version 6.
func deletedTopics(req *kmsg.DeleteTopicsRequest) []kmsg.DeleteTopicsRequestTopic {
	if req.Version >= 6 {
		return req.Topics
	}
	topics := make([]kmsg.DeleteTopicsRequestTopic, len(req.TopicNames))
	for i := range req.TopicNames {
		topics[i].Topic = &req.TopicNames[i]
	}
	return topics
}

// refuse answers every topic with one error.
func (op *deleteCall) refuse(topics []kmsg.DeleteTopicsRequestTopic, err *kerr.Error) {
	for i := range topics {
		row := kmsg.NewDeleteTopicsResponseTopic()
		row.Topic, row.TopicID, row.ErrorCode = topics[i].Topic, topics[i].TopicID, err.Code
		op.resp.Topics = append(op.resp.Topics, row)
	}
	op.answer(op.resp)
}

// names lists what there is to delete; rows of the rest have their errors.
func (op *deleteCall) names(topics []kmsg.DeleteTopicsRequestTopic, snapshot *metadata.Snapshot) []string {
	listed := make(map[string]struct{}, len(topics))
	var names []string
	for i := range topics {
		row := kmsg.NewDeleteTopicsResponseTopic()
		row.Topic, row.TopicID = topics[i].Topic, topics[i].TopicID
		var t *metadata.Topic
		if row.TopicID != ([16]byte{}) {
			if t = snapshot.TopicByID(row.TopicID); t != nil {
				row.Topic = &t.Name
			} else {
				row.ErrorCode = kerr.UnknownTopicID.Code
			}
		} else if t = snapshot.Topic(stringOrEmpty(row.Topic)); t == nil {
			row.ErrorCode = kerr.UnknownTopicOrPartition.Code
		}
		if op.refused(&row) {
			t = nil
		}
		if t != nil {
			if _, twice := listed[t.Name]; !twice {
				listed[t.Name] = struct{}{}
				names = append(names, t.Name)
			}
		}
		op.resp.Topics = append(op.resp.Topics, row)
	}
	return names
}

// permitted keeps the names of topics whose partitions the client's limit still
// allows to delete; rows of the others have that error.
func (op *deleteCall) permitted(names []string, snapshot *metadata.Snapshot) []string {
	kept := names[:0]
	for _, name := range names {
		if err := op.permit(len(snapshot.Topic(name).Partitions)); err != nil {
			op.setError(name, err)
			continue
		}
		kept = append(kept, name)
	}
	return kept
}

// refused tells whether the client may not delete the topic of a row. Who asks by
// an id, and may not describe the topic, does not learn its name either.
func (op *deleteCall) refused(row *kmsg.DeleteTopicsResponseTopic) bool {
	if row.Topic == nil {
		return false
	}
	hidden := row.TopicID != ([16]byte{}) && !op.d.mayTopic(op.call, kmsg.ACLOperationDescribe, *row.Topic)
	if !hidden && op.d.mayTopic(op.call, kmsg.ACLOperationDelete, *row.Topic) {
		return false
	}
	row.ErrorCode = kerr.TopicAuthorizationFailed.Code
	if hidden {
		row.Topic = nil
	}
	return true
}

// marked takes over what became of the marks, and waits for the topics to go.
func (op *deleteCall) marked(results []admin.DeleteResult) {
	waiting := false
	for i := range results {
		op.d.faults("deleting "+results[i].Name, results[i].Err)
		waiting = waiting || results[i].Err == nil
		op.setError(results[i].Name, results[i].Err)
	}
	if !waiting {
		op.answerFor(op.resp, op.owed())
		return
	}
	if op.req.TimeoutMillis <= 0 {
		op.finish(func(string) bool { return false })
		return
	}
	op.d.waits.await(millis(op.req.TimeoutMillis), op.gone, func(s *metadata.Snapshot) {
		op.finish(func(name string) bool { return s.Topic(name) == nil })
	})
}

func (op *deleteCall) setError(name string, err error) {
	for i := range op.resp.Topics {
		if row := &op.resp.Topics[i]; row.ErrorCode == 0 && *row.Topic == name {
			row.ErrorCode, _ = code(err)
		}
	}
}

func (op *deleteCall) gone(s *metadata.Snapshot) bool {
	for i := range op.resp.Topics {
		if row := &op.resp.Topics[i]; row.ErrorCode == 0 && s.Topic(*row.Topic) != nil {
			return false
		}
	}
	return true
}

func (op *deleteCall) finish(gone func(name string) bool) {
	for i := range op.resp.Topics {
		if row := &op.resp.Topics[i]; row.ErrorCode == 0 && !gone(*row.Topic) {
			row.ErrorCode = kerr.RequestTimedOut.Code
		}
	}
	op.answerFor(op.resp, op.owed())
}
