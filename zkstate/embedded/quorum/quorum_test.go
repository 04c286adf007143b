package quorum

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server with an empty disk, from what it hears.
func TestAnEnsembleBeginsOnceAndWithItsFoundersAlone(t *testing.T) {
	members := []uint64{1, 2, 3}
	says := func(id uint64, disk string) hello { return hello{From: id, Members: members, Disk: disk} }
	full := func(h hello) hello { h.Full = true; return h }
	of := func(h hello, e ensemble) hello { h.Of = e; return h }
	all := map[uint64]string{1: "a", 2: "b", 3: "c"}
	founded := ensemble{ID: name(all), Disks: all, First: 3}
	anew := founded.with([]byte(`{"disks":{"3":"new"}}`))
	began2 := ensemble{ID: name(all), Disks: all, First: 2}
	hear := func(h ...hello) map[uint64]hello {
		m := map[uint64]hello{}
		for _, one := range h {
			m[one.From] = one
		}
		return m
	}
	for _, c := range []struct {
		what  string
		mine  hello
		heard map[uint64]hello
		want  verdict
	}{
		{"nobody answers", says(1, "a"), hear(), verdict{missing: []uint64{2, 3}}},
		{"a majority is not enough to begin", says(1, "a"), hear(says(2, "b")), verdict{missing: []uint64{3}}},
		{"all are there", says(1, "a"), hear(says(2, "b"), says(3, "c")), verdict{of: founded, member: true}},
		{"the same is found by the one that begins", says(3, "c"), hear(says(1, "a"), says(2, "b")), verdict{of: founded, member: true, first: true}},
		{"another was quicker", says(1, "a"), hear(of(says(3, "c"), founded)), verdict{of: founded, member: true}},
		{"others were quicker than the one that begins", says(3, "c"), hear(of(says(1, "a"), founded)), verdict{of: founded, member: true, first: true}},
		{"this disk is not the one of then", says(1, "new"), hear(of(says(3, "c"), founded)), verdict{of: founded}},
		{"the one that began has lost its disk", says(3, "new"), hear(of(says(1, "a"), founded), of(says(2, "b"), founded)), verdict{of: founded}},
		{"…and is taken in with another", says(3, "new"), hear(of(says(1, "a"), anew)), verdict{of: anew, member: true}},
		{"a tree that stood alone begins", says(1, "a"), hear(full(says(2, "b")), says(3, "c")), verdict{of: began2, member: true}},
		{"…also when it is this one's", full(says(2, "b")), hear(says(1, "a"), says(3, "c")), verdict{of: began2, member: true, first: true}},
	} {
		require.Equal(t, c.want, judge(c.mine, c.heard), c.what)
	}
	for want, v := range map[string]verdict{
		"servers [1 2] have trees of their own":   judge(full(says(1, "a")), hear(full(says(2, "b")))),
		"an ensemble without it":                  judge(full(says(1, "new")), hear(of(says(2, "b"), founded))),
		"server 2's file names the servers [1 2]": judge(says(1, "a"), hear(hello{From: 2, Members: []uint64{1, 2}})),
	} {
		require.Contains(t, v.refused, want)
	}
}

func TestMessagesAreTakenFromTheEnsemblesDisksAlone(t *testing.T) {
	e := ensemble{ID: "e", Disks: map[uint64]string{1: "a", 2: "b"}}
	newer := e.with([]byte(`{"disks":{"2":"new"}}`))
	mine := hello{From: 1, Members: []uint64{1, 2}, Disk: "a", Of: e}
	ok := hello{From: 2, To: 1, Disk: "b", Of: e}
	require.Empty(t, refusal(mine, ok))
	with := func(change func(*hello)) hello { h := ok; change(&h); return h }
	require.Empty(t, refusal(mine, with(func(h *hello) { h.Disk, h.Of = "new", newer })), "it was taken in anew, of which this one has not heard")
	for want, h := range map[string]hello{
		"this is server 1, not 3":     with(func(h *hello) { h.To = 3 }),
		"no server 4 is named here":   with(func(h *hello) { h.From = 4 }),
		"not of that ensemble":        with(func(h *hello) { h.Of = ensemble{ID: "other"} }),
		"known by another disk":       with(func(h *hello) { h.Disk = "forged" }),
		"known there by another disk": with(func(h *hello) { h.Of = e.with([]byte(`{"disks":{"1":"x"}}`)) }),
	} {
		require.Contains(t, refusal(mine, h), want)
	}
	require.Contains(t, refusal(hello{From: 1, Members: []uint64{1, 2}, Disk: "a"}, ok), "not of that ensemble")
	require.Equal(t, "b", e.Disks[2], "the older one is as it was")
}

