package cluster

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topic is a topic with its partitions, by number.
type Topic struct {
	Name              string
	ID                string // 22 characters of base64; "" where brokers know of none
	Internal          bool
	ReplicationFactor int // of the first partition, without the replicas that a reassignment adds
	Partitions        []Partition
	Overrides         []Setting         // the topic's own settings, in the broker's order
	Settings          map[string]string // all that hold for it; nil where they were not or may not be read
	MinISR            int               // min.insync.replicas that holds for it; 0 where that is not known
}

// Partition is one partition of a topic.
type Partition struct {
	ID               int32
	Leader           int32 // -1: none
	LeaderEpoch      int32
	LeaderAlive      bool    // the leader is among the registered brokers
	Replicas         []int32 // the preferred leader first
	ISR              []int32
	Offline          []int32 // replicas on brokers or in directories that are out of use
	Adding, Removing []int32 // what a reassignment under way does
}

// Setting is a configuration key with its value.
type Setting struct{ Name, Value string }

func (s Setting) String() string { return s.Name + "=" + s.Value }

// Unavailable tells whether nobody can write to or read from the partition.
func (p Partition) Unavailable() bool { return p.Leader < 0 || !p.LeaderAlive }

// UnderReplicated tells whether a replica is out of sync that is not only being added.
func (p Partition) UnderReplicated() bool { return len(p.ISR) < len(p.Replicas)-len(p.Adding) }

// UnderMinISR tells whether acks=all is refused, AtMinISR whether one replica less would make it so.
func (p Partition) UnderMinISR(minISR int) bool { return len(p.ISR) < minISR }

// AtMinISR tells whether just as many replicas are in sync as there have to be.
func (p Partition) AtMinISR(minISR int) bool { return len(p.ISR) == minISR }

// Preferred is the replica that should lead; -1 for a partition without replicas.
func (p Partition) Preferred() int32 {
	if len(p.Replicas) == 0 {
		return -1
	}
	return p.Replicas[0]
}

// IsInternal tells whether a topic is one of the coordinators' own.
func IsInternal(name string) bool {
	return name == "__consumer_offsets" || name == "__transaction_state"
}

func (c *Cluster) metadata(ctx context.Context, topics []kmsg.MetadataRequestTopic) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = topics
	return req.RequestWith(ctx, c.client)
}

