package api

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/metadata"
)

// CreateTopics, key 19, versions 0 to 7, to the controller.
//
//	1  validate only; error messages
//	2  throttle time
//	4  partitions and replication factor may be -1: the cluster's defaults (KIP-464)
//	5  flexible; the created topic's layout and configuration (KIP-525)
//	6  THROTTLING_QUOTA_EXCEEDED (KIP-599); before, the client has to pause
//	7  topic ids
//
// The answer is given when every partition of the created topics has a leader
// in this broker's metadata, or when the time is over, with REQUEST_TIMED_OUT
// for the topics that are not ready: they exist all the same. A timeout of zero
// or less does not wait and is always REQUEST_TIMED_OUT, as in Kafka.
func (d *Dispatcher) createTopics(c *call, req *kmsg.CreateTopicsRequest) {
	op := &createCall{call: c, d: d, req: req, resp: kmsg.NewPtrCreateTopicsResponse(), mutations: c.mutations(6)}
	if !d.deps.Controller.IsActive() {
		for i := range req.Topics {
			t := kmsg.NewCreateTopicsResponseTopic()
			t.Topic, t.ErrorCode, t.ErrorMessage = req.Topics[i].Topic, kerr.NotController.Code, new(string)
			t.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
			op.resp.Topics = append(op.resp.Topics, t)
		}
		c.answer(op.resp)
		return
	}
	specs := op.specs(d.deps.Metadata.Load())
	if len(specs) == 0 {
		c.answer(op.resp)
		return
	}
	d.work(c, func(ctx context.Context) {
		op.created(d.deps.Admin.CreateTopics(ctx, specs, req.ValidateOnly))
	})
}

// createCall is a request to create topics; resp has one row per topic asked
// for, in order.
type createCall struct {
	*call
	d    *Dispatcher
	req  *kmsg.CreateTopicsRequest
	resp *kmsg.CreateTopicsResponse
	mutations
}

// metadataTopic is KRaft's own topic, whose name is taken in every mode.
const metadataTopic = "__cluster_metadata"

// specs lists what is left to create after what needs no look at ZooKeeper.
func (op *createCall) specs(snapshot *metadata.Snapshot) []admin.TopicSpec {
	named := make(map[string]int, len(op.req.Topics))
	for i := range op.req.Topics {
		named[op.req.Topics[i].Topic]++
	}
	mayAll := op.d.seesCluster(op.call, kmsg.ACLOperationCreate)
	var specs []admin.TopicSpec
	for i := range op.req.Topics {
		ask := &op.req.Topics[i]
		row := kmsg.NewCreateTopicsResponseTopic()
		row.Topic = ask.Topic
		row.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
		if ask.Topic != metadataTopic && !op.d.sees(op.call, kmsg.ACLOperationDescribeConfigs, kmsg.ACLResourceTypeTopic, ask.Topic) {
			row.ConfigErrorCode = kerr.TopicAuthorizationFailed.Code // it may be created, and says nothing of its settings
		}
		switch {
		case ask.Topic == metadataTopic:
			op.fail(&row, kerr.InvalidRequest, "Creation of internal topic "+metadataTopic+" is prohibited.")
		case named[ask.Topic] > 1:
			op.fail(&row, kerr.InvalidRequest, "Found multiple entries for this topic.")
		case !mayAll && !op.d.mayTopic(op.call, kmsg.ACLOperationCreate, ask.Topic):
			op.fail(&row, kerr.TopicAuthorizationFailed, "Authorization failed.")
		case snapshot.Topic(ask.Topic) != nil:
			row.ConfigErrorCode = 0
			op.fail(&row, kerr.TopicAlreadyExists, fmt.Sprintf("Topic '%s' already exists.", ask.Topic))
		default:
			spec := topicSpec(ask)
			spec.Permit = op.permit
			specs = append(specs, spec)
		}
		op.resp.Topics = append(op.resp.Topics, row)
	}
	return specs
}

func (op *createCall) fail(row *kmsg.CreateTopicsResponseTopic, err *kerr.Error, message string) {
	row.ErrorCode, row.ErrorMessage = err.Code, &message
}

func topicSpec(ask *kmsg.CreateTopicsRequestTopic) admin.TopicSpec {
	spec := admin.TopicSpec{Name: ask.Topic, Partitions: ask.NumPartitions, ReplicationFactor: ask.ReplicationFactor}
	for _, a := range ask.ReplicaAssignment {
		if spec.Assignment == nil {
			spec.Assignment = make(map[int32][]int32, len(ask.ReplicaAssignment))
		}
		spec.Assignment[a.Partition] = a.Replicas
	}
	for _, c := range ask.Configs {
		spec.Configs = append(spec.Configs, admin.ConfigEntry{Name: c.Name, Value: c.Value})
	}
	return spec
}

// created takes over what became of the topics, and waits for their leaders.
func (op *createCall) created(results []admin.TopicResult) {
	byName := make(map[string]*admin.TopicResult, len(results))
	waiting := false
	for i := range results {
		op.d.faults("creating "+results[i].Name, results[i].Err)
		byName[results[i].Name] = &results[i]
		waiting = waiting || results[i].Err == nil
	}
	for i := range op.resp.Topics {
		row := &op.resp.Topics[i]
		if r := byName[row.Topic]; r != nil && row.ErrorCode == 0 {
			fillCreated(row, r)
		}
	}
	if op.req.ValidateOnly || !waiting {
		op.answerFor(op.resp, op.owed())
		return
	}
	if op.req.TimeoutMillis <= 0 {
		op.finish(func(*kmsg.CreateTopicsResponseTopic) bool { return false })
		return
	}
	op.d.waits.await(millis(op.req.TimeoutMillis), op.ready, func(s *metadata.Snapshot) {
		op.finish(func(row *kmsg.CreateTopicsResponseTopic) bool { return hasLeaders(s, row.Topic, row.NumPartitions) })
	})
}

func fillCreated(row *kmsg.CreateTopicsResponseTopic, r *admin.TopicResult) {
	if r.Err != nil {
		row.ErrorCode, row.ErrorMessage = code(r.Err)
		row.ConfigErrorCode = 0
		return
	}
	row.TopicID = r.ID
	if row.ConfigErrorCode != 0 {
		return
	}
	row.NumPartitions, row.ReplicationFactor = r.NumPartitions, r.ReplicationFactor
	for _, c := range r.Configs {
		to := kmsg.NewCreateTopicsResponseTopicConfig()
		to.Name, to.Value, to.ReadOnly, to.Source, to.IsSensitive = c.Name, c.Value, c.ReadOnly, int8(c.Source), c.Sensitive
		row.Configs = append(row.Configs, to)
	}
}

func (op *createCall) ready(s *metadata.Snapshot) bool {
	for i := range op.resp.Topics {
		row := &op.resp.Topics[i]
		if row.ErrorCode == 0 && !hasLeaders(s, row.Topic, row.NumPartitions) {
			return false
		}
	}
	return true
}

// finish answers; a topic that is not ready is told to have timed out, without
// what a created one is told.
func (op *createCall) finish(ready func(*kmsg.CreateTopicsResponseTopic) bool) {
	for i := range op.resp.Topics {
		row := &op.resp.Topics[i]
		if row.ErrorCode == 0 && !ready(row) {
			row.ErrorCode = kerr.RequestTimedOut.Code
			row.NumPartitions, row.ReplicationFactor = -1, -1
			row.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
		}
	}
	op.answerFor(op.resp, op.owed())
}
