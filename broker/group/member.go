package group

import "bytes"

// member is one member of a group. A request of it that waits is kept here, and
// answered by whoever takes the reply out.
type member struct {
	id         string
	instanceID *string // nil: dynamic
	clientID   string
	clientHost string

	rebalanceTimeoutMs int32
	sessionTimeoutMs   int32
	protocols          []Protocol
	assignment         []byte

	// fresh until its first generation: it does not know its id, so its silence
	// ends its waiting join (KAFKA-7610), not only its session.
	fresh   bool
	joining func(JoinResult) // nil: does not wait to join
	syncing func(SyncResult) // nil: does not wait for its assignment
	session *timer
}

func (m *member) isStatic() bool { return m.instanceID != nil }

// alive tells whether a session that runs out now is no reason to remove the
// member: it waits for us.
func (m *member) alive() bool { return !m.fresh && (m.joining != nil || m.syncing != nil) }

// metadata is what the member has to say in a protocol; nil if it does not speak
// it.
func (m *member) metadata(protocol string) []byte {
	for i := range m.protocols {
		if m.protocols[i].Name == protocol {
			return m.protocols[i].Metadata
		}
	}
	return nil
}

// matches tells whether the member says the same as before.
func (m *member) matches(protocols []Protocol) bool {
	if len(protocols) != len(m.protocols) {
		return false
	}
	for i := range protocols {
		if protocols[i].Name != m.protocols[i].Name || !bytes.Equal(protocols[i].Metadata, m.protocols[i].Metadata) {
			return false
		}
	}
	return true
}

// repeats tells whether the member names a protocol more than once.
func (m *member) repeats(protocol string) bool {
	named := 0
	for i := range m.protocols {
		if m.protocols[i].Name == protocol {
			named++
		}
	}
	return named > 1
}

// vote is the candidate that the member likes best.
func (m *member) vote(candidates map[string]bool) string {
	for i := range m.protocols {
		if candidates[m.protocols[i].Name] {
			return m.protocols[i].Name
		}
	}
	return ""
}
