package dumplog

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Records of __consumer_offsets: the version in the key says what a record is.
const (
	lastOffsetKey = 1 // versions 0 and 1: a committed offset
	groupKey      = 2 // a group's metadata
)

const consumerProtocol = "consumer"

// coordinatorRecord is a decoded record of __consumer_offsets; values are nil for a tombstone.
type coordinatorRecord struct {
	version   int16 // of the key
	offsetKey kmsg.OffsetCommitKey
	offset    *kmsg.OffsetCommitValue
	groupKey  kmsg.GroupMetadataKey
	group     *kmsg.GroupMetadataValue
}

func decodeCoordinatorRecord(r logRecord) (c coordinatorRecord, err error) {
	if len(r.Key) < 2 {
		return c, fmt.Errorf("the key has %d bytes", len(r.Key))
	}
	c.version = int16(binary.BigEndian.Uint16(r.Key))
	switch {
	case c.version >= 0 && c.version <= lastOffsetKey:
		if err := c.offsetKey.ReadFrom(r.Key); err != nil {
			return c, err
		}
		if r.Value != nil {
			c.offset = new(kmsg.OffsetCommitValue)
			err = c.offset.ReadFrom(r.Value)
		}
	case c.version == groupKey:
		if err := c.groupKey.ReadFrom(r.Key); err != nil {
			return c, err
		}
		if r.Value != nil {
			c.group = new(kmsg.GroupMetadataValue)
			err = c.group.ReadFrom(r.Value)
		}
	}
	return c, err
}

func (c *coordinatorRecord) isOffset() bool { return c.version >= 0 && c.version <= lastOffsetKey }

const deleted = "<DELETE>"

// offsetsAsText is what 2.8 prints.
func offsetsAsText(r logRecord) (p parsed, err error) {
	if r.Key == nil {
		return p, &exception{"org.apache.kafka.common.KafkaException", "Failed to decode message using offset topic decoder (message had a missing key)"}
	}
	c, err := decodeCoordinatorRecord(r)
	if err != nil {
		return p, &exception{"org.apache.kafka.common.protocol.types.SchemaException", fmt.Sprintf("record at offset %d: %s", r.Offset, err)}
	}
	value := deleted
	switch {
	case c.isOffset():
		p.key, _ = text(fmt.Sprintf("offset_commit::group=%s,partition=%s-%d", c.offsetKey.Group, c.offsetKey.Topic, c.offsetKey.Partition))
		if c.offset != nil {
			value = "offset=" + strconv.FormatInt(c.offset.Offset, 10)
			if c.offset.Metadata != "" {
				value += ",metadata=" + c.offset.Metadata
			}
		}
	case c.version == groupKey:
		p.key, _ = text("group_metadata::group=" + c.groupKey.Group)
		if c.group != nil {
			value = groupAsText(c.group)
		}
	default:
		return p, &exception{"java.lang.IllegalStateException", fmt.Sprintf("Unknown group metadata message version: %d", c.version)}
	}
	p.value = &value
	return p, nil
}

func groupAsText(g *kmsg.GroupMetadataValue) string {
	members := make([]string, len(g.Members))
	for i, m := range g.Members {
		members[i] = m.MemberID + "=" + assignmentAsText(g.ProtocolType, m.Assignment)
	}
	var o object
	return o.text("protocolType", g.ProtocolType).maybe("protocol", g.Protocol).number("generationId", int64(g.Generation)).
		text("assignment", "{"+strings.Join(members, ",")+"}").end()
}

func assignmentAsText(protocolType string, assignment []byte) string {
	var a kmsg.ConsumerMemberAssignment
	if protocolType != consumerProtocol || a.ReadFrom(assignment) != nil {
		return hex(assignment)
	}
	var partitions []string
	for _, t := range a.Topics {
		for _, p := range t.Partitions {
			partitions = append(partitions, fmt.Sprintf("%s-%d", t.Topic, p))
		}
	}
	out := "[" + strings.Join(partitions, ", ") + "]"
	if len(a.UserData) > 0 {
		out += ":" + hex(a.UserData)
	}
	return out
}

// hex prints bytes as the original does: as one large number.
func hex(p []byte) string {
	if len(p) == 0 {
		return ""
	}
	return strings.ToUpper(new(big.Int).SetBytes(p).Text(16))
}

