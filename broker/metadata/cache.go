package metadata

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Cache holds the newest Snapshot. Invariants, kept here:
//
//   - The controller epoch never goes back: an update of an older controller
//     is refused whole.
//   - While one controller speaks, the leader epoch of a partition of one topic
//     id never goes back: a state older than the one known is passed over, so
//     that clients are not sent back in time. A new controller is believed.
//   - A snapshot in the hands of a reader never changes; an update copies what
//     it touches: the list of live brokers, and the shards and topics named.
//   - A topic without partitions is not there.
//   - What was told to an earlier registration of this broker is forgotten when
//     a later one is first addressed (KIP-380): the controller then tells all
//     there is, but names no topic that was deleted in between.
type Cache struct {
	current atomic.Pointer[Snapshot]

	apply       sync.Mutex // one update at a time; readers do not take it
	brokerEpoch int64      // guarded by apply: of the registration last addressed; 0 if none was
}

// NewCache returns a cache that knows of no broker, topic or controller.
func NewCache() *Cache {
	c := &Cache{}
	c.current.Store(emptySnapshot())
	return c
}

// Load returns the newest snapshot.
func (c *Cache) Load() *Snapshot { return c.current.Load() }

// Apply takes over one UpdateMetadata request and returns the partitions that
// it deleted. As in Kafka's ZooKeeper mode the list of live brokers is always
// whole and replaces the old one, while partition states are added to those
// known; what is gone is named with the leader LeaderDuringDelete.
//
// It fails with STALE_CONTROLLER_EPOCH, and changes nothing, if a controller
// with a higher epoch has spoken before. The request is not kept.
func (c *Cache) Apply(req *kmsg.UpdateMetadataRequest) ([]TopicPartition, error) {
	c.apply.Lock()
	defer c.apply.Unlock()
	old := c.Load()
	if req.ControllerEpoch < old.ControllerEpoch {
		return nil, fmt.Errorf("metadata update of controller %d with epoch %d, but epoch %d has been seen: %w",
			req.ControllerID, req.ControllerEpoch, old.ControllerEpoch, kerr.StaleControllerEpoch)
	}
	begin := old
	reborn := false
	// A new controller first tells of brokers alone; that is not yet all there is.
	if len(req.TopicStates)+len(req.PartitionStates) > 0 && req.BrokerEpoch > c.brokerEpoch {
		reborn = c.brokerEpoch > 0
		c.brokerEpoch = req.BrokerEpoch
	}
	if reborn {
		begin = emptySnapshot()
	}
	u := newUpdate(begin)
	if req.ControllerEpoch == old.ControllerEpoch {
		u.told = old
	}
	u.next.ControllerEpoch = req.ControllerEpoch
	u.next.ControllerID = max(req.ControllerID, NoController)
	u.next.Brokers = liveBrokers(req)
	u.next.brokerIDs = slices.Sorted(maps.Keys(u.next.Brokers))
	for i := range req.PartitionStates { // before version 5: not grouped, no ids
		p := &req.PartitionStates[i]
		u.set(p.Topic, TopicID{}, p)
	}
	for i := range req.TopicStates {
		t := &req.TopicStates[i]
		if len(t.PartitionStates) == 0 {
			continue
		}
		u.identify(t.Topic, t.TopicID)
		for j := range t.PartitionStates {
			u.set(t.Topic, t.TopicID, &t.PartitionStates[j])
		}
	}
	next, deleted := u.finish()
	if reborn {
		deleted = gone(old, next)
	}
	c.current.Store(next)
	return deleted, nil
}

// gone lists the partitions that one snapshot has and the next has not.
func gone(old, next *Snapshot) []TopicPartition {
	var list []TopicPartition
	for t := range old.Topics() {
		for _, p := range t.Partitions {
			if next.Partition(t.Name, p.ID) == nil {
				list = append(list, TopicPartition{t.Name, p.ID})
			}
		}
	}
	return list
}

// update builds the next snapshot: shards and topics are copied when first
// touched.
type update struct {
	next         *Snapshot
	told         *Snapshot // what the same controller said before; nil if it is a new one
	ownedNames   [shardCount]bool
	ownedIDs     [shardCount]bool
	ownedTopics  map[string]*Topic
	deleted      []TopicPartition
	deletedIndex map[TopicPartition]int
}

func newUpdate(old *Snapshot) *update {
	return &update{
		next: &Snapshot{
			byName: old.byName,
			byID:   old.byID,
			topics: old.topics,
		},
		ownedTopics:  make(map[string]*Topic),
		deletedIndex: make(map[TopicPartition]int),
	}
}

func (u *update) names(name string) map[string]*Topic {
	i := nameShard(name)
	if !u.ownedNames[i] {
		u.ownedNames[i] = true
		u.next.byName[i] = cloneOrMake(u.next.byName[i])
	}
	return u.next.byName[i]
}

func (u *update) ids(id TopicID) map[TopicID]*Topic {
	i := idShard(id)
	if !u.ownedIDs[i] {
		u.ownedIDs[i] = true
		u.next.byID[i] = cloneOrMake(u.next.byID[i])
	}
	return u.next.byID[i]
}

