package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Span is the time from when a request was sent until its answer came, on the one clock of the history. What became of a request happened within it; of one whose outcome nobody knows, at
// any time after it was sent.
type Span struct{ Sent, Answered time.Duration }

// before tells whether all of s was over when o began.
func (s Span) before(o Span) bool { return s.Answered < o.Sent }

// Place is a partition of a topic.
type Place struct {
	Topic     string
	Partition int32
}

func (p Place) String() string { return fmt.Sprintf("%s-%d", p.Topic, p.Partition) }

// Assignment is the answer to a member that asked what is its own in a generation.
type Assignment struct {
	Group, Member string
	Instance      string // empty: a dynamic member
	Generation    int32
	Places        []Place
	Span
}

// who is the member for as long as it has its part: a static one may come again under another id.
func (a *Assignment) who() string { return cmp.Or(a.Instance, a.Member) }

// Fate is what a client knows of a request that should change something.
type Fate int8

// The fates.
const (
	Unknown Fate = iota // no answer, or one that does not tell
	Done
	Refused // nothing was changed
)

// Commit is one offset that a client wanted to be stored.
type Commit struct {
	Group, Member, Instance string
	Generation              int32 // negative: not as a member
	Place                   Place
	Offset                  int64
	Fate                    Fate
	Span
}

// Fetch is one stored offset as a client was told it, -1 for none.
type Fetch struct {
	Group  string
	Place  Place
	Offset int64
	Span
}

// Groups is what clients of consumer groups were told. Offsets that belong to transactions are not in it.
type Groups struct {
	Assignments []Assignment
	Commits     []Commit
	Fetches     []Fetch
}

// JudgeGroups returns one line for each fault:
//
//   - a partition that two members had in one generation
//   - a generation that began after a later one
//   - a commit that was taken from a generation after a later one had begun, or from a static member after another had come in its place
//   - a fetched offset that no commit explains: of those that may have been the last to take effect before the answer, none stored it. So a commit that was acknowledged is never lost, and
//     none goes back unless a client stored a lower one
func JudgeGroups(h Groups) []string {
	var faults tally
	judgeOwners(h.Assignments, &faults)
	judgeGenerations(h.Assignments, &faults)
	judgeStaleCommits(h, &faults)
	judgeOffsets(h, &faults)
	return faults.lines()
}

func judgeOwners(assignments []Assignment, faults *tally) {
	type part struct {
		group      string
		generation int32
		place      Place
	}
	owners := map[part]string{}
	for i := range assignments {
		a := &assignments[i]
		for _, p := range a.Places {
			key := part{a.Group, a.Generation, p}
			switch owner, owned := owners[key]; {
			case !owned:
				owners[key] = a.who()
			case owner != a.who():
				faults.about("group "+a.Group, "owned twice", "%v in generation %d by %s and %s", p, a.Generation, owner, a.who())
			}
		}
	}
}

func judgeGenerations(assignments []Assignment, faults *tally) {
	for group, list := range byGroup(assignments, func(a *Assignment) string { return a.Group }) {
		began := generations(list)
		for _, a := range list {
			if g := began.latest(a.Sent); g > a.Generation {
				faults.about("group "+group, "generation", "%d is told to %s after %d had begun", a.Generation, a.who(), g)
			}
		}
	}
}

// judgeStaleCommits looks for commits that were taken from who was not entitled to them any more.
func judgeStaleCommits(h Groups, faults *tally) {
	assigned := byGroup(h.Assignments, func(a *Assignment) string { return a.Group })
	for group, commits := range byGroup(h.Commits, func(c *Commit) string { return c.Group }) {
		began := generations(assigned[group])
		for _, c := range commits {
			if c.Fate != Done || c.Generation < 0 {
				continue
			}
			if g := began.latest(c.Sent); g > c.Generation {
				faults.about("group "+group, "stale commit", "of %s in generation %d was taken after %d had begun", c.Member, c.Generation, g)
			}
			if successor := replaced(assigned[group], c); successor != "" {
				faults.about("group "+group, "fenced commit", "of %s was taken after %s had come as %q", c.Member, successor, c.Instance)
			}
		}
	}
}