// offsetsAsJSON is what 3.9 prints.
func offsetsAsJSON(r logRecord) (p parsed, err error) {
	if r.Key == nil {
		return p, &exception{"java.lang.RuntimeException", fmt.Sprintf("Failed to decode message at offset %d using offset topic decoder (message had a missing key)", r.Offset)}
	}
	c, err := decodeCoordinatorRecord(r)
	if err != nil {
		p.key, _ = text(fmt.Sprintf("Error at offset %d, skipping. %s", r.Offset, err))
		return p, nil
	}
	var data object
	value := deleted
	switch {
	case c.isOffset():
		data.text("group", c.offsetKey.Group).text("topic", c.offsetKey.Topic).number("partition", int64(c.offsetKey.Partition))
		if c.offset != nil {
			value = versioned("version", c.offset.Version, offsetAsJSON(c.offset))
		}
	case c.version == groupKey:
		data.text("group", c.groupKey.Group)
		if c.group != nil {
			value = versioned("version", c.group.Version, groupAsJSON(c.group))
		}
	default:
		p.key, _ = text(fmt.Sprintf("Unknown record type %d at offset %d, skipping.", c.version, r.Offset))
		return p, nil
	}
	key := versioned("type", c.version, data.end())
	return parsed{key: &key, value: &value}, nil
}

func versioned(name string, version int16, data string) string {
	var o object
	return o.text(name, strconv.Itoa(int(version))).raw("data", data).end()
}

func offsetAsJSON(v *kmsg.OffsetCommitValue) string {
	var o object
	o.number("offset", v.Offset)
	if v.Version >= 3 {
		o.number("leaderEpoch", int64(v.LeaderEpoch))
	}
	o.text("metadata", v.Metadata).number("commitTimestamp", v.CommitTimestamp)
	if v.Version == 1 {
		o.number("expireTimestamp", v.ExpireTimestamp)
	}
	return o.end()
}

func groupAsJSON(g *kmsg.GroupMetadataValue) string {
	var o object
	o.text("protocolType", g.ProtocolType).number("generation", int64(g.Generation)).maybe("protocol", g.Protocol).maybe("leader", g.Leader)
	if g.Version >= 2 {
		o.number("currentStateTimestamp", g.CurrentStateTimestamp)
	}
	o.raw("members", array(g.Members, func(m *kmsg.GroupMetadataValueMember) string {
		var o object
		o.text("memberId", m.MemberID)
		if g.Version >= 3 {
			o.maybe("groupInstanceId", m.InstanceID)
		}
		o.text("clientId", m.ClientID).text("clientHost", m.ClientHost)
		if g.Version >= 1 {
			o.number("rebalanceTimeout", int64(m.RebalanceTimeoutMillis))
		}
		o.number("sessionTimeout", int64(m.SessionTimeoutMillis))
		if subscription, ok := subscriptionAsJSON(m.Subscription); ok && g.ProtocolType == consumerProtocol {
			o.raw("subscription", subscription)
		} else {
			o.bytes("subscription", m.Subscription)
		}
		if assignment, ok := assignmentAsJSON(m.Assignment); ok && g.ProtocolType == consumerProtocol {
			o.raw("assignment", assignment)
		} else {
			o.bytes("assignment", m.Assignment)
		}
		return o.end()
	}))
	return o.end()
}

func subscriptionAsJSON(p []byte) (string, bool) {
	var s kmsg.ConsumerMemberMetadata
	if s.ReadFrom(p) != nil {
		return "", false
	}
	var o object
	o.raw("topics", array(s.Topics, func(t *string) string { return quote(*t) })).bytes("userData", s.UserData)
	if s.Version >= 1 {
		o.raw("ownedPartitions", array(s.OwnedPartitions, func(t *kmsg.ConsumerMemberMetadataOwnedPartition) string {
			return topicPartitions(t.Topic, t.Partitions)
		}))
	}
	if s.Version >= 2 {
		o.number("generationId", int64(s.Generation))
	}
	if s.Version >= 3 {
		o.maybe("rackId", s.Rack)
	}
	return o.end(), true
}

func assignmentAsJSON(p []byte) (string, bool) {
	var a kmsg.ConsumerMemberAssignment
	if a.ReadFrom(p) != nil {
		return "", false
	}
	var o object
	return o.raw("assignedPartitions", array(a.Topics, func(t *kmsg.ConsumerMemberAssignmentTopic) string {
		return topicPartitions(t.Topic, t.Partitions)
	})).bytes("userData", a.UserData).end(), true
}

func topicPartitions(topic string, partitions []int32) string {
	var o object
	return o.text("topic", topic).raw("partitions", array(partitions, func(p *int32) string { return strconv.Itoa(int(*p)) })).end()
}
