package zkstate

import "time"

// The session core decides what the life of sessions means: no I/O, no clock, no goroutine. The shell in client.go
// feeds it what the connection reports and obeys the steps it returns.
//
// Invariants:
//   - a generation begins when its session is usable for the first time (SessionStarted) and ends once (SessionExpired);
//     nothing that is reported about an earlier or ended generation has any effect
//   - operations pass only while a session is usable: between SessionStarted or Connected and the next Disconnected
//   - each Disconnected is followed by Connected, by SessionExpired, or by the end of the client; SessionLapsed comes
//     at most once between them
//   - after SessionExpired the next generation is dialled, for ever, until the client is closed

// phase is where the session of the current generation stands.
type phase int8

const (
	dialling     phase = iota // no session yet in this generation
	usable                    // connected, and authenticated if there are credentials
	disconnected              // there is a session, but no server is reachable
	closed
)

// report is what the shell tells the core.
type report struct {
	kind       reportKind
	generation int
	session    int64         // of established
	timeout    time.Duration // of established: what the ensemble granted
}

type reportKind int8

const (
	established reportKind = iota // the server confirmed the session, new or old
	lost                          // the connection broke
	expired                       // the server does not know the session any more
	refused                       // the server refused the credentials
	tick                          // time passed
	closing                       // the owner closes the client
)

// step is what the core wants done, in order.
type step struct {
	kind  stepKind
	event Event     // of announce
	at    time.Time // of wake
}

type stepKind int8

const (
	announce stepKind = iota // deliver the event
	open                     // let operations pass
	shut                     // hold operations back
	end                      // fail the operations of the generation, for good
	dial                     // open a connection for the generation now current
	wake                     // report a tick at that time
)

// sessionCore is the state of the machine.
type sessionCore struct {
	phase      phase
	generation int
	session    int64
	timeout    time.Duration
	lostAt     time.Time
	lapsed     bool
}

// start begins the first generation.
func (s *sessionCore) start() []step {
	s.generation = 1
	return []step{{kind: dial}}
}

func (s *sessionCore) announce(kind EventKind) step {
	return step{kind: announce, event: Event{Kind: kind, Session: s.session, Generation: s.generation}}
}

// handle takes one report at a time.
func (s *sessionCore) handle(r report, now time.Time) []step {
	if s.phase == closed {
		return nil
	}
	switch r.kind {
	case closing:
		s.phase = closed
		return []step{{kind: shut}, {kind: end}}
	case tick:
		return s.ticked(now)
	}
	if r.generation != s.generation {
		return nil
	}
	switch r.kind {
	case established:
		return s.established(r)
	case lost:
		if s.phase != usable {
			return nil
		}
		s.phase, s.lostAt, s.lapsed = disconnected, now, false
		return []step{{kind: shut}, s.announce(Disconnected), {kind: wake, at: now.Add(s.timeout)}}
	case refused:
		return []step{s.announce(AuthFailed)}
	case expired:
		return s.ended()
	}
	return nil
}

func (s *sessionCore) established(r report) []step {
	switch s.phase {
	case dialling:
		s.phase, s.session, s.timeout = usable, r.session, r.timeout
		return []step{{kind: open}, s.announce(SessionStarted)}
	case disconnected:
		s.phase, s.timeout = usable, r.timeout
		return []step{{kind: open}, s.announce(Connected)}
	}
	return nil
}

// ended closes the generation and begins the next. A session that ended before anybody could use it (it expired
// while its credentials were presented) was never announced, so its end is not either.
func (s *sessionCore) ended() []step {
	steps := []step{{kind: shut}, {kind: end}}
	if s.phase != dialling {
		steps = append(steps, s.announce(SessionExpired))
	}
	s.phase, s.session, s.lapsed = dialling, 0, false
	s.generation++
	return append(steps, step{kind: dial})
}

func (s *sessionCore) ticked(now time.Time) []step {
	if s.phase != disconnected || s.lapsed {
		return nil
	}
	if due := s.lostAt.Add(s.timeout); now.Before(due) {
		return []step{{kind: wake, at: due}}
	}
	s.lapsed = true
	return []step{s.announce(SessionLapsed)}
}
