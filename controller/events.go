package controller

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/zkstate"
)

// Event is something that happened outside of the core.
type Event interface{ event() }

// SessionReady says that the broker is registered in this ZooKeeper session: the core stands for election.
type SessionReady struct {
	Session int64
	// Generation counts the sessions of this process; batches carry it back, so that none runs in a later session.
	Generation int
}

// SessionExpired says that the session is over. It pre-empts everything: the controllership ends, a running procedure
// is abandoned, and the requests that wait are answered.
type SessionExpired struct {
	// Session is the one that is over; 0 means the present one, whichever it is.
	Session int64
}

// NodeChanged is a watch that fired.
type NodeChanged struct{ Path string }

// ZKDone carries the results of the batch with this tag.
type ZKDone struct {
	Tag     uint64
	Results []zkstate.Result
	// Err is not nil when nothing can be said of single operations: the session is gone, or a multi failed.
	Err error
}

// BrokerAnswered carries the response to a control request.
type BrokerAnswered struct {
	BrokerID    int32
	BrokerEpoch int64
	Request     kmsg.Request
	Response    kmsg.Response
}

// TimerFired says that the timer set under this id has run out.
type TimerFired struct{ ID TimerID }

// Requested is a request of a broker or an administrator, to be answered under this id exactly once.
type Requested struct {
	ID      uint64
	Request kmsg.Request
}

// UncleanElectionEnabled says that unclean.leader.election.enable became true: for one topic, or for the cluster's
// default when Topic is empty.
type UncleanElectionEnabled struct{ Topic string }

func (SessionReady) event()           {}
func (SessionExpired) event()         {}
func (NodeChanged) event()            {}
func (ZKDone) event()                 {}
func (BrokerAnswered) event()         {}
func (TimerFired) event()             {}
func (Requested) event()              {}
func (UncleanElectionEnabled) event() {}

// Effect is something that the core wants done.
type Effect interface{ effect() }

// ZKBatch asks for ZooKeeper operations. There is at most one batch outstanding, and its ZKDone resumes the core.
type ZKBatch struct {
	Tag uint64
	Ops []zkstate.Op
	// Multi makes the batch all or nothing; otherwise each operation stands for itself.
	Multi bool
	// Fence is the version of /controller_epoch that every write must find; -1 for none (only before the election).
	Fence int32
	// Generation is that of the session to which the batch belongs.
	Generation int
}

// Connect says that a broker is to be reached at this endpoint; a Send follows only after it.
type Connect struct{ To Endpoint }

// Disconnect says that this registration of a broker is over: requests that wait for it are dropped.
type Disconnect struct {
	BrokerID    int32
	BrokerEpoch int64
}

// Send queues a control request for a broker. It is repeated until it is answered or the broker is disconnected.
type Send struct {
	BrokerID    int32
	BrokerEpoch int64
	Request     kmsg.Request
}

// Answer answers the request with this id.
type Answer struct {
	ID       uint64
	Response kmsg.Response
}

// SetTimer asks for a TimerFired; setting an id again replaces what was set.
type SetTimer struct {
	ID    TimerID
	After time.Duration
}

// StopTimers drops every timer.
type StopTimers struct{}

// StatusChanged reports who the controller is, to this broker's knowledge.
type StatusChanged struct {
	// ControllerID is the broker that owns /controller, -1 if nobody does.
	ControllerID int32
	// Active is true while this broker is the controller and holds the whole state.
	Active bool
	// Epoch is the controller epoch; 0 unless Active.
	Epoch int32
}

// Log is a line for the log, in the core's own order.
type Log struct {
	Level   LogLevel
	Message string
}

// LogLevel says how loud a line is.
type LogLevel int8

// The levels that the core uses.
const (
	LogDebug LogLevel = iota
	LogInfo
	LogWarn
	LogError
)

func (ZKBatch) effect()       {}
func (Connect) effect()       {}
func (Disconnect) effect()    {}
func (Send) effect()          {}
func (Answer) effect()        {}
func (SetTimer) effect()      {}
func (StopTimers) effect()    {}
func (StatusChanged) effect() {}
func (Log) effect()           {}

// TimerID names a timer.
type TimerID int8

// The timers of the core.
const (
	// TimerRebalance starts a round of automatic preferred-leader election.
	TimerRebalance TimerID = iota + 1
	// TimerElect makes the core stand for election again after an attempt that failed for another reason than a rival.
	TimerElect
	// TimerDeletion retries topic deletion after a broker refused to delete a replica.
	TimerDeletion
)

// Endpoint is where the controller reaches one registration of a broker.
type Endpoint struct {
	BrokerID    int32
	BrokerEpoch int64
	Listener    string
	Protocol    string // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
	Host        string
	Port        int32
}
