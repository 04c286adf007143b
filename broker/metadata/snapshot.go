// Package metadata keeps the cluster as this broker knows it: which brokers
// are alive, which broker is the controller, and who leads each partition.
//
// The controller tells every broker by UpdateMetadata. What it tells is kept
// as one immutable Snapshot behind one atomic pointer: a reader loads the
// pointer once and works on what it got, so an answer never mixes two states
// of the cluster, and readers never wait for a writer.
package metadata

import (
	"iter"
	"slices"
	"sync"
)

// NoLeader is the leader of a partition that has none.
const NoLeader int32 = -1

// LeaderDuringDelete is the leader that the controller names for a partition
// that is being deleted (KIP-101 era convention of UpdateMetadata).
const LeaderDuringDelete int32 = -2

// NoController is the controller id while no controller is known.
const NoController int32 = -1

// TopicID is the KIP-516 id of one incarnation of a topic. The zero id means
// that the topic has none (it was made below inter.broker.protocol 2.8).
type TopicID [16]byte

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Endpoint is one advertised listener of a broker.
type Endpoint struct {
	Listener         string
	Host             string
	Port             int32
	SecurityProtocol int16 // 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL
}

// Broker is a live broker.
type Broker struct {
	ID        int32
	Rack      *string
	Endpoints []Endpoint
}

// Endpoint returns the broker's endpoint of a listener.
func (b *Broker) Endpoint(listener string) (Endpoint, bool) {
	for _, e := range b.Endpoints {
		if e.Listener == listener {
			return e, true
		}
	}
	return Endpoint{}, false
}

// Partition is the state of one partition as the controller last told it.
type Partition struct {
	ID              int32
	Leader          int32 // NoLeader when there is none
	LeaderEpoch     int32
	ControllerEpoch int32 // of the controller that chose the leader
	PartitionEpoch  int32 // the version of the partition's state znode
	ISR             []int32
	Replicas        []int32
	OfflineReplicas []int32 // replicas on dead brokers or failed log directories
}

// Topic is a topic with those of its partitions that the controller has told
// of, in order of their numbers. While a topic grows or is being deleted there
// may be gaps.
type Topic struct {
	Name       string
	ID         TopicID
	Partitions []*Partition
}

// Partition returns the partition with that number, or nil.
func (t *Topic) Partition(id int32) *Partition {
	if id >= 0 && int(id) < len(t.Partitions) && t.Partitions[id].ID == id {
		return t.Partitions[id] // no gap below it: the usual case
	}
	if i, found := t.search(id); found {
		return t.Partitions[i]
	}
	return nil
}

func (t *Topic) search(id int32) (int, bool) {
	return slices.BinarySearchFunc(t.Partitions, id, func(p *Partition, id int32) int {
		return int(int64(p.ID) - int64(id))
	})
}

// shardCount splits the topics so that an update copies the maps of those
// shards alone that hold a topic it touches: one topic out of 10,000 costs a
// copy of some forty map entries, not of ten thousand.
const shardCount = 256

type topicsByName [shardCount]map[string]*Topic

type topicsByID [shardCount]map[TopicID]*Topic

func nameShard(name string) uint8 {
	h := uint32(2166136261) // FNV-1a, folded to a byte
	for i := 0; i < len(name); i++ {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return uint8(h ^ h>>8 ^ h>>16 ^ h>>24)
}

// idShard needs no hash: topic ids are random.
func idShard(id TopicID) uint8 { return id[0] ^ id[15] }

// Snapshot is the cluster at one moment. Nothing reachable from it changes.
type Snapshot struct {
	ControllerID    int32 // NoController when unknown
	ControllerEpoch int32 // of the last update
	Brokers         map[int32]*Broker

	brokerIDs []int32 // ascending
	byName    topicsByName
	byID      topicsByID
	topics    int

	// sorted is filled by the first reader that asks; most snapshots are
	// replaced before anyone lists all topics.
	sorted struct {
		once   sync.Once
		topics []*Topic
	}
}

func emptySnapshot() *Snapshot {
	return &Snapshot{ControllerID: NoController, ControllerEpoch: -1}
}

// Topic returns the topic of that name, or nil.
func (s *Snapshot) Topic(name string) *Topic { return s.byName[nameShard(name)][name] }

// TopicByID returns the topic with that id, or nil. The zero id is no id.
func (s *Snapshot) TopicByID(id TopicID) *Topic { return s.byID[idShard(id)][id] }

// Partition returns the state of a partition, or nil.
func (s *Snapshot) Partition(topic string, id int32) *Partition {
	t := s.Topic(topic)
	if t == nil {
		return nil
	}
	return t.Partition(id)
}

// TopicCount is the number of topics.
func (s *Snapshot) TopicCount() int { return s.topics }

// Topics lists the topics by name, ascending.
func (s *Snapshot) Topics() iter.Seq[*Topic] {
	s.sort()
	return slices.Values(s.sorted.topics)
}

// BrokerIDs lists the live brokers, ascending. The caller must not change it.
func (s *Snapshot) BrokerIDs() []int32 { return s.brokerIDs }

func (s *Snapshot) sort() {
	s.sorted.once.Do(func() {
		topics := make([]*Topic, 0, s.topics)
		for i := range s.byName {
			for _, t := range s.byName[i] {
				topics = append(topics, t)
			}
		}
		slices.SortFunc(topics, func(a, b *Topic) int {
			if a.Name < b.Name {
				return -1
			}
			return 1 // names are unique
		})
		s.sorted.topics = topics
	})
}