// words is a State: every proposal, in order.
type words struct{}

var bucketWords = []byte("words")

func (words) Apply(tx *bbolt.Tx, proposal []byte) error {
	b, err := tx.CreateBucketIfNotExists(bucketWords)
	if err != nil {
		return err
	}
	return b.Put(proposal, []byte{1})
}

func (words) Snapshot(tx *bbolt.Tx) ([]byte, error) { return []byte(strings.Join(said(tx), " ")), nil }

func (w words) Restore(tx *bbolt.Tx, snapshot []byte) error {
	if tx.Bucket(bucketWords) != nil {
		if err := tx.DeleteBucket(bucketWords); err != nil {
			return err
		}
	}
	for _, word := range strings.Fields(string(snapshot)) {
		if err := w.Apply(tx, []byte(word)); err != nil {
			return err
		}
	}
	return nil
}

func said(tx *bbolt.Tx) (all []string) {
	if b := tx.Bucket(bucketWords); b != nil {
		_ = b.ForEach(func(k, _ []byte) error { all = append(all, string(k)); return nil })
	}
	return all
}

// member is one that can be ended and started again on the same disk.
type member struct {
	t     *testing.T
	cfg   Config
	file  string
	m     *Member
	last  *store // of the one that was stopped
	roles chan Role
}

func newMembers(t *testing.T, n int) (all []*member) {
	servers := map[uint64]string{}
	var listeners []net.Listener
	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		servers[uint64(i+1)] = l.Addr().String()
		listeners = append(listeners, l)
	}
	for i := range n {
		m := &member{t: t, file: filepath.Join(t.TempDir(), "db"), roles: make(chan Role, 1000), cfg: Config{ID: uint64(i + 1), Servers: servers, State: words{}, Keep: 20}}
		log := logrus.New()
		log.SetOutput(io.Discard)
		m.cfg.Log, m.cfg.OnRole = logrus.NewEntry(log), func(r Role) { m.roles <- r }
		m.start(listeners[i])
		all = append(all, m)
		t.Cleanup(m.stop)
	}
	return all
}

func (m *member) start(l net.Listener) {
	m.t.Helper()
	var err error
	if l == nil {
		require.Eventually(m.t, func() bool { l, err = net.Listen("tcp", m.cfg.Servers[m.cfg.ID]); return err == nil }, time.Minute, 10*time.Millisecond)
	}
	m.cfg.Listener = l
	m.cfg.DB, err = bbolt.Open(m.file, 0o600, nil)
	require.NoError(m.t, err)
	m.m, err = Start(m.cfg)
	require.NoError(m.t, err)
}

func (m *member) stop() {
	if m.m != nil {
		m.m.Close()
		m.last = m.m.store
		require.NoError(m.t, m.cfg.DB.Close())
		m.m = nil
	}
}

// leads waits until it leads and gives the term, 0: it does not, and another does.
func (m *member) leads() uint64 {
	for r := range m.roles {
		switch {
		case r.Leading:
			return r.Term
		case r.Leader != 0 && r.Leader != m.cfg.ID:
			return 0
		}
	}
	return 0
}

func (m *member) words() (all []string) {
	require.NoError(m.t, m.cfg.DB.View(func(tx *bbolt.Tx) error { all = said(tx); return nil }))
	return all
}

func (m *member) entries() (n int) {
	require.NoError(m.t, m.cfg.DB.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketEntries).ForEach(func(_, _ []byte) error { n++; return nil })
	}))
	return n
}

func TestWhatOneProposesAllHave(t *testing.T) {
	all := newMembers(t, 3)
	term := all[2].leads()
	require.NotZero(t, term)
	require.ErrorIs(t, all[2].m.Propose(term-1, []byte("earlier")), ErrDeposed)
	require.ErrorIs(t, all[0].m.Propose(term, []byte("elsewhere")), ErrDeposed)
	var want []string
	say := func(n int) {
		for range n {
			word := fmt.Sprintf("w%04d", len(want))
			require.NoError(t, all[2].m.Propose(term, []byte(word)))
			want = append(want, word)
		}
	}
	say(10)
	has := func(m *member) {
		t.Helper()
		require.Eventually(t, func() bool { return len(m.words()) == len(want) }, time.Minute, time.Millisecond)
		require.Equal(t, want, m.words())
	}
	for _, m := range all {
		has(m)
	}

	all[0].stop()
	say(5)
	all[0].start(nil)
	has(all[0]) // from the log

	all[0].stop()
	say(200)
	require.Less(t, all[2].entries(), 45, "the log is cut")
	all[0].start(nil)
	has(all[0]) // by the whole state
	say(5)
	has(all[0])

	for _, m := range all { // and after an end of all
		m.stop()
	}
	for _, m := range all {
		m.roles = make(chan Role, 1000)
		m.start(nil)
	}
	for _, m := range all {
		if term := m.leads(); term != 0 {
			require.NoError(t, m.m.Propose(term, []byte("w9999")))
		}
	}
	want = append(want, "w9999")
	for _, m := range all {
		has(m)
	}
}

