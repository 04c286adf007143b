package txn

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// outgoingMarker is a marker, or the part of one for the partitions that one
// broker leads, on its way there.
type outgoingMarker struct {
	from *shard
	*Marker
}

// sendMarker sends a marker to the leaders of its partitions. Partitions without a
// leader are given back at once, to be tried later.
func (c *Coordinator) sendMarker(s *shard, m *Marker) {
	parts := map[int32]*Marker{}
	var brokers []int32
	nowhere, unknown := m.part(), m.part()
	for _, tp := range m.Partitions {
		broker, exists := c.cluster.Leader(tp)
		part := nowhere
		switch {
		case !exists:
			part = unknown
		case broker != NoBroker:
			if part = parts[broker]; part == nil {
				part = m.part()
				parts[broker] = part
				brokers = append(brokers, broker)
			}
		}
		part.Partitions = append(part.Partitions, tp)
	}
	for _, broker := range brokers {
		c.markers.add(broker, outgoingMarker{s, parts[broker]})
	}
	marked(s, nowhere, slices.Repeat([]error{kerr.LeaderNotAvailable}, len(nowhere.Partitions)))
	marked(s, unknown, slices.Repeat([]error{ErrNoPartition}, len(unknown.Partitions)))
}

// part is the marker for none of its partitions.
func (m *Marker) part() *Marker {
	part := *m
	part.Partitions = nil
	return &part
}

func marked(s *shard, m *Marker, errs []error) {
	if len(m.Partitions) > 0 {
		s.Tell(func(core *Core, nowMs int64) { core.Marked(nowMs, m, errs) })
	}
}

// writeMarkers is one request of markers to one broker. Those whose coordinator
// was deposed since are left out: its successor sends them.
func (c *Coordinator) writeMarkers(ctx context.Context, broker int32, items []outgoingMarker) {
	items = slices.DeleteFunc(items, func(m outgoingMarker) bool { return m.from.Deposed() })
	if len(items) == 0 {
		return
	}
	markers := make([]*Marker, len(items))
	for i, m := range items {
		markers[i] = m.Marker
	}
	for i, errs := range c.cluster.WriteMarkers(ctx, broker, markers) {
		marked(items[i].from, markers[i], errs)
	}
}
