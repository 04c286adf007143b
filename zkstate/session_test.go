package zkstate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var began = time.Unix(1_700_000_000, 0)

func kinds(steps []step) (out []any) {
	for _, s := range steps {
		if s.kind == announce {
			out = append(out, s.event.Kind)
		} else {
			out = append(out, s.kind)
		}
	}
	return out
}

func TestASessionThatSurvivesABrokenConnectionIsAnnouncedAsConnectedAgain(t *testing.T) {
	var s sessionCore
	assert.Equal(t, []any{dial}, kinds(s.start()))
	assert.Equal(t, []any{open, SessionStarted}, kinds(s.handle(report{kind: established, generation: 1, session: 7, timeout: 6 * time.Second}, began)))
	assert.Equal(t, []any{shut, Disconnected, wake}, kinds(s.handle(report{kind: lost, generation: 1}, began)))
	assert.Empty(t, s.handle(report{kind: lost, generation: 1}, began), "told twice, acted once")
	assert.Equal(t, []any{open, Connected}, kinds(s.handle(report{kind: established, generation: 1, session: 7, timeout: 6 * time.Second}, began)))
}

func TestASessionOutOfReachForItsTimeoutLapsesOnce(t *testing.T) {
	var s sessionCore
	s.start()
	s.handle(report{kind: established, generation: 1, session: 7, timeout: 6 * time.Second}, began)
	lostSteps := s.handle(report{kind: lost, generation: 1}, began)
	assert.Equal(t, began.Add(6*time.Second), lostSteps[2].at)
	assert.Equal(t, []any{wake}, kinds(s.handle(report{kind: tick}, began.Add(5*time.Second))), "too early: wake again")
	assert.Equal(t, []any{SessionLapsed}, kinds(s.handle(report{kind: tick}, began.Add(6*time.Second))))
	assert.Empty(t, s.handle(report{kind: tick}, began.Add(7*time.Second)))
}

func TestAnExpiredSessionEndsItsOperationsBeforeTheNextIsDialled(t *testing.T) {
	var s sessionCore
	s.start()
	s.handle(report{kind: established, generation: 1, session: 7, timeout: time.Second}, began)
	s.handle(report{kind: lost, generation: 1}, began)
	steps := s.handle(report{kind: expired, generation: 1}, began)
	assert.Equal(t, []any{shut, end, SessionExpired, dial}, kinds(steps))
	assert.Equal(t, Event{Kind: SessionExpired, Session: 7, Generation: 1}, steps[2].event)
	assert.Empty(t, s.handle(report{kind: established, generation: 1, session: 7}, began), "news of a dead generation")
	next := s.handle(report{kind: established, generation: 2, session: 8}, began)
	assert.Equal(t, Event{Kind: SessionStarted, Session: 8, Generation: 2}, next[1].event)
}

func TestASessionThatEndedBeforeItWasUsableIsNeverAnnounced(t *testing.T) {
	var s sessionCore
	s.start()
	assert.Equal(t, []any{shut, end, dial}, kinds(s.handle(report{kind: expired, generation: 1}, began)))
}

func TestRefusedCredentialsDoNotEndTheTrying(t *testing.T) {
	var s sessionCore
	s.start()
	assert.Equal(t, []any{AuthFailed}, kinds(s.handle(report{kind: refused, generation: 1}, began)))
	assert.Equal(t, []any{open, SessionStarted}, kinds(s.handle(report{kind: established, generation: 1, session: 1}, began)))
}

// Whatever the order of reports, the invariants at the head of session.go hold.
func TestSessionInvariantsHoldUnderAnyOrderOfReports(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s sessionCore
		s.start()
		now, passing, live := began, false, 0
		var last EventKind
		for range 200 {
			now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			rep := report{kind: reportKind(r.IntN(int(tick) + 1)), generation: s.generation - r.IntN(2), session: int64(r.IntN(9) + 1), timeout: 2 * time.Second}
			for _, step := range s.handle(rep, now) {
				switch step.kind {
				case open:
					require.False(t, passing)
					passing = true
				case shut:
					passing = false
				case end:
					require.False(t, passing, "operations of an ended generation must not pass")
				case announce:
					k := step.event.Kind
					switch k {
					case SessionStarted:
						require.Greater(t, step.event.Generation, live)
						live = step.event.Generation
						require.NotContains(t, []EventKind{Connected, Disconnected, SessionLapsed, SessionStarted}, last)
					case Connected:
						require.Contains(t, []EventKind{Disconnected, SessionLapsed}, last)
					case SessionLapsed:
						require.Equal(t, Disconnected, last)
					}
					if k != AuthFailed {
						require.Equal(t, live, step.event.Generation)
						last = k
					}
				}
			}
		}
	}
}

