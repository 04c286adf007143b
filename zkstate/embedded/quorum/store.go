package quorum

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// State is what is replicated, in the same file as the log.
type State interface {
	// Apply carries out one proposal. It may be called again for one that was carried out before, in the same order, and must then
	// come to the same end.
	Apply(tx *bbolt.Tx, proposal []byte) error
	// Snapshot is everything, and Restore puts it in the place of what is there.
	Snapshot(tx *bbolt.Tx) ([]byte, error)
	Restore(tx *bbolt.Tx, snapshot []byte) error
}

// What the file has beside the state:
//
//	raft      "disk" → the number of this disk; "ensemble" → JSON of ensemble; "hard", "conf" → Raft's; "applied", "cut" → index and term
//	entries   index → an entry, from the one after "cut"
var (
	bucketRaft, bucketEntries                               = []byte("raft"), []byte("entries")
	keyDisk, keyEnsemble, keyHard, keyConf, keyDone, keyCut = []byte("disk"), []byte("ensemble"), []byte("hard"), []byte("conf"), []byte("applied"), []byte("cut")
)

// How much of the log is kept behind what is applied, for members that were away for a while; who was away longer is sent
// the whole state. The first is Config.Keep's default.
const (
	keptEntries = 2000
	keptBytes   = 16 << 20
)

// ensemble is which servers hold the state together, by their disks. Zero: this disk is of none.
type ensemble struct {
	ID    string            `json:"id"`
	Disks map[uint64]string `json:"disks"`
	First uint64            `json:"first"` // who began it
}

// position is a place in the log.
type position struct{ index, term uint64 }

// store is Raft's storage: its log in memory and on disk.
type store struct {
	*raft.MemoryStorage
	db      *bbolt.DB
	state   State
	disk    string
	of      ensemble
	conf    *raftpb.ConfState
	applied position
	keep    uint64 // entries
	kept    int    // bytes of the entries in memory
}

// openStore reads what the file has, and draws the disk's number when it is new.
func openStore(db *bbolt.DB, state State, keep int) (*store, error) {
	s := &store{MemoryStorage: raft.NewMemoryStorage(), db: db, state: state, keep: uint64(keep)}
	if keep == 0 {
		s.keep = keptEntries
	}
	if err := db.Update(s.begin); err != nil {
		return nil, err
	}
	if err := db.View(s.load); err != nil {
		return nil, fmt.Errorf("the log of the ensemble: %w", err)
	}
	return s, nil
}

func (s *store) begin(tx *bbolt.Tx) error {
	b, err := tx.CreateBucketIfNotExists(bucketRaft)
	if err != nil {
		return err
	}
	if _, err = tx.CreateBucketIfNotExists(bucketEntries); err != nil || b.Get(keyDisk) != nil {
		return err
	}
	var number [16]byte
	_, _ = rand.Read(number[:]) // never fails
	return b.Put(keyDisk, []byte(hex.EncodeToString(number[:])))
}

func (s *store) load(tx *bbolt.Tx) error {
	b := tx.Bucket(bucketRaft)
	s.disk = string(b.Get(keyDisk))
	if v := b.Get(keyEnsemble); v != nil {
		if err := json.Unmarshal(v, &s.of); err != nil {
			return err
		}
	}
	hard, conf := &raftpb.HardState{}, &raftpb.ConfState{}
	if err := errors.Join(proto.Unmarshal(b.Get(keyHard), hard), proto.Unmarshal(b.Get(keyConf), conf)); err != nil {
		return err
	}
	s.conf = conf
	var cut position
	var err1, err2 error
	s.applied, err1 = decodePosition(b.Get(keyDone))
	cut, err2 = decodePosition(b.Get(keyCut))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if cut.index > 0 {
		if err := s.ApplySnapshot(s.metadata(cut)); err != nil {
			return err
		}
	}
	var entries []*raftpb.Entry
	err := tx.Bucket(bucketEntries).ForEach(func(_, v []byte) error {
		e := &raftpb.Entry{}
		entries = append(entries, e)
		s.kept += len(v)
		return proto.Unmarshal(v, e)
	})
	return errors.Join(err, s.Append(entries), s.SetHardState(hard))
}

// metadata is a snapshot without what is in it: that is in the file.
func (s *store) metadata(at position) *raftpb.Snapshot {
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: &at.index, Term: &at.term, ConfState: s.conf}}
}

// Snapshot is the whole state as this member has applied it, for one that is too far behind for the log.
func (s *store) Snapshot() (*raftpb.Snapshot, error) {
	snap := s.metadata(s.applied)
	of, err := json.Marshal(s.of)
	if err != nil {
		return nil, err
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		state, err := s.state.Snapshot(tx)
		snap.Data = append(append(binary.BigEndian.AppendUint32(nil, uint32(len(of))), of...), state...)
		return err
	})
	return snap, err
}

// found records the ensemble that this disk belongs to from now on. The member that begins it has the log's first entry, as it
// were: its state as it is, with which everybody else begins.
func (s *store) found(of ensemble, first bool) error {
	s.of = of
	return s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketRaft)
		v, err := json.Marshal(of)
		if err = errors.Join(err, b.Put(keyEnsemble, v)); err != nil || !first {
			return err
		}
		start := position{1, 1}
		s.conf, s.applied = &raftpb.ConfState{Voters: slices.Sorted(maps.Keys(of.Disks))}, start
		hard := &raftpb.HardState{Term: &start.term, Commit: &start.index}
		return errors.Join(s.ApplySnapshot(s.metadata(start)), s.SetHardState(hard), putMessage(b, keyHard, hard), putMessage(b, keyConf, s.conf),
			b.Put(keyDone, encodePosition(start)), b.Put(keyCut, encodePosition(start)))
	})
}

