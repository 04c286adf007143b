package group

import (
	"encoding/binary"
	"math"
)

// subscriptions are the topics that the members of a consumer group want: while
// they are wanted, their offsets do not expire and cannot be deleted. nil when
// that is not known: other protocols, or a member that says what cannot be read.
func (g *group) subscriptions() map[string]bool {
	if !g.isConsumers() {
		return nil
	}
	topics := map[string]bool{}
	if len(g.order) == 0 {
		return topics
	}
	if g.protocol == nil {
		return nil
	}
	for _, m := range g.order {
		if !readSubscription(m.metadata(*g.protocol), topics) {
			return nil
		}
	}
	return topics
}

// readSubscription adds the topics of a consumer's subscription to topics. All
// versions begin as version 0 does: version, topic names.
func readSubscription(b []byte, topics map[string]bool) bool {
	if len(b) < 6 || int16(binary.BigEndian.Uint16(b)) < 0 {
		return false
	}
	count := binary.BigEndian.Uint32(b[2:])
	b = b[6:]
	if count > math.MaxInt32 || int(count) > len(b)/2 {
		return false
	}
	for range count {
		if len(b) < 2 {
			return false
		}
		n := int(int16(binary.BigEndian.Uint16(b)))
		if n < 0 || n > len(b)-2 {
			return false
		}
		topics[string(b[2:2+n])] = true
		b = b[2+n:]
	}
	return true
}
