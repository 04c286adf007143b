package tools

import (
	"context"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/admin/cluster"
)

// topicsByBroker asks brokers, as --bootstrap-server wants it.
type topicsByBroker struct {
	client  *kgo.Client
	cluster *cluster.Cluster
}

func (s *topicsByBroker) close() { s.client.Close() }

func topicExists(err error) bool { return errors.Is(err, kerr.TopicAlreadyExists) }

func (s *topicsByBroker) create(a topicAsked) error {
	spec := cluster.TopicSpec{Name: a.topic, Partitions: a.partitions, ReplicationFactor: a.replicationFactor, Assignment: a.assignment}
	for _, c := range a.configs {
		name, value, _ := strings.Cut(c, "=")
		spec.Settings = append(spec.Settings, cluster.Setting{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	return s.cluster.CreateTopic(context.Background(), spec, false)
}

func (s *topicsByBroker) alter(a topicAsked, names []string) error {
	described, err := s.describe(names, a)
	if err != nil {
		return err
	}
	var list []cluster.Enlargement
	for _, d := range described {
		e := cluster.Enlargement{Topic: d.Name, Count: a.partitions}
		if len(a.assignment) > len(d.Partitions) {
			e.Assignment = a.assignment[len(d.Partitions):]
		}
		list = append(list, e)
	}
	return s.cluster.Enlarge(context.Background(), list, false)
}

func (s *topicsByBroker) delete(names []string) error {
	return s.cluster.DeleteTopics(context.Background(), names)
}

func (s *topicsByBroker) list() ([]string, map[string]bool, error) {
	names, err := s.cluster.TopicNames(context.Background())
	return names, nil, err
}

func (s *topicsByBroker) describe(names []string, a topicAsked) ([]topicDescription, error) {
	read := func() ([]cluster.Topic, error) { return s.cluster.Topics(context.Background(), names) }
	if a.topicID != "" {
		id, err := base64.RawURLEncoding.DecodeString(a.topicID)
		if err != nil || len(id) != 16 {
			return nil, &badArgument{"Input string `" + a.topicID + "` decoded as " + strconv.Itoa(len(id)) + " bytes, which is not equal to the expected 16 bytes of a base64-encoded UUID"}
		}
		read = func() ([]cluster.Topic, error) { return s.cluster.TopicByID(context.Background(), [16]byte(id)) }
	}
	topics, err := read()
	if err != nil {
		return nil, err
	}
	described := make([]topicDescription, len(topics))
	for i, t := range topics {
		described[i].Topic = t
	}
	return described, nil
}
