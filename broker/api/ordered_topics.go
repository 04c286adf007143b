package api

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/metadata"
)

// orderedTopics are the topics that LeaderAndISR has named and UpdateMetadata has
// not yet: the controller sends the orders first. Between the two a leader can
// tell a follower of such a topic what its id means. It holds no more than the
// controller has named since its last update.
type orderedTopics struct {
	mu struct {
		sync.RWMutex
		names map[metadata.TopicID]string
	}
}

func newOrderedTopics() *orderedTopics {
	o := &orderedTopics{}
	o.mu.names = make(map[metadata.TopicID]string)
	return o
}

func (o *orderedTopics) add(req *kmsg.LeaderAndISRRequest, known *metadata.Snapshot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range req.TopicStates {
		t := &req.TopicStates[i]
		if t.TopicID != ([16]byte{}) && known.TopicByID(t.TopicID) == nil {
			o.mu.names[t.TopicID] = t.Topic
		}
	}
}

func (o *orderedTopics) caughtUp(req *kmsg.UpdateMetadataRequest) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range req.TopicStates {
		delete(o.mu.names, req.TopicStates[i].TopicID)
	}
}

func (o *orderedTopics) name(id metadata.TopicID) string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.mu.names[id]
}
