package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/metadata"
	"barnabas/broker/partition"
)

// placed tells a partition that exists elsewhere from one that exists nowhere:
// the replicas here know only of themselves, and answer
// UNKNOWN_TOPIC_OR_PARTITION to both.
func placed(s *metadata.Snapshot, topic string, id int32, err error) error {
	if errors.Is(err, kerr.UnknownTopicOrPartition) && s.Partition(topic, id) != nil {
		return kerr.NotLeaderForPartition
	}
	return err
}

// currentLeader is the newer of what the partition itself said of its leader (an
// epoch of -1 says nothing) and what the metadata knows: the controller's orders
// and its updates arrive one after the other, and a client must not be sent back
// to a leader that it comes from.
func currentLeader(s *metadata.Snapshot, topic string, id, leader, epoch int32) (int32, int32) {
	if p := s.Partition(topic, id); p != nil && p.LeaderEpoch > epoch {
		return p.Leader, p.LeaderEpoch
	}
	if epoch >= 0 {
		return leader, epoch
	}
	return partition.None, partition.None
}

// brokerEndpoint is where a broker is reached by a listener; the broker is nil
// if it is not.
func brokerEndpoint(s *metadata.Snapshot, id int32, listener string) (metadata.Endpoint, *metadata.Broker) {
	b := s.Brokers[id]
	if b == nil {
		return metadata.Endpoint{}, nil
	}
	e, found := b.Endpoint(listener)
	if !found {
		return e, nil
	}
	return e, b
}
