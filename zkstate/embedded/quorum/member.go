package quorum

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// ErrDeposed says that a proposal was not seen to be committed while its maker led. It may be carried out all the same.
var ErrDeposed = errors.New("this server does not lead the ensemble any more")

// Time is counted in ticks: a leader is heard of every other tick, and given up after some 15 to 30 of them without a word.
const (
	tickEvery      = 100 * time.Millisecond
	heartbeatTicks = 2
	electionTicks  = 15
)

// proposalID is the length of the number in front of each proposal by which its maker knows it again.
const proposalID = 8

// Config says which member of which ensemble this is.
type Config struct {
	ID       uint64
	Servers  map[uint64]string // the address of each server for the others, its own too
	Listener net.Listener      // for the others; Close closes it
	DB       *bbolt.DB
	State    State
	Keep     int  // entries of the log that stay for members that were away; default 2000
	Full     bool // the state is not empty although the disk may be of no ensemble yet
	// OnRole is told what this member is, first and at each change, in order, by the member's goroutine. It must not block.
	OnRole func(Role)
	Log    *logrus.Entry
}

// Role is what a member is.
type Role struct {
	Leader  uint64 // who leads, as far as this member knows; 0: nobody
	Term    uint64
	Leading bool // this member leads, and has applied everything that was committed before its term
}

// Member is one server of an ensemble.
type Member struct {
	cfg       Config
	store     *store
	node      *raft.RawNode
	net       *network
	proposals chan proposal
	stop      context.CancelFunc
	stopped   context.Context
	running   sync.WaitGroup
	failed    chan struct{} // closed when the member ended by itself

	// The member's goroutine's own.
	role     Role
	waiting  map[uint64]chan<- error
	nextID   uint64
	election uint64 // the term of the last entry that was applied

	mu struct {
		sync.Mutex
		me        hello
		strangers map[uint64]string // servers that came with a disk that the ensemble does not know
		standing  Standing
		err       error
	}
}

type proposal struct {
	term uint64
	data []byte
	done chan<- error
}

// Standing is what a leader knows of the others, for those who watch it.
type Standing struct {
	Followers, Synced int // connected by Raft's reckoning; of them those that have nearly everything
	Learners          int // taken in anew and not caught up yet
}

// Start opens the log and takes part in the ensemble until Close. The DB stays the caller's to close, after that.
func Start(cfg Config) (*Member, error) {
	st, err := openStore(cfg.DB, cfg.State, cfg.Keep)
	if err != nil {
		return nil, err
	}
	m := &Member{
		cfg: cfg, store: st, proposals: make(chan proposal), failed: make(chan struct{}), waiting: map[uint64]chan<- error{}, nextID: rand.Uint64(),
	}
	m.stopped, m.stop = context.WithCancel(context.Background())
	m.mu.strangers = map[uint64]string{}
	m.mu.me = hello{From: cfg.ID, Members: slices.Sorted(maps.Keys(cfg.Servers)), Disk: st.disk, Of: st.of, Full: cfg.Full && st.of.ID == ""}
	m.net = newNetwork(m)
	m.running.Go(m.run)
	return m, nil
}

// Close ends the member's part.
func (m *Member) Close() {
	m.stop()
	m.net.close()
	m.running.Wait()
}

// Failed is closed when the member ended by itself; Err tells why.
func (m *Member) Failed() <-chan struct{} { return m.failed }

// Err is why the member ended by itself.
func (m *Member) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.err
}

// Standing is what the leader knew a moment ago of the others; zero on others.
func (m *Member) Standing() Standing {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.standing
}

func (m *Member) identity() hello {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.mu.me
	h.Of.Disks = maps.Clone(h.Of.Disks)
	return h
}

// Propose returns when a majority has the proposal on disk, or with ErrDeposed. It is of the term in which its maker became leader.
func (m *Member) Propose(term uint64, data []byte) error {
	done := make(chan error, 1)
	select {
	case m.proposals <- proposal{term, data, done}:
	case <-m.stopped.Done():
		return ErrDeposed
	}
	select {
	case err := <-done:
		return err
	case <-m.stopped.Done():
		return ErrDeposed
	}
}

// run is the member's goroutine.
func (m *Member) run() {
	err := m.join(m.stopped)
	if err == nil && m.stopped.Err() == nil {
		err = m.serve()
	}
	m.stop()
	m.become(Role{})
	if err != nil {
		m.mu.Lock()
		m.mu.err = err
		m.mu.Unlock()
		close(m.failed)
	}
}

// serve takes part until the end.
func (m *Member) serve() (err error) {
	m.node, err = raft.NewRawNode(&raft.Config{
		ID: m.cfg.ID, ElectionTick: electionTicks, HeartbeatTick: heartbeatTicks, Storage: m.store, Applied: m.store.applied.index,
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 64, MaxUncommittedEntriesSize: 256 << 20, CheckQuorum: true, PreVote: true,
		DisableProposalForwarding: true, Logger: raftLog{m.cfg.Log},
	})
	if err != nil {
		return err
	}
	m.election = m.store.applied.term
	m.net.dialAll()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.stopped.Done():
			return nil
		case <-tick.C:
			m.net.report(m.node)
			m.node.Tick()
			m.reinstate()
		case l := <-m.net.inbox:
			if m.node.BasicStatus().RaftState != raft.StateLeader || m.store.of.Disks[l.msg.GetFrom()] == l.disk { // a leader counts on what it hears
				m.step(l.msg)
			}
		case p := <-m.proposals:
			m.propose(p)
		}
		for m.node.HasReady() {
			if err := m.ready(); err != nil {
				return err
			}
		}
	}
}

