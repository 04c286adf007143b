package api

import (
	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/acl"
	"barnabas/broker/wire"
)

// Who may do what is asked in the handlers, where Kafka's KafkaApis asks it: what a
// denial looks like is a matter of each API. Without an authorizer the questions
// cost a comparison with nil.

// may tells whether the client may do an operation on a resource. A denial is
// logged, in the words of Kafka's authorizer: somebody asked for what he may not have.
func (d *Dispatcher) may(c *call, op kmsg.ACLOperation, resource kmsg.ACLResourceType, name string) bool {
	return d.deps.Authorizer == nil || d.decide(c, op, resource, name, logrus.InfoLevel)
}

// sees is may where a denial is nothing to report: the answer leaves something out,
// or another right may do instead.
func (d *Dispatcher) sees(c *call, op kmsg.ACLOperation, resource kmsg.ACLResourceType, name string) bool {
	return d.deps.Authorizer == nil || d.decide(c, op, resource, name, logrus.TraceLevel)
}

func (d *Dispatcher) mayCluster(c *call, op kmsg.ACLOperation) bool {
	allowed := d.may(c, op, kmsg.ACLResourceTypeCluster, acl.ClusterName)
	c.stranger = c.stranger || !allowed
	return allowed
}

func (d *Dispatcher) seesCluster(c *call, op kmsg.ACLOperation) bool {
	return d.sees(c, op, kmsg.ACLResourceTypeCluster, acl.ClusterName)
}

func (d *Dispatcher) mayTopic(c *call, op kmsg.ACLOperation, topic string) bool {
	return d.may(c, op, kmsg.ACLResourceTypeTopic, topic)
}

func (d *Dispatcher) mayGroup(c *call, op kmsg.ACLOperation, group string) bool {
	return d.may(c, op, kmsg.ACLResourceTypeGroup, group)
}

func (d *Dispatcher) mayTransaction(c *call, op kmsg.ACLOperation, id string) bool {
	return d.may(c, op, kmsg.ACLResourceTypeTransactionalId, id)
}

func (d *Dispatcher) decide(c *call, op kmsg.ACLOperation, resource kmsg.ACLResourceType, name string, denial logrus.Level) bool {
	allowed := d.deps.Authorizer.Allows(*c.who, op, resource, name)
	level, word := logrus.DebugLevel, "Allowed"
	if !allowed {
		level, word = denial, "Denied"
	}
	if d.audit.Logger.IsLevelEnabled(level) {
		d.audit.Logf(level, "Principal = %s is %s Operation = %s from host = %s on resource = %s:LITERAL:%s for request = %s",
			c.who.Principal, word, acl.Word(op.String()), c.who.Host, acl.Word(resource.String()), name, kmsg.NameForKey(c.header.Key))
	}
	return allowed
}

// subjectOf is for whom a connection acts now, and from where.
func subjectOf(conn *wire.Conn) *acl.Subject {
	return &acl.Subject{Principal: principalOf(conn), Host: javaHost(conn.Remote)}
}

func principalOf(conn *wire.Conn) acl.Principal {
	if conn.Principal == (wire.Principal{}) {
		return acl.Principal(wire.Anonymous)
	}
	return acl.Principal(conn.Principal)
}

// topicRights asks about the topics of a request one after the other: neighbours of
// one topic cost one question.
type topicRights struct {
	d       *Dispatcher
	c       *call
	op      kmsg.ACLOperation
	topic   string
	asked   bool // about topic
	every   bool // what was said counts for every topic
	allowed bool
}

func (d *Dispatcher) topicRights(c *call, op kmsg.ACLOperation) topicRights {
	return topicRights{d: d, c: c, op: op}
}

// allow tells whether the client may do the operation on the topic.
func (r *topicRights) allow(topic string) bool {
	if r.d.deps.Authorizer == nil {
		return true
	}
	if !r.every && (!r.asked || r.topic != topic) {
		r.topic, r.asked = topic, true
		r.allowed = r.d.mayTopic(r.c, r.op, topic)
	}
	return r.allowed
}

// everyTopic decides for every topic.
func (r *topicRights) everyTopic(allowed bool) { r.every, r.allowed = true, allowed }

// clusterRefusal is the error of a request that needs a right on the cluster.
func (c *call) clusterRefusal() error {
	return &admin.Error{Code: kerr.ClusterAuthorizationFailed,
		Message: "Request " + kmsg.NameForKey(c.header.Key) + " of " + c.who.String() + " is not authorized."}
}

// authorizedOperations are the operations that the client may do on a resource, as
// bits by their numbers.
func (d *Dispatcher) authorizedOperations(c *call, resource kmsg.ACLResourceType, name string) (bits int32) {
	for _, op := range acl.Operations(resource) {
		if d.sees(c, op, resource, name) {
			bits |= 1 << op
		}
	}
	return bits
}

// clusterOperations are those on the cluster, none where it may not be described.
func (d *Dispatcher) clusterOperations(c *call) int32 {
	if !d.mayCluster(c, kmsg.ACLOperationDescribe) {
		return 0
	}
	return d.authorizedOperations(c, kmsg.ACLResourceTypeCluster, acl.ClusterName)
}
