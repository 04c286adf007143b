package api

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/metadata"
)

// FindCoordinator, key 10, versions 0 to 6.
//
//	1  coordinators of transactions; error messages
//	3  flexible
//	4  several keys at once (KIP-699)
//	5  errors of KIP-890
//	6  share groups (KIP-932), which ZooKeeper mode does not have
//
// The topics of the coordinators are made when one is asked for first. Until a
// topic has a leader, and while too few brokers live for its replicas, the answer is
// COORDINATOR_NOT_AVAILABLE: it is not made with fewer (BR-046).
func (d *Dispatcher) findCoordinator(c *call, req *kmsg.FindCoordinatorRequest) {
	resp := kmsg.NewPtrFindCoordinatorResponse()
	if req.Version < 4 {
		found, err := d.coordinator(c, req, req.CoordinatorKey)
		resp.NodeID, resp.Host, resp.Port = found.node, found.host, found.port
		resp.ErrorCode, _ = code(err)
		resp.ErrorMessage = kmsg.StringPtr(coordinatorMessage(err))
		c.answer(resp)
		return
	}
	for _, key := range req.CoordinatorKeys {
		found, err := d.coordinator(c, req, key)
		row := kmsg.NewFindCoordinatorResponseCoordinator()
		row.Key, row.NodeID, row.Host, row.Port, row.ErrorMessage = key, found.node, found.host, found.port, new(string)
		row.ErrorCode, _ = code(err)
		if req.CoordinatorType < groupCoordinator || req.CoordinatorType > shareCoordinator {
			*row.ErrorMessage = coordinatorMessage(err) // Kafka has no row of its own for such a kind
		}
		resp.Coordinators = append(resp.Coordinators, row)
	}
	c.answer(resp)
}

// coordinatorMessage is what Kafka's clients print; "NONE" is success.
func coordinatorMessage(err error) string {
	switch {
	case err == nil:
		return "NONE"
	case errors.Is(err, kerr.CoordinatorNotAvailable):
		return "The coordinator is not available."
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return "Group authorization failed."
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return "Transactional Id authorization failed."
	case errors.Is(err, kerr.InvalidRequest):
		return "This most likely occurs because of a request being malformed by the client library or the message was sent to an incompatible broker. See the broker logs for more details."
	}
	return err.Error()
}

// Kinds of coordinator.
const (
	groupCoordinator       = int8(0)
	transactionCoordinator = int8(1)
	shareCoordinator       = int8(2)
)

// coordinatorNode is where a coordinator is; nowhere is none.
type coordinatorNode struct {
	node int32
	host string
	port int32
}

var nowhere = coordinatorNode{node: -1, port: -1}

func (d *Dispatcher) coordinator(c *call, req *kmsg.FindCoordinatorRequest, key string) (coordinatorNode, error) {
	switch kind := req.CoordinatorType; {
	case kind == groupCoordinator && !d.mayGroup(c, kmsg.ACLOperationDescribe, key):
		return nowhere, kerr.GroupAuthorizationFailed
	case kind == transactionCoordinator && !d.mayTransaction(c, kmsg.ACLOperationDescribe, key):
		return nowhere, kerr.TransactionalIDAuthorizationFailed
	case kind == shareCoordinator && req.Version >= 6 && !d.mayCluster(c, kmsg.ACLOperationClusterAction):
		return nowhere, kerr.ClusterAuthorizationFailed
	case kind == groupCoordinator:
		return d.leaderOf(c, offsetsTopic, d.deps.Groups.PartitionFor(key))
	case kind == transactionCoordinator:
		return d.leaderOf(c, transactionsTopic, d.deps.Transactions.PartitionFor(key))
	case kind == shareCoordinator && req.Version >= 6:
		return nowhere, kerr.CoordinatorNotAvailable
	}
	return nowhere, kerr.InvalidRequest
}

// leaderOf is the leader of a partition of an internal topic, which is made if it
// does not exist.
func (d *Dispatcher) leaderOf(c *call, topic string, partition int32) (coordinatorNode, error) {
	snapshot := d.deps.Metadata.Load()
	if snapshot.Topic(topic) == nil {
		d.createInternal(c, topic)
		return nowhere, kerr.CoordinatorNotAvailable
	}
	p := snapshot.Partition(topic, partition)
	if p == nil || p.Leader == metadata.NoLeader || snapshot.Brokers[p.Leader] == nil {
		return nowhere, kerr.CoordinatorNotAvailable
	}
	e, found := snapshot.Brokers[p.Leader].Endpoint(c.Conn.Listener)
	if !found {
		return nowhere, kerr.CoordinatorNotAvailable
	}
	return coordinatorNode{p.Leader, e.Host, e.Port}, nil
}

// createInternal makes an internal topic, in the background and once at a time.
func (d *Dispatcher) createInternal(c *call, topic string) {
	if !d.creating.begin(topic) {
		return
	}
	specs := []admin.TopicSpec{d.autoSpec(topic)}
	specs[0].Permit = c.lenient().permit
	create := func(ctx context.Context) {
		defer d.creating.end(specs)
		for _, r := range d.deps.Admin.CreateTopics(ctx, specs, false) {
			if r.Err != nil && !errors.Is(r.Err, kerr.TopicAlreadyExists) {
				d.hints.cannotCreate(d, topic, r.Err)
			}
		}
	}
	if !d.workers.submit(create) {
		d.creating.end(specs)
	}
}

// hintEvery bounds how often a misfit is spoken of: clients ask ten times a
// second each.
const hintEvery = time.Minute

// hints are said once in a while.
type hints struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (h *hints) cannotCreate(d *Dispatcher, topic string, err error) {
	h.mu.Lock()
	now := time.Now()
	quiet := now.Sub(h.last[topic]) < hintEvery
	if !quiet {
		if h.last == nil {
			h.last = make(map[string]time.Time)
		}
		h.last[topic] = now
	}
	h.mu.Unlock()
	if quiet {
		return
	}
	setting, waiting := "offsets.topic.replication.factor", "consumer groups"
	if topic == transactionsTopic {
		setting, waiting = "transaction.state.log.replication.factor", "transactions"
	}
	alive := len(d.deps.Metadata.Load().Brokers)
	if errors.Is(err, kerr.InvalidReplicationFactor) {
		d.log.Warnf("%s needs %d brokers and %d are alive, so it cannot be created and %s have to wait: start more brokers, or set %s=%d",
			topic, d.autoSpec(topic).ReplicationFactor, alive, waiting, setting, max(alive, 1))
		return
	}
	d.log.WithError(err).Warnf("%s cannot be created; %s have to wait", topic, waiting)
}