func cloneOrMake[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return make(map[K]V)
	}
	return maps.Clone(m)
}

// topic returns this update's own copy of a topic, or nil if there is none.
func (u *update) topic(name string) *Topic {
	if t := u.ownedTopics[name]; t != nil {
		return t
	}
	old := u.next.Topic(name)
	if old == nil {
		return nil
	}
	return u.adopt(&Topic{Name: name, ID: old.ID, Partitions: slices.Clone(old.Partitions)})
}

func (u *update) adopt(t *Topic) *Topic {
	u.ownedTopics[t.Name] = t
	u.names(t.Name)[t.Name] = t
	if t.ID != (TopicID{}) {
		u.ids(t.ID)[t.ID] = t
	}
	return t
}

// identify gives a known topic the id that the controller names, none
// included: a controller that does not know of ids takes them away. One id after
// another is another topic: nothing of the old one is left.
func (u *update) identify(name string, id TopicID) {
	old := u.next.Topic(name)
	if old == nil || old.ID == id {
		return
	}
	t := u.topic(name)
	u.forgetID(t)
	if t.ID != (TopicID{}) && id != (TopicID{}) {
		t.Partitions = nil
	}
	t.ID = id
	if id != (TopicID{}) {
		u.ids(id)[id] = t
	}
}

func (u *update) forgetID(t *Topic) {
	if t.ID != (TopicID{}) && u.next.TopicByID(t.ID) == t {
		delete(u.ids(t.ID), t.ID)
	}
}

func (u *update) set(name string, id TopicID, p *kmsg.UpdateMetadataRequestTopicPartition) {
	tp := TopicPartition{Topic: name, Partition: p.Partition}
	if p.Leader == LeaderDuringDelete {
		u.remove(tp)
		return
	}
	if i, found := u.deletedIndex[tp]; found { // deleted and made anew in one request
		u.deleted[i].Partition = -1
		delete(u.deletedIndex, tp)
	}
	if u.goesBack(name, id, p) {
		return
	}
	t := u.topic(name)
	if t == nil {
		t = u.adopt(&Topic{Name: name, ID: id})
		u.next.topics++
	}
	state := &Partition{
		ID:              p.Partition,
		Leader:          p.Leader,
		LeaderEpoch:     p.LeaderEpoch,
		ControllerEpoch: p.ControllerEpoch,
		PartitionEpoch:  p.ZKVersion,
		ISR:             slices.Clone(p.ISR),
		Replicas:        slices.Clone(p.Replicas),
		OfflineReplicas: slices.Clone(p.OfflineReplicas),
	}
	i, found := t.search(p.Partition)
	if found {
		t.Partitions[i] = state
		return
	}
	t.Partitions = slices.Insert(t.Partitions, i, state)
}

func (u *update) goesBack(name string, id TopicID, p *kmsg.UpdateMetadataRequestTopicPartition) bool {
	if u.told == nil || id == (TopicID{}) {
		return false
	}
	t := u.told.TopicByID(id)
	if t == nil || t.Name != name {
		return false
	}
	old := t.Partition(p.Partition)
	return old != nil && old.LeaderEpoch > p.LeaderEpoch
}

func (u *update) remove(tp TopicPartition) {
	if _, found := u.deletedIndex[tp]; !found {
		u.deletedIndex[tp] = len(u.deleted)
		u.deleted = append(u.deleted, tp)
	}
	t := u.topic(tp.Topic)
	if t == nil {
		return
	}
	i, found := t.search(tp.Partition)
	if found {
		t.Partitions = slices.Delete(t.Partitions, i, i+1)
	}
	if len(t.Partitions) == 0 {
		u.forgetID(t)
		delete(u.names(tp.Topic), tp.Topic)
		delete(u.ownedTopics, tp.Topic)
		u.next.topics--
	}
}

func (u *update) finish() (*Snapshot, []TopicPartition) {
	deleted := slices.DeleteFunc(u.deleted, func(tp TopicPartition) bool { return tp.Partition < 0 })
	return u.next, deleted
}

var protocolNames = [...]string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}

// liveBrokers reads the endpoints as each version carries them: one plaintext
// address (version 0), endpoints by security protocol whose listeners bear the
// protocol's name (1 and 2), named listeners (3 and later).
func liveBrokers(req *kmsg.UpdateMetadataRequest) map[int32]*Broker {
	brokers := make(map[int32]*Broker, len(req.LiveBrokers))
	for i := range req.LiveBrokers {
		from := &req.LiveBrokers[i]
		b := &Broker{ID: from.ID, Rack: from.Rack}
		if req.Version == 0 {
			b.Endpoints = []Endpoint{{Listener: protocolNames[0], Host: from.Host, Port: from.Port}}
		}
		for _, e := range from.Endpoints {
			listener := e.ListenerName
			if req.Version < 3 && e.SecurityProtocol >= 0 && int(e.SecurityProtocol) < len(protocolNames) {
				listener = protocolNames[e.SecurityProtocol]
			}
			b.Endpoints = append(b.Endpoints, Endpoint{Listener: listener, Host: e.Host, Port: e.Port, SecurityProtocol: e.SecurityProtocol})
		}
		brokers[b.ID] = b
	}
	return brokers
}
