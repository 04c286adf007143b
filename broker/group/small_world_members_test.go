package group

// The members of the small world, who do what consumers do.

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

type wcommit struct {
	req *CommitRequest
	to  int // which coordinator
}

type wmember struct {
	name       string
	lives, ids int
	id         string
	generation int32
	state      string // "out", "joining", "syncing", "in"
	owns       bool
	to         int // which coordinator it knows
	commit     *wcommit
	leads      bool
	roster     []JoinedMember
}

func (w *smallWorld) coordinator(m *wmember) *Core {
	if c := w.coordinators[m.to]; !c.gone {
		return c.core
	}
	m.to = len(w.coordinators) - 1
	return nil
}

func heard[T any](m *wmember, f func(T)) func(T) {
	life := m.lives
	return func(v T) {
		if m.lives == life {
			f(v)
		}
	}
}

func (w *smallWorld) join(m *wmember) bool {
	if m.state == "joining" || m.state == "syncing" {
		return false
	}
	if m.state == "in" {
		if w.rejoins == worldRejoins {
			return false
		}
		w.rejoins++
	}
	core := w.coordinator(m)
	if core == nil {
		return true
	}
	req := joinRequest("g", m.id, "t")
	if m.id == "" {
		m.ids++
		req.ClientID = fmt.Sprint(m.name, m.ids)
	}
	req.SessionTimeoutMs, req.RebalanceTimeoutMs = 30, 10
	m.state = "joining"
	core.Join(w.nowMs, req, heard(m, func(r JoinResult) { w.joined(m, r) }))
	w.take()
	return true
}

func (w *smallWorld) joined(m *wmember, r JoinResult) {
	if r.Err != nil {
		w.refused(m, r.Err)
		return
	}
	m.id, m.generation, m.owns, m.state, m.leads, m.roster = r.MemberID, r.Generation, false, "syncing", r.LeaderID == r.MemberID, r.Members
	core := w.coordinator(m)
	if core == nil {
		m.state = "out"
		return
	}
	req := &SyncRequest{Group: "g", Generation: m.generation, MemberID: m.id}
	if m.leads {
		owner := m.roster[int(m.generation)%len(m.roster)].MemberID
		req.Assignments = []Assignment{{owner, []byte("all")}}
	}
	core.Sync(w.nowMs, req, heard(m, func(r SyncResult) { w.synced(m, r) }))
}

func (w *smallWorld) synced(m *wmember, r SyncResult) {
	if r.Err != nil {
		w.refused(m, r.Err)
		return
	}
	m.state, m.owns, m.leads, m.roster = "in", len(r.Assignment) > 0, false, nil
	w.latest = max(w.latest, m.generation)
	if !m.owns {
		return
	}
	if had, taken := w.owners[m.generation]; taken && had != m.id {
		w.fail("I16: generation %d gives the partition to %s and to %s", m.generation, had, m.id)
	}
	w.owners[m.generation] = m.id
}

func (w *smallWorld) refused(m *wmember, err error) {
	m.state = "out"
	switch err {
	case kerr.UnknownMemberID, kerr.FencedInstanceID:
		m.id = ""
	case kerr.NotCoordinator:
		m.to = len(w.coordinators) - 1
	case kerr.RebalanceInProgress, kerr.IllegalGeneration, kerr.CoordinatorNotAvailable:
	default:
		w.fail("%s is told %w", m.name, err)
	}
}

func (w *smallWorld) vanish(m *wmember) bool {
	if w.vanished == worldVanished {
		return false
	}
	w.vanished++
	m.lives++
	m.id, m.state, m.owns, m.generation = "", "out", false, 0
	return true
}

func (w *smallWorld) send(m *wmember, producer *Producer) bool {
	if m.state != "in" || !m.owns || m.commit != nil || w.tried == worldCommits || producer != nil && w.txn.asked {
		return false
	}
	w.tried++
	w.txn.asked = w.txn.asked || producer != nil
	req := commitOne("g", m.generation, m.id, "t", w.tried)
	req.Producer = producer
	m.commit = &wcommit{req, m.to}
	return true
}

func (w *smallWorld) arrive(m *wmember) bool {
	c := m.commit
	if c == nil {
		return false
	}
	m.commit = nil
	if w.coordinators[c.to].gone {
		return true
	}
	core := w.coordinators[c.to].core
	req := *c.req
	if g := core.groups["g"]; g != nil && len(g.order) > 0 &&
		(w.plant == "generations of commits are not compared" || w.plant == "offsets of a transaction without their generation" && req.Producer != nil) {
		req.Generation, req.MemberID = g.generation, g.order[0].id
	}
	latest := w.latest
	core.Commit(w.nowMs, &req, func(r CommitResult) {
		if r.Errs[0] != nil {
			return
		}
		if c.req.Generation < latest {
			w.fail("I16: a commit of generation %d is accepted when there is %d", c.req.Generation, latest)
		}
		w.acknowledged(c.req)
	})
	w.take()
	return true
}

func (w *smallWorld) beat(m *wmember) {
	core := w.coordinator(m)
	if core == nil {
		return
	}
	core.Heartbeat(w.nowMs, &HeartbeatRequest{Group: "g", Generation: m.generation, MemberID: m.id}, heard(m, func(err error) {
		if err != nil {
			w.refused(m, err)
		}
	}))
	w.take()
}
