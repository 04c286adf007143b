package simulation

import (
	"time"

	"barnabas/zkstate"
)

// faults says which faults there are in a run, and how often.
type faults struct {
	every               time.Duration
	kinds               []func(*Sim, *node)
	lose, delay, repeat float64 // per message between nodes
}

func drawFaults(w *world) faults {
	f := faults{every: pick(w, []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second})}
	for _, kind := range []func(*Sim, *node){crash, powerCut, pause, breakConnection, cutFromZooKeeper, endSession, cutLink, isolate, deposeController, breakDisk, jumpClock} {
		if w.chance(0.6) {
			f.kinds = append(f.kinds, kind)
		}
	}
	f.lose = pick(w, []float64{0, 0.01, 0.1})
	f.delay = pick(w, []float64{0, 0.02, 0.2})
	f.repeat = pick(w, []float64{0, 0.02, 0.1})
	return f
}

// planFault lets faults happen until the storm is over.
func (s *Sim) planFault() {
	s.w.in(s.w.between(s.faults.every/2, 2*s.faults.every), func() {
		if s.calm {
			return
		}
		if len(s.faults.kinds) > 0 {
			kind, n := pick(s.w, s.faults.kinds), pick(s.w, s.nodes)
			s.act(func() { kind(s, n) })
		}
		s.planFault()
	})
}

// act lets a fault or a work happen, unless it is one of those left out. They are numbered, whether they happen or not.
func (s *Sim) act(do func()) {
	s.acts++
	if s.drop[s.acts] {
		return
	}
	s.happened = append(s.happened, s.acts)
	do()
}

// unlessCalm plans the end of a fault; heal ends them all by itself.
func (s *Sim) unlessCalm(after time.Duration, do func()) {
	s.w.in(after, func() {
		if !s.calm {
			do()
		}
	})
}

// crash kills a node and starts it again, often before ZooKeeper has noticed.
func crash(s *Sim, n *node) {
	if !n.up || s.quiet() {
		return
	}
	s.Done.Crashes++
	n.crash(processEnds)
	s.unlessCalm(s.w.between(50*time.Millisecond, 4*time.Second), n.startAgain)
}

func pause(s *Sim, n *node) {
	if s.quiet() {
		return
	}
	s.Done.Pauses++
	n.pause()
	s.unlessCalm(s.w.between(100*time.Millisecond, 5*time.Second), n.resume)
}

// breakConnection makes a node reconnect to ZooKeeper; its session lives.
func breakConnection(s *Sim, n *node) {
	if n.up {
		s.Done.Cuts++
		s.w.tell("node %d: loses its connection to ZooKeeper", n.id)
		n.zk.cut()
	}
}

func cutFromZooKeeper(s *Sim, n *node) {
	if !n.up || s.quiet() {
		return
	}
	s.Done.Cuts++
	s.w.tell("node %d: is cut from ZooKeeper", n.id)
	n.cutFromZK = true
	n.zk.cut()
	s.unlessCalm(s.w.between(time.Second, 5*time.Second), func() { n.cutFromZK = false })
}

// endSession ends a node's session at once, as an operator does who closes it by its id.
func endSession(s *Sim, n *node) {
	if n.up && n.zk.session != nil && !n.zk.session.expired && !s.quiet() {
		s.Done.Expiries++
		s.zk.expire(n.zk.session)
		if n.zk.connected {
			n.zk.cut()
		}
	}
}

func cutLink(s *Sim, n *node) { s.cutLink(n, pick(s.w, s.nodes), 500*time.Millisecond, 4*time.Second) }

// cutLink keeps two nodes from each other for some time.
func (s *Sim) cutLink(n, other *node, atLeast, atMost time.Duration) {
	link := [2]int32{min(n.id, other.id), max(n.id, other.id)}
	if n == other || s.cut[link] {
		return
	}
	s.Done.Cuts++
	s.w.tell("nodes %d and %d: cannot reach each other", n.id, other.id)
	s.cut[link] = true
	s.unlessCalm(s.w.between(atLeast, atMost), func() { delete(s.cut, link) })
}

// isolate cuts a node from all others, but not from ZooKeeper nor from clients, for long enough that it may be the last in
// the ISRs of what it leads, and then, while it stands alone, may have it lose its power (H20).
func isolate(s *Sim, n *node) {
	if c := s.active(); c != nil && s.w.chance(0.5) {
		n = c // who can change its ISRs by itself
	}
	if !n.up || n.paused || s.quiet() {
		return
	}
	s.Done.Isolated++
	s.w.tell("node %d: cannot reach anybody", n.id)
	var cut [][2]int32
	for _, o := range s.nodes {
		link := [2]int32{min(n.id, o.id), max(n.id, o.id)}
		if o != n && !s.cut[link] {
			s.cut[link] = true
			cut = append(cut, link)
		}
	}
	reach := func() {
		for _, link := range cut {
			delete(s.cut, link)
		}
	}
	long := s.w.between(lagMax, 3*time.Second)
	if s.w.chance(0.5) && s.othersHold(n) {
		s.unlessCalm(long, func() {
			reach()
			powerCut(s, n)
		})
		return
	}
	s.unlessCalm(long, reach)
}

// deposeController removes /controller, as operators do to force an election. The controller learns of it late.
func deposeController(s *Sim, _ *node) {
	if s.zk.leader.nodes[zkstate.ControllerPath] != nil {
		s.w.tell("an operator removes /controller")
		_, _ = s.zk.commit(admin, []zkstate.Op{zkstate.Delete(zkstate.ControllerPath, zkstate.AnyVersion)})
	}
}
