package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/metadata"
)

// Metadata, key 3, versions 0 to 12.
//
//	1  racks, controller id, internal flag; a null list is all topics, an empty
//	   one none (version 0 has no null: there an empty list is all)
//	2  cluster id
//	4  the client may forbid automatic creation
//	5  offline replicas
//	6  LISTENER_NOT_FOUND where the leader lacks the listener that was asked
//	   (before, LEADER_NOT_AVAILABLE)
//	7  leader epochs
//	8  authorized operations of cluster and topics
//	9  flexible
//	10 topic ids in the answer; in the request they count from version 12 on
//	11 no authorized operations of the cluster any more (DescribeCluster has them)
//	12 topics by id
//
// All addresses are those of the listener that the request came in by; brokers
// without it are left out.
func (d *Dispatcher) metadata(c *call, req *kmsg.MetadataRequest) {
	if req.Version < 12 && !onlyNames(req.Topics) || !allNamed(req.Topics) {
		c.answer(metadataError(req, kerr.InvalidRequest.Code))
		return
	}
	snapshot := d.deps.Metadata.Load()
	q := metadataQuery{d: d, call: c, req: req, snapshot: snapshot, listener: c.Conn.Listener}
	missing := q.collect()
	if len(missing) == 0 {
		c.answer(d.metadataAnswer(&q))
		return
	}
	create := d.cfg.AutoCreateTopics && (req.AllowAutoTopicCreation || req.Version < 4)
	if create {
		missing = q.creatable(missing)
	}
	if !create || len(missing) == 0 {
		for _, name := range missing {
			q.fail(name, unknownTopic(name))
		}
		c.answer(d.metadataAnswer(&q))
		return
	}
	d.work(c, func(ctx context.Context) {
		for _, t := range d.autoCreate(ctx, c, missing) {
			d.faults("creating "+t.name, t.err)
			q.fail(t.name, t.err)
		}
		c.answer(d.metadataAnswer(&q))
	})
}

// onlyNames tells whether every topic is asked for by its name alone.
func onlyNames(topics []kmsg.MetadataRequestTopic) bool {
	for i := range topics {
		if topics[i].Topic == nil || topics[i].TopicID != ([16]byte{}) {
			return false
		}
	}
	return true
}

// allNamed tells whether every topic has a name or an id. Kafka answers
// UNKNOWN_SERVER_ERROR to the request where that is not so, having stumbled.
func allNamed(topics []kmsg.MetadataRequestTopic) bool {
	for i := range topics {
		if topics[i].Topic == nil && topics[i].TopicID == ([16]byte{}) {
			return false
		}
	}
	return true
}

