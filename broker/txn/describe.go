package txn

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Describe shows one id: INVALID_REQUEST for the empty one,
// TRANSACTIONAL_ID_NOT_FOUND.
func (c *Core) Describe(id string) Description {
	d := Description{ID: id}
	t := c.ids[id]
	switch {
	case id == "":
		d.Err = kerr.InvalidRequest
	case t == nil:
		d.Err = kerr.TransactionalIDNotFound
	default:
		d.Producer, d.State, d.TimeoutMs, d.StartMs, d.Partitions = t.now.producer, t.now.state, t.now.timeoutMs, t.now.startMs, t.now.partitions
		if t.left != nil {
			d.Partitions = slices.Clone(t.now.partitions)
			d.Partitions = slices.DeleteFunc(d.Partitions, func(tp TopicPartition) bool { _, left := t.left[tp]; return !left })
		}
	}
	return d
}

// List shows the ids that pass the filters, sorted.
func (c *Core) List(nowMs int64, req *ListRequest) []Listed {
	if req.NoState && len(req.States) == 0 {
		return nil
	}
	var list []Listed
	for _, t := range c.matching(func(t *transaction) bool { return req.passes(nowMs, &t.now) }) {
		list = append(list, Listed{ID: t.id, ProducerID: t.now.producer.ID, State: t.now.state})
	}
	return list
}

func (req *ListRequest) passes(nowMs int64, s *status) bool {
	switch {
	case len(req.ProducerIDs) > 0 && !slices.Contains(req.ProducerIDs, s.producer.ID):
		return false
	case len(req.States) > 0 && !slices.Contains(req.States, s.state):
		return false
	}
	return req.LongerMs < 0 || nowMs-s.startMs > req.LongerMs
}
