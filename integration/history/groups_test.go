package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func at(sent, answered int) Span {
	return Span{time.Duration(sent) * time.Millisecond, time.Duration(answered) * time.Millisecond}
}

func places(partitions ...int32) (list []Place) {
	for _, p := range partitions {
		list = append(list, Place{"t", p})
	}
	return list
}

func assigned(member string, generation int32, s Span, partitions ...int32) Assignment {
	return Assignment{Group: "g", Member: member, Generation: generation, Places: places(partitions...), Span: s}
}

func static(instance string, a Assignment) Assignment {
	a.Instance = instance
	return a
}

func commit(member string, generation int32, offset int64, fate Fate, s Span) Commit {
	return Commit{Group: "g", Member: member, Generation: generation, Place: Place{"t", 0}, Offset: offset, Fate: fate, Span: s}
}

func fetched(offset int64, s Span) Fetch {
	return Fetch{Group: "g", Place: Place{"t", 0}, Offset: offset, Span: s}
}

func requireFaults(t *testing.T, faults []string, want string) {
	t.Helper()
	if want == "" {
		require.Empty(t, faults)
		return
	}
	require.Len(t, faults, 1, "%v", faults)
	require.Contains(t, faults[0], want)
}

func TestBadOwnershipIsFound(t *testing.T) {
	for _, c := range []struct {
		name string
		told []Assignment
		want string
	}{
		{"each has its own", []Assignment{assigned("a", 1, at(0, 1), 0, 1), assigned("b", 1, at(0, 1), 2)}, ""},
		{"told again", []Assignment{assigned("a", 1, at(0, 1), 0), assigned("a", 1, at(5, 6), 0)}, ""},
		{"eager: all change hands in the next generation", []Assignment{assigned("a", 1, at(0, 1), 0), assigned("b", 2, at(2, 3), 0)}, ""},
		{"cooperative: kept, and one given up before another has it", []Assignment{
			assigned("a", 1, at(0, 1), 0, 1), assigned("a", 2, at(2, 3), 0), assigned("b", 2, at(2, 3)), assigned("a", 3, at(4, 5), 0), assigned("b", 3, at(4, 5), 1)}, ""},
		{"a static member under its next id", []Assignment{static("i", assigned("i-1", 1, at(0, 1), 0)), static("i", assigned("i-2", 1, at(2, 3), 0))}, ""},
		{"another group", []Assignment{assigned("a", 1, at(0, 1), 0), {Group: "h", Member: "b", Generation: 1, Places: places(0), Span: at(0, 1)}}, ""},
		{"two members", []Assignment{assigned("a", 1, at(0, 1), 0, 1), assigned("b", 1, at(0, 1), 1, 2)}, "group g: owned twice: t-1 in generation 1 by a and b"},
		{"two static members", []Assignment{static("i", assigned("i-1", 1, at(0, 1), 0)), static("j", assigned("j-1", 1, at(2, 3), 0))}, "t-0 in generation 1 by i and j"},
		{"cooperative: another has it while it is kept", []Assignment{assigned("a", 2, at(2, 3), 0, 1), assigned("b", 2, at(2, 3), 1)}, "t-1 in generation 2 by a and b"},
		{"a generation that comes again with others", []Assignment{assigned("a", 4, at(0, 1), 0), assigned("b", 4, at(9, 10), 0)}, "owned twice"},
		{"a generation after a later one", []Assignment{assigned("a", 2, at(0, 1), 0), assigned("b", 1, at(2, 3), 1)}, "group g: generation: 1 is told to b after 2 had begun"},
		{"a late answer about a generation that was current when it was asked for", []Assignment{assigned("a", 2, at(0, 5), 0), assigned("b", 1, at(2, 9), 1)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) { requireFaults(t, JudgeGroups(Groups{Assignments: c.told}), c.want) })
	}
}

func TestCommitsOfWhoIsNotEntitledAreFound(t *testing.T) {
	second := []Assignment{assigned("a", 1, at(0, 1), 0), assigned("b", 2, at(10, 11), 0)}
	again := []Assignment{static("i", assigned("i-1", 1, at(0, 1), 0)), static("i", assigned("i-2", 1, at(10, 11), 0))}
	old := commit("i-1", 1, 5, Done, at(12, 13))
	old.Instance = "i"
	for _, c := range []struct {
		name   string
		told   []Assignment
		commit Commit
		want   string
	}{
		{"of the present generation", second, commit("b", 2, 5, Done, at(12, 13)), ""},
		{"sent before the next generation began", second, commit("a", 1, 5, Done, at(9, 13)), ""},
		{"refused", second, commit("a", 1, 5, Refused, at(12, 13)), ""},
		{"of no member", second, commit("", -1, 5, Done, at(12, 13)), ""},
		{"of the last generation", second, commit("a", 1, 5, Done, at(12, 13)), "group g: stale commit: of a in generation 1 was taken after 2 had begun"},
		{"of a static member in whose place another has come", again, old, `fenced commit: of i-1 was taken after i-2 had come as "i"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			requireFaults(t, JudgeGroups(Groups{Assignments: c.told, Commits: []Commit{c.commit}}), c.want)
		})
	}
}

func TestOffsetsThatNoCommitExplainsAreFound(t *testing.T) {
	first, second := commit("a", 1, 10, Done, at(0, 1)), commit("a", 1, 20, Done, at(2, 3))
	for _, c := range []struct {
		name    string
		commits []Commit
		fetch   Fetch
		want    string
	}{
		{"nothing was stored", nil, fetched(-1, at(0, 1)), ""},
		{"the last", []Commit{first, second}, fetched(20, at(4, 5)), ""},
		{"the one before, while the last was underway", []Commit{first, second}, fetched(10, at(2, 5)), ""},
		{"the last, before it was acknowledged", []Commit{first, second}, fetched(20, at(2, 2)), ""},
		{"one whose outcome nobody knows, long after", []Commit{first, commit("a", 1, 15, Unknown, at(2, 3))}, fetched(15, at(40, 50)), ""},
		{"the one before, as nobody knows of the last", []Commit{first, commit("a", 1, 15, Unknown, at(2, 3))}, fetched(10, at(40, 50)), ""},
		{"reset: a client stored a lower one", []Commit{first, second, commit("", -1, 3, Done, at(4, 5))}, fetched(3, at(6, 7)), ""},
		{"either of two at the same time", []Commit{first, commit("b", 1, 5, Done, at(0, 9))}, fetched(10, at(10, 11)), ""},
		{"lost", []Commit{first}, fetched(-1, at(4, 5)), "group g: offset: t-0 is -1 at 5ms, which no commit explains; 10 was acknowledged at 1ms"},
		{"gone back", []Commit{first, second}, fetched(10, at(4, 5)), "t-0 is 10 at 5ms, which no commit explains; 20 was acknowledged at 3ms"},
		{"a refused one", []Commit{first, commit("a", 1, 20, Refused, at(2, 3))}, fetched(20, at(4, 5)), "t-0 is 20"},
		{"one of the future", []Commit{first, commit("a", 1, 20, Done, at(6, 7))}, fetched(20, at(4, 5)), "t-0 is 20"},
		{"out of nowhere", nil, fetched(7, at(4, 5)), "none was acknowledged before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			requireFaults(t, JudgeGroups(Groups{Commits: c.commits, Fetches: []Fetch{c.fetch}}), c.want)
		})
	}
}
