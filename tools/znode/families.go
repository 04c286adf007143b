package znode

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"barnabas/zkstate"
)

// The families of which a node says something without data.
const (
	seqFamily    = "generated broker ids"
	deleteFamily = "topic to be deleted"
)

// families are all kinds of nodes, the particular before the general.
var families = []family{
	{"/brokers/ids/*", "broker", broker},
	{"/brokers/topics/*", "topic", topic},
	{"/brokers/topics/*/partitions/*/state", "partition state", partitionState},
	{"/brokers/seqid", seqFamily, func(n node) (any, error) { return map[string]int32{"generated": n.stat.Version}, nil }},
	{"/controller", "controller", controller},
	{"/controller_epoch", "controller epoch", func(n node) (any, error) {
		epoch, err := zkstate.DecodeControllerEpoch(n.data)
		return map[string]int32{"epoch": epoch}, err
	}},
	{"/cluster/id", "cluster id", func(n node) (any, error) {
		id, err := zkstate.DecodeClusterID(n.data)
		return map[string]string{"cluster_id": id}, err
	}},
	{"/config/changes/*", "configuration change", func(n node) (any, error) {
		c, err := zkstate.DecodeConfigChange(n.data)
		return map[string]string{"entity_type": string(c.Type), "entity": plainName(c.Name)}, err
	}},
	{"/config/*/*", "configuration", configuration},
	{"/config/users/*/clients/*", "configuration", configuration},
	{"/admin/delete_topics/*", deleteFamily, func(n node) (any, error) { return map[string]string{"topic": n.names[0]}, nil }},
	{"/admin/reassign_partitions", "reassignment", func(n node) (any, error) {
		list, err := zkstate.DecodeReassignments(n.data)
		var out []replicasOf
		for _, r := range list {
			out = append(out, replicasOf{partitionOf{r.Topic, r.Partition}, r.Replicas})
		}
		return map[string]any{"partitions": out}, err
	}},
	{"/admin/preferred_replica_election", "preferred election", func(n node) (any, error) {
		return partitions(zkstate.DecodePreferredReplicaElection(n.data))
	}},
	{"/isr_change_notification/*", "ISR change", func(n node) (any, error) { return partitions(zkstate.DecodeISRChange(n.data)) }},
	{"/log_dir_event_notification/*", "failed log directory", func(n node) (any, error) {
		id, err := zkstate.DecodeLogDirEvent(n.data)
		return map[string]int32{"broker": id}, err
	}},
	{"/latest_producer_id_block", "producer ids", func(n node) (any, error) {
		b, err := zkstate.DecodeProducerIDBlock(n.data)
		return struct {
			Broker int32 `json:"broker"`
			First  int64 `json:"first"`
			Last   int64 `json:"last"`
		}{b.Broker, b.First, b.Last}, err
	}},
	{"/feature", "features", func(n node) (any, error) {
		f, err := zkstate.DecodeFeatures(n.data)
		return struct {
			Version int32            `json:"version"`
			Enabled bool             `json:"enabled"`
			Levels  map[string]int16 `json:"levels"`
		}{f.Version, f.Enabled, f.Levels}, err
	}},
	{"/migration", "migration to KRaft", func(n node) (any, error) {
		m, err := zkstate.DecodeMigration(n.data)
		return struct {
			Controller      int32 `json:"controller"`
			ControllerEpoch int32 `json:"controller_epoch"`
			Offset          int64 `json:"metadata_offset"`
			Epoch           int32 `json:"metadata_epoch"`
		}{m.ControllerID, m.ControllerEpoch, m.MetadataOffset, m.MetadataEpoch}, err
	}},
	{"/delegation_token/tokens/*", "delegation token", token},
	{"/kafka-acl/*/*", "access list", accessList("literal")},
	{"/kafka-acl-extended/prefixed/*/*", "access list", accessList("prefixed")},
	{"/kafka-acl-changes/*", "access list change", func(n node) (any, error) { return aclChange(zkstate.DecodeACLChange(n.data)) }},
	{"/kafka-acl-extended-changes/*", "access list change", func(n node) (any, error) { return aclChange(zkstate.DecodeExtendedACLChange(n.data)) }},
	{"/consumers/*/offsets/*/*", "offset of an old consumer", func(n node) (any, error) {
		offset, err := zkstate.DecodeConsumerOffset(n.data)
		return map[string]int64{"offset": offset}, err
	}},
}

