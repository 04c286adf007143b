package tools

import (
	"context"
	"encoding/base64"
	"errors"
	"sort"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicsByBroker asks brokers, as --bootstrap-server wants it.
type topicsByBroker struct {
	client *kgo.Client
}

// adminTimeoutMs is how long the controller may take until what was asked is done on all brokers.
const adminTimeoutMs = 30000

func (s *topicsByBroker) close() { s.client.Close() }

func topicExists(err error) bool { return errors.Is(err, kerr.TopicAlreadyExists) }

func (s *topicsByBroker) create(a topicAsked) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = adminTimeoutMs
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = a.topic, a.partitions, a.replicationFactor
	for i, replicas := range a.assignment {
		r := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		r.Partition, r.Replicas = int32(i), replicas
		t.ReplicaAssignment = append(t.ReplicaAssignment, r)
	}
	for _, c := range a.configs {
		name, value, _ := strings.Cut(c, "=")
		e := kmsg.NewCreateTopicsRequestTopicConfig()
		e.Name, e.Value = strings.TrimSpace(name), kmsg.StringPtr(strings.TrimSpace(value))
		t.Configs = append(t.Configs, e)
	}
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(context.Background(), s.client)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		if err := answered(t.ErrorCode, t.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}

func (s *topicsByBroker) alter(a topicAsked, names []string) error {
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = adminTimeoutMs
	described, err := s.describe(names, a)
	if err != nil {
		return err
	}
	for _, d := range described {
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = d.name, a.partitions
		if len(a.assignment) > len(d.partitions) {
			for _, replicas := range a.assignment[len(d.partitions):] {
				r := kmsg.NewCreatePartitionsRequestTopicAssignment()
				r.Replicas = replicas
				t.Assignment = append(t.Assignment, r)
			}
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(context.Background(), s.client)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		if err := answered(t.ErrorCode, t.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}

func (s *topicsByBroker) delete(names []string) error {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = adminTimeoutMs
	for _, name := range names {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.TopicNames, req.Topics = append(req.TopicNames, name), append(req.Topics, t)
	}
	resp, err := req.RequestWith(context.Background(), s.client)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		if err := answered(t.ErrorCode, t.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}

func (s *topicsByBroker) metadata(topics []kmsg.MetadataRequestTopic) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = topics
	return req.RequestWith(context.Background(), s.client)
}

func (s *topicsByBroker) list() ([]string, map[string]bool, error) {
	resp, err := s.metadata(nil)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, t := range resp.Topics {
		if t.Topic != nil && t.ErrorCode == 0 || t.ErrorCode == kerr.LeaderNotAvailable.Code {
			names = append(names, *t.Topic)
		}
	}
	return names, nil, nil
}

func (s *topicsByBroker) describe(names []string, a topicAsked) ([]topicDescription, error) {
	var asked []kmsg.MetadataRequestTopic
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		asked = append(asked, t)
	}
	if a.topicID != "" {
		id, err := base64.RawURLEncoding.DecodeString(a.topicID)
		if err != nil || len(id) != 16 {
			return nil, &badArgument{"Input string `" + a.topicID + "` decoded as " + strconv.Itoa(len(id)) + " bytes, which is not equal to the expected 16 bytes of a base64-encoded UUID"}
		}
		t := kmsg.NewMetadataRequestTopic()
		t.TopicID = [16]byte(id)
		asked = []kmsg.MetadataRequestTopic{t}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	resp, err := s.metadata(asked)
	if err != nil {
		return nil, err
	}
	alive := map[int32]bool{}
	for _, b := range resp.Brokers {
		alive[b.NodeID] = true
	}
	var described []topicDescription
	for _, t := range resp.Topics {
		if err := answered(t.ErrorCode, nil); err != nil || t.Topic == nil {
			return nil, err
		}
		d := topicDescription{name: *t.Topic}
		if t.TopicID != ([16]byte{}) {
			d.id = base64.RawURLEncoding.EncodeToString(t.TopicID[:])
		}
		for _, p := range t.Partitions {
			d.partitions = append(d.partitions, partitionDescription{id: p.Partition, leader: p.Leader, replicas: p.Replicas, isr: p.ISR, leaderAlive: alive[p.Leader]})
		}
		sort.Slice(d.partitions, func(i, j int) bool { return d.partitions[i].id < d.partitions[j].id })
		described = append(described, d)
	}
	sort.Slice(described, func(i, j int) bool { return described[i].name < described[j].name })
	if err := s.addConfigs(described); err != nil {
		return nil, err
	}
	return described, s.addMoves(described)
}

// addConfigs reads the topics' own settings and the minimum ISR that holds for them.
func (s *topicsByBroker) addConfigs(described []topicDescription) error {
	req := kmsg.NewPtrDescribeConfigsRequest()
	at := map[string]*topicDescription{}
	for i := range described {
		at[described[i].name] = &described[i]
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, described[i].name
		req.Resources = append(req.Resources, r)
	}
	resp, err := req.RequestWith(context.Background(), s.client)
	if err != nil {
		return err
	}
	for _, r := range resp.Resources {
		if err := answered(r.ErrorCode, r.ErrorMessage); err != nil {
			return err
		}
		d := at[r.ResourceName]
		if d == nil {
			continue
		}
		for _, c := range r.Configs {
			value := ""
			if c.Value != nil {
				value = *c.Value
			}
			if c.Name == "min.insync.replicas" {
				d.minISR, _ = strconv.Atoi(value)
			}
			if c.Source == kmsg.ConfigSourceDynamicTopicConfig || resp.Version == 0 && !c.IsDefault {
				d.configs = append(d.configs, c.Name+"="+value)
			}
		}
	}
	return nil
}

// addMoves marks the replicas that a reassignment adds and removes. The replication factor counts without the added ones.
func (s *topicsByBroker) addMoves(described []topicDescription) error {
	req := kmsg.NewPtrListPartitionReassignmentsRequest()
	req.TimeoutMillis = adminTimeoutMs
	moving := map[string]map[int32]kmsg.ListPartitionReassignmentsResponseTopicPartition{}
	resp, err := req.RequestWith(context.Background(), s.client)
	if err == nil && resp.ErrorCode == 0 {
		for _, t := range resp.Topics {
			moving[t.Topic] = map[int32]kmsg.ListPartitionReassignmentsResponseTopicPartition{}
			for _, p := range t.Partitions {
				moving[t.Topic][p.Partition] = p
			}
		}
	}
	for i := range described {
		d := &described[i]
		for j := range d.partitions {
			p := &d.partitions[j]
			if m, ok := moving[d.name][p.id]; ok {
				p.adding, p.removing = m.AddingReplicas, m.RemovingReplicas
			}
			if j == 0 {
				d.replicationFactor = len(p.replicas) - len(p.adding)
			}
		}
	}
	return nil
}