// TopicNames lists the topics that are there, by name.
func (c *Cluster) TopicNames(ctx context.Context) ([]string, error) {
	resp, err := c.metadata(ctx, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range resp.Topics {
		if t.Topic != nil && (t.ErrorCode == 0 || t.ErrorCode == kerr.LeaderNotAvailable.Code) {
			names = append(names, *t.Topic)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Topics describes topics by name; one that is not there is an error that names it.
func (c *Cluster) Topics(ctx context.Context, names []string) ([]Topic, error) {
	var asked []kmsg.MetadataRequestTopic
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		asked = append(asked, t)
	}
	return c.describeTopics(ctx, asked)
}

// TopicByID describes the topic with an id.
func (c *Cluster) TopicByID(ctx context.Context, id [16]byte) ([]Topic, error) {
	t := kmsg.NewMetadataRequestTopic()
	t.TopicID = id
	return c.describeTopics(ctx, []kmsg.MetadataRequestTopic{t})
}

func (c *Cluster) describeTopics(ctx context.Context, asked []kmsg.MetadataRequestTopic) ([]Topic, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	resp, err := c.metadata(ctx, asked)
	if err != nil {
		return nil, err
	}
	for _, t := range resp.Topics {
		if err := Answered(t.ErrorCode, nil); err != nil {
			return nil, err
		}
	}
	topics := topicsOf(resp)
	if err := addSettings(ctx, c.client, topics, nil); err != nil {
		return nil, err
	}
	moves, err := c.Moves(ctx)
	if err != nil {
		moves = nil // brokers of before 2.4, or a controller that changes: told without moves, as Kafka's tool does
	}
	addMoves(topics, moves)
	return topics, nil
}

// AllTopics describes all topics, with what is known of each: those that are just being made or deleted are left out.
func (c *Cluster) AllTopics(ctx context.Context) ([]Topic, error) {
	resp, err := c.metadata(ctx, nil)
	if err != nil {
		return nil, err
	}
	topics := topicsOf(resp)
	moves, err := c.Moves(ctx)
	if err != nil {
		return nil, err
	}
	addMoves(topics, moves)
	return topics, nil
}

// topicsOf are the topics of an answer, by name.
func topicsOf(resp *kmsg.MetadataResponse) []Topic {
	alive := map[int32]bool{}
	for _, b := range resp.Brokers {
		alive[b.NodeID] = true
	}
	var topics []Topic
	for _, t := range resp.Topics {
		if t.Topic == nil || t.ErrorCode != 0 {
			continue
		}
		d := Topic{Name: *t.Topic, Internal: t.IsInternal}
		if t.TopicID != ([16]byte{}) {
			d.ID = base64.RawURLEncoding.EncodeToString(t.TopicID[:])
		}
		for _, p := range t.Partitions {
			d.Partitions = append(d.Partitions, Partition{ID: p.Partition, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, LeaderAlive: alive[p.Leader], Replicas: p.Replicas, ISR: p.ISR, Offline: p.OfflineReplicas})
		}
		slices.SortFunc(d.Partitions, func(a, b Partition) int { return cmp.Compare(a.ID, b.ID) })
		topics = append(topics, d)
	}
	slices.SortFunc(topics, func(a, b Topic) int { return cmp.Compare(a.Name, b.Name) })
	return topics
}

// addSettings asks for the topics' settings: those named, or all.
func addSettings(ctx context.Context, via kmsg.Requestor, topics []Topic, names []string) error {
	req := kmsg.NewPtrDescribeConfigsRequest()
	at := map[string]*Topic{}
	for i := range topics {
		at[topics[i].Name] = &topics[i]
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, topics[i].Name, names
		req.Resources = append(req.Resources, r)
	}
	if len(topics) == 0 {
		return nil
	}
	resp, err := req.RequestWith(ctx, via)
	if err != nil {
		return err
	}
	for _, r := range resp.Resources {
		if err := Answered(r.ErrorCode, r.ErrorMessage); err != nil {
			return err
		}
		d := at[r.ResourceName]
		if d == nil {
			continue
		}
		d.Settings = map[string]string{}
		for _, s := range r.Configs {
			value := ""
			if s.Value != nil {
				value = *s.Value
			}
			d.Settings[s.Name] = value
			if s.Source == kmsg.ConfigSourceDynamicTopicConfig || resp.Version == 0 && !s.IsDefault {
				d.Overrides = append(d.Overrides, Setting{s.Name, value})
			}
		}
		d.MinISR, _ = strconv.Atoi(d.Settings["min.insync.replicas"])
	}
	return nil
}

// addMoves marks the replicas that a reassignment adds and removes.
func addMoves(topics []Topic, moves Moves) {
	for i := range topics {
		d := &topics[i]
		for j := range d.Partitions {
			p := &d.Partitions[j]
			if m, moving := moves.of(d.Name, p.ID); moving {
				p.Adding, p.Removing = m.Adding, m.Removing
			}
			if j == 0 {
				d.ReplicationFactor = len(p.Replicas) - len(p.Adding)
			}
		}
	}
}

// TopicSpec is a topic that is to be made.
type TopicSpec struct {
	Name              string
	Partitions        int32 // -1: the cluster's default, or Assignment is given
	ReplicationFactor int16 // -1: likewise
	Assignment        [][]int32
	Settings          []Setting
}

// CreateTopic makes a topic, or, with validateOnly, tells whether that would be done.
func (c *Cluster) CreateTopic(ctx context.Context, spec TopicSpec, validateOnly bool) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.ValidateOnly = TimeoutMs, validateOnly
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = spec.Name, spec.Partitions, spec.ReplicationFactor
	for i, replicas := range spec.Assignment {
		r := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		r.Partition, r.Replicas = int32(i), replicas
		t.ReplicaAssignment = append(t.ReplicaAssignment, r)
	}
	for _, s := range spec.Settings {
		e := kmsg.NewCreateTopicsRequestTopicConfig()
		e.Name, e.Value = s.Name, kmsg.StringPtr(s.Value)
		t.Configs = append(t.Configs, e)
	}
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		if err := Answered(t.ErrorCode, t.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}

// Enlargement gives a topic more partitions.
type Enlargement struct {
	Topic      string
	Count      int32     // in all
	Assignment [][]int32 // of those that are added; nil: the controller chooses
}

// Enlarge gives topics more partitions, or, with validateOnly, tells whether that would be done.
func (c *Cluster) Enlarge(ctx context.Context, list []Enlargement, validateOnly bool) error {
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis, req.ValidateOnly = TimeoutMs, validateOnly
	for _, e := range list {
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = e.Topic, e.Count
		for _, replicas := range e.Assignment {
			r := kmsg.NewCreatePartitionsRequestTopicAssignment()
			r.Replicas = replicas
			t.Assignment = append(t.Assignment, r)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		if err := Answered(t.ErrorCode, t.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}

// DeleteTopics deletes topics; the first that cannot be deleted is the error, the others are deleted nevertheless.
func (c *Cluster) DeleteTopics(ctx context.Context, names []string) error {
	failed, err := c.DeleteEachTopic(ctx, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		if failed[name] != nil {
			return failed[name]
		}
	}
	return nil
}

// DeleteEachTopic deletes topics and tells which of them cannot be deleted, and why.
func (c *Cluster) DeleteEachTopic(ctx context.Context, names []string) (failed map[string]error, err error) {
	failed = map[string]error{}
	if len(names) == 0 {
		return failed, nil
	}
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = TimeoutMs
	for _, name := range names {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.TopicNames, req.Topics = append(req.TopicNames, name), append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return nil, err
	}
	for _, t := range resp.Topics {
		if err := Answered(t.ErrorCode, t.ErrorMessage); err != nil && t.Topic != nil {
			failed[*t.Topic] = err
		}
	}
	return failed, nil
}

// NotFoundError names something that is not there.
type NotFoundError struct{ Kind, Name string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s %s does not exist", e.Kind, e.Name) }