// A snapshot tells which disks there are; it changes nothing for those who have the list of before in their hands.
func TestASnapshotsListOfDisksIsAnotherOne(t *testing.T) {
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "db"), 0o600, nil)
	require.NoError(t, err)
	defer db.Close()
	s, err := openStore(db, words{}, 20)
	require.NoError(t, err)
	before := ensemble{ID: "e", Disks: map[uint64]string{1: "a", 2: "b"}, First: 1}
	require.NoError(t, s.found(before, true))
	s.of = s.of.with([]byte(`{"disks":{"2":"new"}}`))
	snap, err := s.Snapshot()
	require.NoError(t, err)
	got := before
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error { return s.restore(tx, snap.GetData(), &got) }))
	require.Equal(t, map[uint64]string{1: "a", 2: "new"}, got.Disks)
	require.Equal(t, map[uint64]string{1: "a", 2: "b"}, before.Disks)
	for _, damaged := range [][]byte{nil, {0, 0, 0, 9}, {0, 0, 0, 1, '{'}} {
		require.ErrorContains(t, db.Update(func(tx *bbolt.Tx) error { return s.restore(tx, damaged, &got) }), "damaged")
	}
}

// What was for the disk that a server had before is not for the one that it has.
func TestMessagesAreForOneDisk(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	n := &network{ctx: ctx}
	n.mu.fates = map[uint64]fate{}
	p := &peer{id: 2, outbox: make(chan letter, 10)}
	n.peers = map[uint64]*peer{2: p}
	beat := func(commit uint64) []*raftpb.Message {
		to, kind := uint64(2), raftpb.MsgHeartbeat
		return []*raftpb.Message{{To: &to, Type: &kind, Commit: &commit}}
	}
	n.send(beat(1), map[uint64]string{2: "new"})
	here, there := net.Pipe()
	n.running.Go(func() { n.stream(p, here, "new") })
	body, err := readFrame(there, maxMessage)
	require.NoError(t, err)
	got := &raftpb.Message{}
	require.NoError(t, proto.Unmarshal(body, got))
	require.EqualValues(t, 1, got.GetCommit())
	n.send(beat(2), nil)
	body, err = readFrame(there, maxMessage)
	require.NoError(t, err)
	require.NoError(t, proto.Unmarshal(body, got))
	require.EqualValues(t, 2, got.GetCommit(), "for whoever it is")
	n.send(beat(1000), map[uint64]string{2: "old"})
	_, err = readFrame(there, maxMessage)
	require.ErrorIs(t, err, io.EOF)
	stop()
	n.running.Wait()
	require.True(t, n.mu.fates[2].lost)
}

func TestALogIsOnDiskWhatItIsInMemory(t *testing.T) {
	all := newMembers(t, 3)
	term := all[2].leads()
	for i := range 100 {
		require.NoError(t, all[2].m.Propose(term, fmt.Appendf(nil, "w%d", i)))
	}
	for _, m := range all {
		m.stop()
		db, err := bbolt.Open(m.file, 0o600, nil)
		require.NoError(t, err)
		again, err := openStore(db, words{}, 20)
		require.NoError(t, err)
		was := m.last
		for what, get := range map[string]func(*store) (uint64, error){"first": func(s *store) (uint64, error) { return s.FirstIndex() }, "last": func(s *store) (uint64, error) { return s.LastIndex() }} {
			want, err1 := get(was)
			got, err2 := get(again)
			require.NoError(t, errors.Join(err1, err2))
			require.Equal(t, want, got, what)
		}
		require.Equal(t, was.applied, again.applied)
		require.Equal(t, was.of, again.of)
		require.Equal(t, was.conf.GetVoters(), again.conf.GetVoters())
		require.NoError(t, db.Close())
	}
}

func FuzzHello(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x24" + `{"protocol":"barnabas-quorum-1"}    `))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := readHello(bytes.NewReader(b)); err == nil {
			_ = refusal(hello{From: 1, Members: []uint64{1, 2}, Disk: "a"}, h)
			_ = judge(hello{From: 1, Members: []uint64{1, 2}, Disk: "a"}, map[uint64]hello{2: h})
		}
	})
}
