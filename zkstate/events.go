package zkstate

import "fmt"

// EventKind says what an Event reports.
type EventKind int8

// The kinds of events. The first six are about the session, the rest about a node on which a watch was left.
const (
	// SessionStarted: a session that did not exist before is usable. What was ephemeral or watched before is gone.
	SessionStarted EventKind = iota + 1
	// Connected: the session of before is usable again; its ephemeral nodes and watches hold.
	Connected
	// Disconnected: no server is reachable. The session may still be alive.
	Disconnected
	// SessionLapsed: no server was reachable for the session's timeout. The ensemble may have ended the session, and
	// others may act on it; nobody can say before a server is reached.
	SessionLapsed
	// SessionExpired: the session is over. Operations of it fail; another session follows.
	SessionExpired
	// AuthFailed: the ensemble refused the credentials. The client goes on trying.
	AuthFailed
	NodeCreated
	NodeDeleted
	NodeDataChanged
	NodeChildrenChanged
)

var eventNames = map[EventKind]string{SessionStarted: "session started", Connected: "connected", Disconnected: "disconnected",
	SessionLapsed: "session lapsed", SessionExpired: "session expired", AuthFailed: "authentication failed",
	NodeCreated: "node created", NodeDeleted: "node deleted", NodeDataChanged: "node data changed",
	NodeChildrenChanged: "node children changed"}

func (k EventKind) String() string {
	if s, ok := eventNames[k]; ok {
		return s
	}
	return fmt.Sprintf("event(%d)", int8(k))
}

// Event tells of a change. It is a hint to look, not a description: a watch fires once, and what changed twice is
// reported once. Who acts on an event reads the state again, leaving the next watch in the same call.
type Event struct {
	Kind       EventKind
	Path       string // of the node events
	Session    int64  // session id
	Generation int    // of the session in which it happened
}