// metadataError puts an error on every topic of a request that is refused.
func metadataError(req *kmsg.MetadataRequest, code int16) *kmsg.MetadataResponse {
	resp := kmsg.NewPtrMetadataResponse()
	resp.ControllerID = metadata.NoController
	for i := range req.Topics {
		t := kmsg.NewMetadataResponseTopic()
		t.ErrorCode, t.TopicID = code, req.Topics[i].TopicID
		t.Topic = kmsg.StringPtr(stringOrEmpty(req.Topics[i].Topic))
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// unknownTopic says why a name has no topic: it cannot have one, or there is
// none now.
func unknownTopic(name string) error {
	if !validTopicName(name) {
		return kerr.InvalidTopicException
	}
	return kerr.UnknownTopicOrPartition
}

// metadataQuery gathers the topics of one answer.
type metadataQuery struct {
	d        *Dispatcher
	call     *call
	req      *kmsg.MetadataRequest
	snapshot *metadata.Snapshot
	listener string
	topics   []kmsg.MetadataResponseTopic
}

// collect fills in what is known and returns the names that are not. A request
// that has one id is a request by ids: names without an id are passed over, as
// Kafka does. Of topics that the client may not describe, only those that it asks
// for by name or id are told of, and nothing but that.
func (q *metadataQuery) collect() (missing []string) {
	if q.req.Topics == nil || q.req.Version == 0 && len(q.req.Topics) == 0 {
		q.topics = make([]kmsg.MetadataResponseTopic, 0, q.snapshot.TopicCount())
		for t := range q.snapshot.Topics() {
			if q.d.sees(q.call, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTopic, t.Name) {
				q.add(t)
			}
		}
		return nil
	}
	if q.byID() {
		return nil
	}
	seen := make(map[string]struct{}, len(q.req.Topics))
	for i := range q.req.Topics {
		name := stringOrEmpty(q.req.Topics[i].Topic)
		if _, twice := seen[name]; twice {
			continue
		}
		seen[name] = struct{}{}
		if !q.d.mayTopic(q.call, kmsg.ACLOperationDescribe, name) {
			q.hide(&name, metadata.TopicID{}, false)
			continue
		}
		if t := q.snapshot.Topic(name); t != nil {
			q.add(t)
		} else {
			missing = append(missing, name)
		}
	}
	return missing
}

// byID answers a request that names at least one topic id; the unknown ones
// come first.
func (q *metadataQuery) byID() bool {
	ids := make(map[metadata.TopicID]struct{})
	var known []*metadata.Topic
	for i := range q.req.Topics {
		id := metadata.TopicID(q.req.Topics[i].TopicID)
		if _, twice := ids[id]; twice || id == (metadata.TopicID{}) {
			continue
		}
		ids[id] = struct{}{}
		if t := q.snapshot.TopicByID(id); t != nil {
			known = append(known, t)
			continue
		}
		unknown := kmsg.NewMetadataResponseTopic()
		unknown.ErrorCode, unknown.TopicID = kerr.UnknownTopicID.Code, id
		q.topics = append(q.topics, unknown)
	}
	for _, t := range known {
		if q.d.mayTopic(q.call, kmsg.ACLOperationDescribe, t.Name) {
			q.add(t)
		} else {
			q.hide(nil, t.ID, false)
		}
	}
	return len(ids) > 0
}

// creatable is those of the missing topics that the client may have created; the
// others are told of as unauthorized.
func (q *metadataQuery) creatable(missing []string) []string {
	if q.d.seesCluster(q.call, kmsg.ACLOperationCreate) {
		return missing
	}
	var names []string
	for _, name := range missing {
		if q.d.mayTopic(q.call, kmsg.ACLOperationCreate, name) {
			names = append(names, name)
		} else {
			q.hide(&name, metadata.TopicID{}, isInternal(name))
		}
	}
	return names
}

// hide tells that there is nothing to tell.
func (q *metadataQuery) hide(name *string, id metadata.TopicID, internal bool) {
	t := kmsg.NewMetadataResponseTopic()
	t.ErrorCode = kerr.TopicAuthorizationFailed.Code
	t.Topic, t.TopicID, t.IsInternal = name, id, internal
	q.topics = append(q.topics, t)
}

// operations are those that the client may do on a topic, if it asks for them.
func (q *metadataQuery) operations(t *kmsg.MetadataResponseTopic) {
	if q.req.Version >= 8 && q.req.IncludeTopicAuthorizedOperations {
		t.AuthorizedOperations = q.d.authorizedOperations(q.call, kmsg.ACLResourceTypeTopic, *t.Topic)
	}
}

func (q *metadataQuery) fail(name string, err error) {
	t := kmsg.NewMetadataResponseTopic()
	t.Topic = kmsg.StringPtr(name)
	t.ErrorCode, _ = code(err)
	t.IsInternal = isInternal(name)
	q.operations(&t)
	q.topics = append(q.topics, t)
}

func (q *metadataQuery) add(from *metadata.Topic) {
	t := kmsg.NewMetadataResponseTopic()
	t.Topic, t.TopicID, t.IsInternal = &from.Name, from.ID, isInternal(from.Name)
	q.operations(&t)
	t.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(from.Partitions))
	for i, p := range from.Partitions {
		q.partition(&t.Partitions[i], p)
	}
	q.topics = append(q.topics, t)
}

// partition copies no slices: a snapshot never changes.
func (q *metadataQuery) partition(to *kmsg.MetadataResponseTopicPartition, from *metadata.Partition) {
	to.Default()
	to.Partition, to.Leader, to.LeaderEpoch = from.ID, from.Leader, from.LeaderEpoch
	to.Replicas, to.ISR, to.OfflineReplicas = from.Replicas, from.ISR, from.OfflineReplicas
	if q.req.Version == 0 { // it has no other way to say that a replica is out of reach
		to.Replicas, to.ISR = q.reachable(from.Replicas), q.reachable(from.ISR)
	}
	leader := q.snapshot.Brokers[from.Leader]
	switch {
	case leader == nil:
		to.ErrorCode, to.Leader = kerr.LeaderNotAvailable.Code, metadata.NoLeader
	case !hasListener(leader, q.listener):
		to.ErrorCode, to.Leader = kerr.LeaderNotAvailable.Code, metadata.NoLeader
		if q.req.Version >= 6 {
			to.ErrorCode = kerr.ListenerNotFound.Code
		}
	case len(to.Replicas) < len(from.Replicas) || len(to.ISR) < len(from.ISR):
		to.ErrorCode = kerr.ReplicaNotAvailable.Code
	}
}

func (q *metadataQuery) reachable(ids []int32) []int32 {
	var alive []int32
	for _, id := range ids {
		if b := q.snapshot.Brokers[id]; b != nil && hasListener(b, q.listener) {
			alive = append(alive, id)
		}
	}
	return alive
}

func hasListener(b *metadata.Broker, listener string) bool {
	_, found := b.Endpoint(listener)
	return found
}

func (d *Dispatcher) metadataAnswer(q *metadataQuery) *kmsg.MetadataResponse {
	resp := kmsg.NewPtrMetadataResponse()
	resp.ClusterID = &d.cfg.ClusterID
	resp.ControllerID = q.snapshot.ControllerID
	resp.Topics = q.topics
	if q.req.Version >= 8 && q.req.Version <= 10 && q.req.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = d.clusterOperations(q.call)
	}
	for _, id := range q.snapshot.BrokerIDs() {
		b := q.snapshot.Brokers[id]
		if e, found := b.Endpoint(q.listener); found {
			to := kmsg.NewMetadataResponseBroker()
			to.NodeID, to.Host, to.Port, to.Rack = id, e.Host, e.Port, b.Rack
			resp.Brokers = append(resp.Brokers, to)
		}
	}
	return resp
}
