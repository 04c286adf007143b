package group

import "fmt"

// State is where a group stands.
type State int8

// The states; doc.go says what each means.
const (
	Empty State = iota
	PreparingRebalance
	CompletingRebalance
	Stable
	Dead
)

var stateNames = [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}

// String is the state's name as ListGroups and DescribeGroups give it.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return "Unknown"
	}
	return stateNames[s]
}

// before lists, for each state, those that it may be entered from.
var before = [...][]State{
	Empty:               {PreparingRebalance},
	PreparingRebalance:  {Stable, CompletingRebalance, Empty},
	CompletingRebalance: {PreparingRebalance},
	Stable:              {CompletingRebalance},
	Dead:                {Stable, PreparingRebalance, CompletingRebalance, Empty, Dead},
}

func mayFollow(from, to State) bool {
	for _, s := range before[to] {
		if s == from {
			return true
		}
	}
	return false
}

// enter changes the state. A change that is not in the table is a broken
// invariant of this package: it must not be carried on with.
func (g *group) enter(to State, nowMs int64) {
	if !mayFollow(g.state, to) {
		panic(fmt.Sprintf("group %q cannot go from %s to %s", g.name, g.state, to))
	}
	g.state = to
	g.stateMs = nowMs
}
