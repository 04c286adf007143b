package txn

import "fmt"

// State is where the transaction of a transactional id stands. The numbers are
// those in the log.
type State int8

// The states.
const (
	Empty             State = iota // no transaction since the producer was initialised
	Ongoing                        // has partitions
	PrepareCommit                  // decided, markers are underway
	PrepareAbort                   // decided, markers are underway
	CompleteCommit                 // all markers are written
	CompleteAbort                  // all markers are written
	Dead                           // expired; a tombstone is being written
	PrepareEpochFence              // the producer is being fenced, on the way to PrepareAbort; never in the log
)

var stateNames = [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"}

// String is the name as DescribeTransactions and ListTransactions give it.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return "Unknown"
	}
	return stateNames[s]
}

// ParseState finds the state of a name.
func ParseState(name string) (State, bool) {
	for s, n := range stateNames {
		if n == name {
			return State(s), true
		}
	}
	return 0, false
}

// before lists, for each state, those that it may be entered from.
var before = [...][]State{
	Empty:             {Empty, CompleteCommit, CompleteAbort},
	Ongoing:           {Ongoing, Empty, CompleteCommit, CompleteAbort},
	PrepareCommit:     {Ongoing},
	PrepareAbort:      {Ongoing, PrepareEpochFence},
	CompleteCommit:    {PrepareCommit},
	CompleteAbort:     {PrepareAbort},
	Dead:              {Empty, CompleteAbort, CompleteCommit},
	PrepareEpochFence: {Ongoing},
}

func mayFollow(from, to State) bool {
	for _, s := range before[to] {
		if s == from {
			return true
		}
	}
	return false
}

// mustFollow holds every change to the table. One that is not in it is a broken
// invariant of this package: it must not be carried on with.
func mustFollow(id string, from, to State) {
	if !mayFollow(from, to) {
		panic(fmt.Sprintf("transactional id %q cannot go from %s to %s", id, from, to))
	}
}

// decided tells that markers are, or have to be, on their way.
func (s State) decided() bool { return s == PrepareCommit || s == PrepareAbort }

// mayExpire tells that an id in this state is forgotten when it is idle.
func (s State) mayExpire() bool { return s == Empty || s == CompleteCommit || s == CompleteAbort }
