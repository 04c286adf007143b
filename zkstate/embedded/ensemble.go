package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"

	"barnabas/zkstate/embedded/core"
	"barnabas/zkstate/embedded/quorum"
)

// Several servers as one.
//
// The leader runs an engine, as a server that stands alone does; what its core changes is committed by a majority before it is answered. All others keep the
// tree on their disks and pass their clients' bytes on to the leader (relay.go). So a session, its watches and what it reads are in one place,
// and a member that becomes leader begins like a server that starts: from its disk, with every session's whole timeout.
//
// When another leads than before, or nobody, all connections end here: clients look for a server again, and find the one that can answer.

// Ensemble says which servers hold one tree together.
type Ensemble struct {
	ID      uint64               // this server
	Servers map[uint64]Addresses // all of them
}

// Addresses are where a server is reached by the others: Quorum for what is replicated, Relay for clients that it did not take itself.
type Addresses struct{ Quorum, Relay string }

// ensemble is a server's part in one.
type ensemble struct {
	s       *Server
	id      uint64
	servers map[uint64]Addresses
	member  *quorum.Member
	relays  net.Listener
	changed chan struct{} // the role is another
	engine  *engine       // of the manager's goroutine

	mu struct {
		sync.Mutex
		role quorum.Role
	}
}

// takePart begins a server's part.
func takePart(s *Server, full bool) (*ensemble, error) {
	cfg := s.cfg.Ensemble
	en := &ensemble{s: s, id: cfg.ID, servers: cfg.Servers, changed: make(chan struct{}, 1)}
	mine := cfg.Servers[cfg.ID]
	peers, err := net.Listen("tcp", s.cfg.bindTo(mine.Quorum))
	if err != nil {
		return nil, err
	}
	if en.relays, err = net.Listen("tcp", s.cfg.bindTo(mine.Relay)); err != nil {
		return nil, errors.Join(err, peers.Close())
	}
	members := map[uint64]string{}
	for id, a := range cfg.Servers {
		members[id] = a.Quorum
	}
	en.member, err = quorum.Start(quorum.Config{
		ID: cfg.ID, Servers: members, Listener: peers, DB: s.store.db, State: s.store, Full: full, OnRole: en.become, Log: s.log,
	})
	if err != nil {
		return nil, errors.Join(err, peers.Close(), en.relays.Close())
	}
	return en, nil
}

// run begins and ends engines as this server begins and ends to lead, until the server ends.
func (en *ensemble) run() {
	for {
		select {
		case <-en.s.done:
			en.resign()
			return
		case <-en.member.Failed():
			en.s.log.WithError(en.member.Err()).Error("This server cannot be of the ensemble and stops serving")
			en.resign()
			en.s.shutdown(en.member.Err())
			return
		case <-en.changed:
			en.follow(en.role())
		}
	}
}

// become is told by the quorum.
func (en *ensemble) become(r quorum.Role) {
	en.mu.Lock()
	en.mu.role = r
	en.mu.Unlock()
	select {
	case en.changed <- struct{}{}:
	default:
	}
}

func (en *ensemble) role() quorum.Role {
	en.mu.Lock()
	defer en.mu.Unlock()
	return en.mu.role
}

// follow does what a role asks for.
func (en *ensemble) follow(r quorum.Role) {
	if en.engine != nil && r.Leading && r.Term == en.engine.term {
		return
	}
	en.resign()
	en.s.killAll()
	log := en.s.log.WithFields(logrus.Fields{"leader": r.Leader, "term": r.Term})
	switch {
	case r.Leading:
		e, err := en.lead(r.Term)
		if err != nil { // of the disk; or deposed already, which the next role tells
			if !errors.Is(err, quorum.ErrDeposed) {
				en.s.shutdown(err)
			}
			return
		}
		log.WithField("zxid", fmt.Sprintf("0x%x", e.m.Zxid())).Info("Embedded ZooKeeper: this server leads the ensemble")
		en.engine = e
		en.s.engine.Store(e)
		go e.run()
	case r.Leader == 0:
		log.Info("Embedded ZooKeeper: the ensemble has no leader; not serving until it has")
	case r.Leader != en.id:
		log.Info("Embedded ZooKeeper: following")
	}
}

// lead makes an engine of what is on disk. Its zxids have the term in the upper half, as ZooKeeper's have the epoch: no two leaders give the same.
func (en *ensemble) lead(term uint64) (*engine, error) {
	state, err := en.s.store.state()
	if err != nil {
		return nil, err
	}
	state.Zxid = max(state.Zxid, int64(term)<<32)
	e, err := newEngine(en.s, state, en.id, func(ch core.Changes) error { return en.member.Propose(term, appendChanges(nil, ch)) })
	if err != nil {
		return nil, err
	}
	e.term = term
	return e, nil
}

// resign ends the engine.
func (en *ensemble) resign() {
	if en.engine == nil {
		return
	}
	en.s.engine.Store(nil)
	en.engine.stop()
	<-en.engine.stopped
	en.engine = nil
}

// leader is where the leader takes relayed clients, "" when there is none, or it is this server.
func (en *ensemble) leader() string {
	r := en.role()
	if r.Leader == en.id {
		return ""
	}
	return en.servers[r.Leader].Relay
}

// close ends the part, after the server's end has begun.
func (en *ensemble) close() { en.member.Close() }

// counts are what a server that does not lead knows of the tree.
func (s *store) counts() (zxid int64, nodes int) {
	_ = s.db.View(func(tx *bbolt.Tx) error {
		zxid, nodes = int64(binary.BigEndian.Uint64(tx.Bucket(bucketMeta).Get(keyZxid))), tx.Bucket(bucketStat).Stats().KeyN
		return nil
	})
	return zxid, nodes
}