func TestOrderKeepsApartWhatTouchesTheSameNodeOrOneAboveIt(t *testing.T) {
	ops := []Op{
		Create("/a", nil),              // 0
		Create("/a/b", nil),            // 1 after its parent
		Create("/a/c", nil),            // 2 after its parent, beside 1
		Get("/a/b"),                    // 3 after 1
		Set("/a/b", nil, AnyVersion),   // 4 after 1 and 3
		Children("/a"),                 // 5 after everything written below
		Delete("/a/b", AnyVersion),     // 6
		Delete("/a", AnyVersion),       // 7 after all
		Get("/x"),                      // 8 alone
		Get("/x"),                      // 9 alone: both read
		CreateSequential("/q/n-", nil), // 10
		CreateSequential("/q/n-", nil), // 11 free: the server makes the names
	}
	waits := order(ops)
	for i, ws := range waits {
		for _, w := range ws {
			assert.Less(t, w, i)
		}
	}
	assert.Contains(t, waits[1], 0)
	assert.NotContains(t, waits[2], 1)
	assert.Contains(t, waits[3], 1)
	assert.Subset(t, waits[4], []int{1, 3})
	assert.Subset(t, waits[5], []int{1, 2, 4})
	assert.Contains(t, waits[6], 4)
	assert.Contains(t, waits[6], 5, "the list of children stands before the delete")
	assert.Subset(t, waits[7], []int{1, 2, 5, 6})
	assert.Empty(t, waits[8])
	assert.Empty(t, waits[9])
	assert.Empty(t, waits[11])
}

func TestConnectStringsAreTakenApartAsKafkaDoes(t *testing.T) {
	for in, want := range map[string]struct {
		servers []string
		chroot  string
	}{
		"zk1:2181,zk2:2182/kafka/one": {[]string{"zk1:2181", "zk2:2182"}, "/kafka/one"},
		"zk1":                         {[]string{"zk1:2181"}, ""},
		"zk1, zk2:1/":                 {[]string{"zk1:2181", "zk2:1"}, ""},
		"[::1]:2181,[fe80::1]":        {[]string{"[::1]:2181", "[fe80::1]:2181"}, ""},
	} {
		servers, chroot, err := parseConnect(in)
		require.NoError(t, err, in)
		assert.Equal(t, want.servers, servers, in)
		assert.Equal(t, want.chroot, chroot, in)
	}
	for _, bad := range []string{"", "/kafka", "host:port", "h:0", ":2181", "h/../x", "h//x//y"} {
		_, _, err := parseConnect(bad)
		assert.Error(t, err, bad)
	}
}

func TestPathsGoThroughTheChrootAndBack(t *testing.T) {
	assert.Equal(t, "/a/b", fromChroot("/c", underChroot("/c", "/a/b")))
	assert.Equal(t, "/", fromChroot("/c", underChroot("/c", "/")))
	assert.Equal(t, "/c", underChroot("/c", "/"))
}

func TestBatchesHoldNeighbouringWritesWithinBoundsAndWaitForWhatTheirWritesWaitFor(t *testing.T) {
	ops := []Op{Create("/a", nil), Create("/a/b", nil), Get("/a"), Set("/a", nil, 0), {Kind: OpSetACL, Path: "/a"}, Set("/a/b", nil, 0)}
	batches := batch(ops)
	assert.Equal(t, []span{{0, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}}, batches)
	waits := batchWaits(batches, order(ops))
	assert.Empty(t, waits[0])
	assert.Equal(t, []int{0}, waits[1])
	assert.Subset(t, waits[2], []int{0, 1})
	for i, ws := range waits {
		for _, w := range ws {
			assert.Less(t, w, i)
		}
	}

	many := make([]Op, 250)
	for i := range many {
		many[i] = Set("/x", make([]byte, 10), AnyVersion)
	}
	assert.Equal(t, []span{{0, 100}, {100, 200}, {200, 250}}, batch(many))
	big := []Op{Set("/x", make([]byte, maxBatchBytes), 0), Set("/y", nil, 0), Set("/z", nil, 0)}
	assert.Equal(t, []span{{0, 1}, {1, 3}}, batch(big))
	assert.Empty(t, batch(nil))
}
