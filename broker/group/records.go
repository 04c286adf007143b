package group

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Format is the versions of the values that are written to the offsets topic.
// inter.broker.protocol.version decides: every broker of the cluster must be able
// to read them.
type Format struct {
	OffsetVersion int16 // 1 below 2.1-IV0, 2 below 2.1-IV1, else 3
	GroupVersion  int16 // 0 below 0.10.1-IV0, 1 below 2.1-IV0, 2 below 2.3-IV0, else 3
}

// FormatSince23 is what brokers of every inter.broker.protocol.version from 2.3
// on write, and so all that this one may belong to.
var FormatSince23 = Format{OffsetVersion: 3, GroupVersion: 3}

// Versions of keys, by which records of offsets and groups are told apart.
const (
	offsetKeyVersion = 1
	groupKeyVersion  = 2
)

// The highest versions of values that are read: those with tagged fields, which
// later brokers may write.
const maxValueVersion = 4

func offsetKey(group string, tp TopicPartition) []byte {
	k := kmsg.OffsetCommitKey{Version: offsetKeyVersion, Group: group, Topic: tp.Topic, Partition: tp.Partition}
	return k.AppendTo(make([]byte, 0, 10+len(group)+len(tp.Topic)))
}

func groupKey(group string) []byte {
	k := kmsg.GroupMetadataKey{Version: groupKeyVersion, Group: group}
	return k.AppendTo(nil)
}

// offsetValue writes an offset; one with an expiry of its own as version 1, which
// alone has a field for it.
func (f Format) offsetValue(o *offset) []byte {
	v := kmsg.OffsetCommitValue{
		Version: f.OffsetVersion, Offset: o.offset, LeaderEpoch: o.leaderEpoch, Metadata: o.metadata,
		CommitTimestamp: o.commitMs, ExpireTimestamp: o.expireMs,
	}
	if o.expireMs != NoTime {
		v.Version = 1
	}
	return v.AppendTo(make([]byte, 0, 40+len(o.metadata)))
}

func (f Format) groupValue(g *group, assignments map[string][]byte) []byte {
	v := kmsg.GroupMetadataValue{
		Version: f.GroupVersion, Generation: g.generation, Protocol: g.protocol, CurrentStateTimestamp: g.stateMs,
	}
	if g.protocolType != nil {
		v.ProtocolType = *g.protocolType
	}
	if g.leader != "" {
		v.Leader = &g.leader
	}
	for _, m := range g.order {
		to := kmsg.NewGroupMetadataValueMember()
		to.MemberID, to.InstanceID, to.ClientID, to.ClientHost = m.id, m.instanceID, m.clientID, m.clientHost
		to.RebalanceTimeoutMillis, to.SessionTimeoutMillis = m.rebalanceTimeoutMs, m.sessionTimeoutMs
		if g.protocol != nil {
			to.Subscription = m.metadata(*g.protocol)
		}
		to.Assignment = assignments[m.id]
		v.Members = append(v.Members, to)
	}
	return v.AppendTo(nil)
}

// key is the decoded key of a record: of an offset if it has a topic, else of a
// group's metadata.
type key struct {
	group    string
	isOffset bool
	tp       TopicPartition
}

// unknownKeyError is a key of a version that this broker does not know.
type unknownKeyError int16

func (e unknownKeyError) Error() string { return fmt.Sprintf("key of unknown version %d", int16(e)) }

// readKey reads a key. The names in it are b's own bytes: who keeps them copies them.
func readKey(b []byte) (key, error) {
	if len(b) < 2 {
		return key{}, fmt.Errorf("key of %d bytes", len(b))
	}
	switch v := int16(binary.BigEndian.Uint16(b)); v {
	case 0, offsetKeyVersion:
		var k kmsg.OffsetCommitKey
		if err := k.UnsafeReadFrom(b); err != nil {
			return key{}, fmt.Errorf("key of an offset: %w", err)
		}
		return key{group: k.Group, isOffset: true, tp: TopicPartition{k.Topic, k.Partition}}, nil
	case groupKeyVersion:
		var k kmsg.GroupMetadataKey
		if err := k.UnsafeReadFrom(b); err != nil {
			return key{}, fmt.Errorf("key of a group: %w", err)
		}
		return key{group: k.Group}, nil
	default:
		return key{}, unknownKeyError(v)
	}
}

func readOffset(b []byte) (offset, error) {
	if err := checkVersion(b); err != nil {
		return offset{}, err
	}
	var v kmsg.OffsetCommitValue
	if err := v.ReadFrom(b); err != nil {
		return offset{}, fmt.Errorf("value of an offset: %w", err)
	}
	o := offset{offset: v.Offset, leaderEpoch: -1, metadata: v.Metadata, commitMs: v.CommitTimestamp, expireMs: NoTime}
	if v.Version >= 3 {
		o.leaderEpoch = v.LeaderEpoch
	}
	if v.Version == 1 {
		o.expireMs = v.ExpireTimestamp
	}
	return o, nil
}

func checkVersion(b []byte) error {
	if len(b) < 2 {
		return fmt.Errorf("value of %d bytes", len(b))
	}
	if v := int16(binary.BigEndian.Uint16(b)); v < 0 || v > maxValueVersion {
		return fmt.Errorf("value of unknown version %d", v)
	}
	return nil
}

// readGroup reads a group with its members, as it was when it was written: Stable,
// or Empty. It keeps b. Timers of the members are for the caller.
func readGroup(name string, b []byte) (*group, error) {
	if err := checkVersion(b); err != nil {
		return nil, err
	}
	var v kmsg.GroupMetadataValue
	if err := v.ReadFrom(b); err != nil {
		return nil, fmt.Errorf("value of a group: %w", err)
	}
	g := newGroup(name, NoTime)
	if v.Version >= 2 {
		g.stateMs = v.CurrentStateTimestamp
	}
	g.generation = v.Generation
	for i := range v.Members {
		from := &v.Members[i]
		m := &member{
			id: from.MemberID, instanceID: from.InstanceID, clientID: from.ClientID, clientHost: from.ClientHost,
			rebalanceTimeoutMs: from.RebalanceTimeoutMillis, sessionTimeoutMs: from.SessionTimeoutMillis, assignment: from.Assignment,
		}
		if v.Version == 0 {
			m.rebalanceTimeoutMs = m.sessionTimeoutMs
		}
		if v.Protocol != nil {
			m.protocols = []Protocol{{Name: *v.Protocol, Metadata: from.Subscription}}
		}
		if g.members[m.id] != nil || m.isStatic() && g.static[*m.instanceID] != "" {
			return nil, fmt.Errorf("member %q of group %q is there twice", m.id, name)
		}
		g.add(m, v.ProtocolType)
	}
	if g.protocolType = nil; v.ProtocolType != "" {
		g.protocolType = &v.ProtocolType
	}
	g.protocol, g.leader = v.Protocol, ""
	if v.Leader != nil && g.members[*v.Leader] != nil {
		g.leader = *v.Leader
	} else if len(g.order) > 0 {
		g.leader = g.order[0].id
	}
	if len(g.members) > 0 {
		if g.protocol == nil {
			return nil, fmt.Errorf("group %q has members and no protocol", name)
		}
		g.state = Stable
	}
	g.subscribed = g.subscriptions()
	return g, nil
}