func at(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// plainName is a name without the escapes that a path needs, where it has good ones.
func plainName(name string) string {
	if plain, err := zkstate.DesanitizeName(name); err == nil {
		return plain
	}
	return name
}

type partitionOf struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

type replicasOf struct {
	partitionOf
	Replicas []int32 `json:"replicas"`
}

func partitions(list []zkstate.TopicPartition, err error) (any, error) {
	out := []partitionOf{}
	for _, tp := range list {
		out = append(out, partitionOf{tp.Topic, tp.Partition})
	}
	return map[string]any{"partitions": out}, err
}

type endpoint struct {
	Listener string `json:"listener"`
	Protocol string `json:"protocol"`
	Host     string `json:"host"`
	Port     int32  `json:"port"`
}

type registration struct {
	ID         int32               `json:"id"`
	Version    int32               `json:"version"`
	Epoch      int64               `json:"broker_epoch"`
	Registered string              `json:"registered_at"`
	Rack       *string             `json:"rack"`
	Endpoints  []endpoint          `json:"endpoints"`
	Features   map[string][2]int16 `json:"features"`
}

func broker(n node) (any, error) {
	id, err := strconv.ParseInt(n.names[0], 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%q is no broker's id", n.names[0])
	}
	b, err := zkstate.DecodeBroker(int32(id), n.data)
	if err != nil {
		return nil, err
	}
	r := registration{ID: b.ID, Version: b.Version, Epoch: n.stat.Czxid, Registered: at(b.TimestampMs), Rack: b.Rack, Endpoints: []endpoint{}, Features: map[string][2]int16{}}
	for _, e := range b.Endpoints {
		r.Endpoints = append(r.Endpoints, endpoint{e.Listener, e.Protocol, e.Host, e.Port})
	}
	for name, f := range b.Features {
		r.Features[name] = [2]int16{f.Min, f.Max}
	}
	return r, nil
}

type assignedPartition struct {
	Partition int32   `json:"partition"`
	Replicas  []int32 `json:"replicas"`
	Adding    []int32 `json:"adding_replicas,omitempty"`
	Removing  []int32 `json:"removing_replicas,omitempty"`
}

type assignment struct {
	Version    int32               `json:"version"`
	ID         *string             `json:"topic_id"`
	Partitions []assignedPartition `json:"partitions"`
}

func topic(n node) (any, error) {
	t, err := zkstate.DecodeTopicAssignment(n.data)
	if err != nil {
		return nil, err
	}
	a := assignment{Version: t.Version, Partitions: []assignedPartition{}}
	if t.ID != (zkstate.TopicID{}) {
		id := t.ID.String()
		a.ID = &id
	}
	for _, p := range slices.Sorted(maps.Keys(t.Partitions)) {
		of := t.Partitions[p]
		a.Partitions = append(a.Partitions, assignedPartition{p, of.Replicas, of.Adding, of.Removing})
	}
	return a, nil
}

type state struct {
	Leader          int32   `json:"leader"`
	LeaderEpoch     int32   `json:"leader_epoch"`
	ISR             []int32 `json:"isr"`
	PartitionEpoch  int32   `json:"partition_epoch"`
	ControllerEpoch int32   `json:"controller_epoch"`
	Recovering      bool    `json:"recovering"`
}

func partitionState(n node) (any, error) {
	s, err := zkstate.DecodePartitionState(n.data)
	return state{s.Leader, s.LeaderEpoch, s.ISR, n.stat.Version, s.ControllerEpoch, s.Recovering}, err
}

func controller(n node) (any, error) {
	c, err := zkstate.DecodeController(n.data)
	return struct {
		Broker     int32  `json:"broker"`
		Since      string `json:"since"`
		KRaftEpoch int32  `json:"kraft_epoch"`
	}{c.BrokerID, at(c.TimestampMs), c.KRaftEpoch}, err
}

func configuration(n node) (any, error) {
	c, err := zkstate.DecodeEntityConfig(n.data)
	settings := map[string]string{}
	for name, value := range c {
		settings[name] = told(name, value)
	}
	return map[string]any{"settings": settings}, err
}

const hidden = "(hidden)"

// told is what may be told of a setting.
func told(name, value string) string {
	if !strings.HasPrefix(name, "SCRAM-SHA-") {
		if strings.Contains(value, "encryptedPassword:") {
			return hidden
		}
		return value
	}
	for field := range strings.SplitSeq(value, ",") {
		if strings.HasPrefix(field, "iterations=") {
			return field + " " + hidden
		}
	}
	return hidden
}

func token(n node) (any, error) {
	t, err := zkstate.DecodeToken(n.data)
	return struct {
		ID        string   `json:"id"`
		Owner     string   `json:"owner"`
		Requester string   `json:"requester"`
		Renewers  []string `json:"renewers"`
		Issued    string   `json:"issued_at"`
		Expires   string   `json:"expires_at"`
		Latest    string   `json:"renewable_until"`
	}{t.ID, t.Owner, t.Requester, append([]string{}, t.Renewers...), at(t.IssuedMs), at(t.ExpiresMs), at(t.ExpiresAtMs)}, err
}

type entry struct {
	Principal  string `json:"principal"`
	Host       string `json:"host"`
	Operation  string `json:"operation"`
	Permission string `json:"permission"`
}

func accessList(pattern string) func(n node) (any, error) {
	return func(n node) (any, error) {
		list, err := zkstate.DecodeACL(n.data)
		entries := []entry{}
		for _, e := range list {
			entries = append(entries, entry{e.Principal, e.Host, e.Operation, e.Permission})
		}
		return struct {
			Type    string  `json:"resource_type"`
			Name    string  `json:"resource"`
			Pattern string  `json:"pattern"`
			Entries []entry `json:"entries"`
		}{n.names[0], n.names[1], pattern, entries}, err
	}
}

func aclChange(r zkstate.Resource, err error) (any, error) {
	return map[string]any{"resource_type": string(r.Type), "resource": r.Name, "prefixed": r.Prefixed}, err
}
