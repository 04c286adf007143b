package partition

// Reader is the consumer a replica is chosen for.
type Reader struct {
	RackID     string
	ClientID   string
	ClientAddr string
}

// ReplicaView is a replica of which a consumer could read.
type ReplicaView struct {
	ID            int32
	Rack          string
	LogEndOffset  int64
	CaughtUpAgoMs int64 // milliseconds since it was last seen at the leader's end
}

// Selector chooses where a consumer should read (KIP-392). It returns the id of
// one of the given replicas, or false for "stay with the leader". The views are
// ordered by id and contain the leader.
type Selector interface {
	Select(r Reader, leader int32, replicas []ReplicaView) (int32, bool)
}

// RackAware prefers an in-sync replica in the reader's own rack, the one whose
// log reaches furthest: Kafka's RackAwareReplicaSelector.
type RackAware struct{}

// Select implements Selector. The leader wins when it is in the reader's rack;
// otherwise the furthest replica there, the lowest id among equals.
func (RackAware) Select(r Reader, leader int32, replicas []ReplicaView) (int32, bool) {
	if r.RackID == "" {
		return 0, false
	}
	best, found := ReplicaView{}, false
	for _, v := range replicas {
		if v.Rack != r.RackID {
			continue
		}
		if v.ID == leader {
			return leader, true
		}
		if !found || v.LogEndOffset > best.LogEndOffset {
			best, found = v, true
		}
	}
	return best.ID, found
}