// replaced is the member that had come in the place of a static one before it sent a commit; empty if there is none.
func replaced(assigned []*Assignment, c *Commit) string {
	if c.Instance == "" {
		return ""
	}
	latest := &Assignment{Member: c.Member}
	known := false
	for _, a := range assigned {
		if a.Instance == c.Instance && a.Answered < c.Sent && a.Answered >= latest.Answered {
			latest = a
		}
		known = known || a.Instance == c.Instance && a.Member == c.Member && a.Answered < c.Sent
	}
	if !known || latest.Member == c.Member {
		return ""
	}
	return latest.Member
}

// timeline is when generations are known to have begun.
type timeline []struct {
	at      time.Duration
	highest int32
}

func generations(assigned []*Assignment) timeline {
	list := slices.Clone(assigned)
	slices.SortFunc(list, func(a, b *Assignment) int { return cmp.Compare(a.Answered, b.Answered) })
	line := make(timeline, 0, len(list)+1)
	highest := int32(-1)
	for _, a := range list {
		highest = max(highest, a.Generation)
		line = append(line, struct {
			at      time.Duration
			highest int32
		}{a.Answered, highest})
	}
	return line
}

// latest is the highest generation that had begun before a moment, -1 for none.
func (t timeline) latest(moment time.Duration) int32 {
	i, _ := slices.BinarySearchFunc(t, moment, func(e struct {
		at      time.Duration
		highest int32
	}, m time.Duration) int {
		return cmp.Compare(e.at, m)
	})
	if i == 0 {
		return -1
	}
	return t[i-1].highest
}

func byGroup[T any](list []T, of func(*T) string) map[string][]*T {
	groups := map[string][]*T{}
	for i := range list {
		name := of(&list[i])
		groups[name] = append(groups[name], &list[i])
	}
	return groups
}

// judgeOffsets takes each partition of each group for a register: a fetch finds what the last commit left.
func judgeOffsets(h Groups, faults *tally) {
	type register struct {
		group string
		place Place
	}
	commits := map[register][]*Commit{}
	for i := range h.Commits {
		if c := &h.Commits[i]; c.Fate != Refused {
			key := register{c.Group, c.Place}
			commits[key] = append(commits[key], c)
		}
	}
	for i := range h.Fetches {
		f := &h.Fetches[i]
		list := commits[register{f.Group, f.Place}]
		if last := overwriting(list, f.Span); !explained(list, last, f) {
			faults.about("group "+f.Group, "offset", "%v is %d at %v, which no commit explains; %s", f.Place, f.Offset, f.Answered.Round(time.Millisecond), last.told())
		}
	}
}

// overwriting is the acknowledged commit that was sent last of those that were over before a fetch; nil if there is none.
func overwriting(list []*Commit, f Span) *Commit {
	var last *Commit
	for _, c := range list {
		if c.Fate == Done && c.before(f) && (last == nil || c.Sent > last.Sent) {
			last = c
		}
	}
	return last
}

// explained tells whether a fetch may have found what it did. A commit is out of the question when it was sent after the answer, or was over before the last acknowledged one was sent.
func explained(list []*Commit, last *Commit, f *Fetch) bool {
	if last == nil && f.Offset == -1 {
		return true
	}
	for _, c := range list {
		switch {
		case c.Offset != f.Offset, c.Sent > f.Answered:
		case last == nil, c.Fate == Unknown, !c.before(last.Span):
			return true
		}
	}
	return false
}

func (c *Commit) told() string {
	if c == nil {
		return "none was acknowledged before"
	}
	return fmt.Sprintf("%d was acknowledged at %v", c.Offset, c.Answered.Round(time.Millisecond))
}