// step gives Raft a message. What Raft refuses is late or misdirected, and nothing is lost with it.
func (m *Member) step(msg *raftpb.Message) {
	if err := m.node.Step(msg); err != nil {
		m.cfg.Log.WithError(err).Debug("A member's message was not taken")
	}
}

func (m *Member) propose(p proposal) {
	if !m.role.Leading || m.role.Term != p.term {
		p.done <- ErrDeposed
		return
	}
	m.nextID++
	data := append(binary.BigEndian.AppendUint64(make([]byte, 0, proposalID+len(p.data)), m.nextID), p.data...)
	if err := m.node.Propose(data); err != nil {
		p.done <- errors.Join(ErrDeposed, err)
		return
	}
	m.waiting[m.nextID] = p.done
}

// ready carries out what Raft decided. A leader's messages go out before its own disk has what is in them: it counts itself only
// when it has. All others speak of what they have on disk. What is committed is on a majority's disks, so whoever waits for it
// need not wait for this one's.
func (m *Member) ready() error {
	rd := m.node.Ready()
	now := m.node.BasicStatus()
	leads := now.RaftState == raft.StateLeader
	if leads {
		m.net.send(rd.Messages, m.store.of.Disks)
	}
	conf, of := m.applyMembership(rd.CommittedEntries)
	if leads {
		m.answer(rd.CommittedEntries)
	}
	if err := m.store.save(rd, conf, of); err != nil {
		return err
	}
	if n := len(rd.CommittedEntries); n > 0 {
		m.election = rd.CommittedEntries[n-1].GetTerm()
	}
	if conf != nil || !raft.IsEmptySnap(rd.Snapshot) {
		m.mu.Lock()
		m.mu.me.Of = m.store.of
		m.mu.Unlock()
	}
	if !leads { // what it says of itself is for whoever asks, also for one that was taken in anew and of which it has not heard yet
		m.net.send(rd.Messages, nil)
	}
	m.node.Advance(rd)
	m.become(Role{Leader: now.Lead, Term: now.GetTerm(), Leading: leads && m.election == now.GetTerm()})
	return nil
}

// applyMembership tells Raft of the changes of membership that are committed, and what comes of them; conf nil: there are none.
func (m *Member) applyMembership(entries []*raftpb.Entry) (conf *raftpb.ConfState, of ensemble) {
	of = m.store.of
	for _, e := range entries {
		if e.GetType() != raftpb.EntryConfChangeV2 {
			continue
		}
		change := &raftpb.ConfChangeV2{}
		if err := proto.Unmarshal(e.GetData(), change); err != nil {
			m.cfg.Log.WithError(err).Error("A change of membership cannot be read and is passed over")
			change = &raftpb.ConfChangeV2{}
		}
		conf = m.node.ApplyConfChange(change)
		of = of.with(change.GetContext())
	}
	return conf, of
}

// answer tells those who wait for what is committed now.
func (m *Member) answer(entries []*raftpb.Entry) {
	for _, e := range entries {
		if e.GetType() != raftpb.EntryNormal || len(e.GetData()) < proposalID {
			continue
		}
		id := binary.BigEndian.Uint64(e.GetData())
		if done := m.waiting[id]; done != nil {
			done <- nil
			delete(m.waiting, id)
		}
	}
}

// become takes a role. Who waited as the leader of before hears that it is over.
func (m *Member) become(r Role) {
	if r == m.role {
		return
	}
	if !r.Leading || r.Term != m.role.Term {
		for id, done := range m.waiting {
			done <- ErrDeposed
			delete(m.waiting, id)
		}
	}
	m.role = r
	m.cfg.OnRole(r)
}

// raftLog passes on what Raft says. Its news of every vote are of use to those who look for a fault.
type raftLog struct{ log *logrus.Entry }

func (l raftLog) Debug(v ...any)              { l.log.Trace(v...) }
func (l raftLog) Debugf(f string, v ...any)   { l.log.Tracef(f, v...) }
func (l raftLog) Info(v ...any)               { l.log.Debug(v...) }
func (l raftLog) Infof(f string, v ...any)    { l.log.Debugf(f, v...) }
func (l raftLog) Warning(v ...any)            { l.log.Warn(v...) }
func (l raftLog) Warningf(f string, v ...any) { l.log.Warnf(f, v...) }
func (l raftLog) Error(v ...any)              { l.log.Error(v...) }
func (l raftLog) Errorf(f string, v ...any)   { l.log.Errorf(f, v...) }
func (l raftLog) Fatal(v ...any)              { l.log.Panic(v...) }
func (l raftLog) Fatalf(f string, v ...any)   { l.log.Panicf(f, v...) }
func (l raftLog) Panic(v ...any)              { l.log.Panic(v...) }
func (l raftLog) Panicf(f string, v ...any)   { l.log.Panicf(f, v...) }
