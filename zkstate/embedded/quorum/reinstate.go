package quorum

import (
	"encoding/json"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// A server whose disk was emptied or replaced, and how it comes back; and one that is new, which all files have to name first.
//
// The leader hears of it by its hello, and puts the server out of the ensemble: a majority of the others has to agree, so nothing that the
// old disk voted for in a later term can still count. Then the server is taken in with its new disk, first as one that only listens. When
// it has what all have, it votes again. Each step is an entry of the log, so a leader that comes in between goes on.

// caughtUp is how many entries a listener may be behind when it is made a full member.
const caughtUp = 100

// with is the ensemble after a change of membership whose context names a disk.
func (e ensemble) with(context []byte) ensemble {
	var taken ensemble
	if len(context) == 0 || json.Unmarshal(context, &taken) != nil {
		return e
	}
	e.Disks = maps.Clone(e.Disks)
	maps.Copy(e.Disks, taken.Disks)
	return e
}

// stranger notes that a server has a disk that the ensemble does not know.
func (m *Member) stranger(h hello) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Contains(m.mu.me.Members, h.From) && m.mu.me.Of.ID != "" && h.Of.ID == "" && !h.Full && m.mu.me.Of.Disks[h.From] != h.Disk {
		m.mu.strangers[h.From] = h.Disk
	}
}

// reinstate does a leader's next step for those who come back, and notes how the others stand. Raft drops a change that is proposed while another one is
// under way; the next tick proposes it again.
func (m *Member) reinstate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.role.Leading {
		m.mu.standing = Standing{}
		clear(m.mu.strangers)
		return
	}
	m.mu.standing = m.look()
	conf := m.store.conf
	progress := m.node.Status().Progress
	for id, disk := range m.mu.strangers {
		switch {
		case m.store.of.Disks[id] == disk:
			delete(m.mu.strangers, id)
		case progress[id].RecentActive: // a moment ago; or two servers have this number, and the one with the known disk keeps its place
			continue
		case slices.Contains(conf.GetVoters(), id) || slices.Contains(conf.GetLearners(), id):
			m.change(raftpb.ConfChangeRemoveNode, id, nil)
		default:
			context, _ := json.Marshal(ensemble{Disks: map[uint64]string{id: disk}}) // a map of strings: never fails
			m.change(raftpb.ConfChangeAddLearnerNode, id, context)
		}
		return
	}
	for _, id := range conf.GetLearners() {
		if p, ok := progress[id]; ok && p.State == tracker.StateReplicate && p.Match+caughtUp >= m.store.applied.index {
			m.change(raftpb.ConfChangeAddNode, id, nil)
		}
	}
}

func (m *Member) change(what raftpb.ConfChangeType, id uint64, context []byte) {
	err := m.node.ProposeConfChange(&raftpb.ConfChangeV2{Changes: []*raftpb.ConfChangeSingle{{Type: &what, NodeId: &id}}, Context: context})
	if err == nil {
		m.cfg.Log.WithField("server", id).Infof("Membership of the ensemble: %v", what)
	}
}

// look tells how a leader sees the others.
func (m *Member) look() (s Standing) {
	m.node.WithProgress(func(id uint64, typ raft.ProgressType, p tracker.Progress) {
		switch {
		case id == m.cfg.ID:
		case typ == raft.ProgressTypeLearner:
			s.Learners++
		case p.RecentActive:
			s.Followers++
			if p.State == tracker.StateReplicate && p.Match+caughtUp >= m.store.applied.index {
				s.Synced++
			}
		}
	})
	return s
}