// restore takes a snapshot apart.
func (s *store) restore(tx *bbolt.Tx, data []byte, of *ensemble) error {
	if len(data) < 4 || uint64(len(data)-4) < uint64(binary.BigEndian.Uint32(data)) {
		return errors.New("damaged snapshot")
	}
	n := 4 + binary.BigEndian.Uint32(data)
	var told ensemble // a new one: what is known is shared with those who tell it to others
	if err := json.Unmarshal(data[4:n], &told); err != nil {
		return fmt.Errorf("damaged snapshot: %w", err)
	}
	*of = told
	return s.state.Restore(tx, data[n:])
}

// save carries out what Raft wants kept, in one transaction: the entries that are new, term and vote, a snapshot in the place of
// all that was there, and the entries that are committed now. conf and of are the membership after them; conf nil: as before.
func (s *store) save(rd raft.Ready, conf *raftpb.ConfState, of ensemble) error {
	if len(rd.Entries) == 0 && len(rd.CommittedEntries) == 0 && raft.IsEmptyHardState(rd.HardState) && raft.IsEmptySnap(rd.Snapshot) {
		return nil
	}
	applied, cut := s.applied, position{}
	if !raft.IsEmptySnap(rd.Snapshot) {
		m := rd.Snapshot.GetMetadata()
		applied = position{m.GetIndex(), m.GetTerm()}
		cut, conf = applied, m.GetConfState()
	}
	if n := len(rd.CommittedEntries); n > 0 {
		applied = position{rd.CommittedEntries[n-1].GetIndex(), rd.CommittedEntries[n-1].GetTerm()}
	}
	if cut.index == 0 {
		cut = s.cutAt(applied)
	}
	last, err := s.LastIndex()
	if err != nil {
		return err
	}
	err = s.db.Update(func(tx *bbolt.Tx) error {
		b, log := tx.Bucket(bucketRaft), tx.Bucket(bucketEntries)
		if !raft.IsEmptySnap(rd.Snapshot) {
			if err := errors.Join(tx.DeleteBucket(bucketEntries), s.restore(tx, rd.Snapshot.GetData(), &of)); err != nil {
				return err
			}
			if log, err = tx.CreateBucket(bucketEntries); err != nil {
				return err
			}
		}
		for _, e := range rd.Entries {
			if err := putMessage(log, indexKey(e.GetIndex()), e); err != nil {
				return err
			}
		}
		if n := len(rd.Entries); n > 0 { // what an earlier leader wrote after them has no place any more
			for i := rd.Entries[n-1].GetIndex() + 1; i <= last; i++ {
				if err := log.Delete(indexKey(i)); err != nil {
					return err
				}
			}
		}
		if !raft.IsEmptyHardState(rd.HardState) {
			if err := putMessage(b, keyHard, rd.HardState); err != nil {
				return err
			}
		}
		for _, e := range rd.CommittedEntries {
			if e.GetType() != raftpb.EntryNormal || len(e.GetData()) == 0 {
				continue
			}
			if err := s.state.Apply(tx, e.GetData()[proposalID:]); err != nil {
				return fmt.Errorf("entry %d: %w", e.GetIndex(), err)
			}
		}
		if conf != nil {
			v, err := json.Marshal(of)
			if err = errors.Join(err, putMessage(b, keyConf, conf), b.Put(keyEnsemble, v)); err != nil {
				return err
			}
		}
		if cut.index > 0 {
			if err := errors.Join(b.Put(keyCut, encodePosition(cut)), deleteThrough(log, cut.index)); err != nil {
				return err
			}
		}
		return b.Put(keyDone, encodePosition(applied))
	})
	if err != nil {
		return err
	}
	s.of = of
	return s.follow(rd, conf, applied, cut)
}

// follow does in memory what save did on disk.
func (s *store) follow(rd raft.Ready, conf *raftpb.ConfState, applied, cut position) (err error) {
	if conf != nil {
		s.conf = conf
	}
	if !raft.IsEmptySnap(rd.Snapshot) {
		s.kept = 0
		err = s.ApplySnapshot(s.metadata(cut))
		cut = position{}
	}
	err = errors.Join(err, s.Append(rd.Entries))
	for _, e := range rd.Entries {
		s.kept += len(e.GetData())
	}
	if !raft.IsEmptyHardState(rd.HardState) {
		err = errors.Join(err, s.SetHardState(rd.HardState))
	}
	s.applied = applied
	if cut.index > 0 {
		err = errors.Join(err, s.Compact(cut.index))
		s.kept /= 2
	}
	return err
}

// cutAt is up to where the log can go, index 0: it stays. Half of what may be kept stays for those who are a little behind.
func (s *store) cutAt(applied position) position {
	first, err := s.FirstIndex()
	if err != nil || applied.index < first || applied.index-first < s.keep && (s.kept < keptBytes || applied.index-first < 2) {
		return position{}
	}
	at := first + (applied.index-first)/2
	term, err := s.Term(at)
	if err != nil { // not yet in memory: the next time
		return position{}
	}
	return position{at, term}
}

func deleteThrough(log *bbolt.Bucket, index uint64) error {
	c := log.Cursor()
	for k, _ := c.First(); k != nil && binary.BigEndian.Uint64(k) <= index; k, _ = c.First() {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

func putMessage(b *bbolt.Bucket, key []byte, m proto.Message) error {
	v, err := proto.Marshal(m)
	return errors.Join(err, b.Put(key, v))
}

func indexKey(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

func encodePosition(p position) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, p.index), p.term)
}

func decodePosition(v []byte) (position, error) {
	switch len(v) {
	case 0:
		return position{}, nil
	case 16:
		return position{binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:])}, nil
	default:
		return position{}, fmt.Errorf("damaged position %x", v)
	}
}
