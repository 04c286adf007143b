package core

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/integration/purecore"
	"barnabas/zkstate/embedded/proto"
)

func TestTheCoreTouchesNothingOutside(t *testing.T) { purecore.Check(t, ".") }

var world = []proto.ACL{{Perms: proto.PermAll, Scheme: "world", ID: "anyone"}}

// bench drives a machine by hand, with a clock of its own.
type bench struct {
	t   *testing.T
	m   *Machine
	now Now
	xid int32
	out map[Conn][][]byte
}

func newBench(t *testing.T, st State) *bench {
	b := &bench{t: t, now: Now{Wall: 1_000_000, Mono: 50}, out: map[Conn][][]byte{}}
	m, err := New(Options{
		MinSessionTimeoutMs: 1000, MaxSessionTimeoutMs: 20000, ContainerCheckMs: 5000, ExtendedTypes: true,
		PasswordSecret: []byte("secret"), FirstSessionID: 1 << 56,
	}, st, b.now)
	require.NoError(t, err)
	b.m = m
	return b
}

// pass lets time go by in steps, as the shell's ticker does.
func (b *bench) pass(ms int64) {
	for ; ms > 0; ms -= 100 {
		b.now.Mono += 100
		b.now.Wall += 100
		b.m.Tick(b.now)
	}
	b.collect()
}

func (b *bench) collect() (closed []Conn) {
	for _, s := range b.m.TakeSends() {
		if s.Frame != nil {
			b.out[s.Conn] = append(b.out[s.Conn], s.Frame[4:])
		}
		if s.Close {
			closed = append(closed, s.Conn)
		}
	}
	require.NoError(b.t, b.m.Verify())
	return closed
}

func (b *bench) connect(id Conn, req proto.ConnectRequest) (sessionID int64, password []byte) {
	b.m.Connect(b.now, id, "127.0.0.1", req)
	b.collect()
	r := proto.NewReader(b.last(id))
	_, _, sessionID, password = r.Int32(), r.Int32(), r.Int64(), r.Buffer()
	return sessionID, password
}

func (b *bench) last(id Conn) []byte {
	frames := b.out[id]
	require.NotEmpty(b.t, frames)
	return frames[len(frames)-1]
}

func (b *bench) do(id Conn, op proto.Op, req proto.Request) (proto.Code, *proto.Reader) {
	b.xid++
	b.m.Request(b.now, id, proto.Header{Xid: b.xid, Op: op}, req)
	b.collect()
	r := proto.NewReader(b.last(id))
	require.Equal(b.t, b.xid, r.Int32())
	_, code := r.Int64(), proto.Code(r.Int32())
	return code, r
}

func (b *bench) create(id Conn, path string, flags int32) proto.Code {
	code, _ := b.do(id, proto.OpCreate, &proto.CreateRequest{Op: proto.OpCreate, Path: path, ACL: world, Flags: flags, TTL: -1})
	return code
}

func (b *bench) exists(id Conn, path string) bool {
	code, _ := b.do(id, proto.OpExists, &proto.ReadRequest{Path: path})
	return code == proto.OK
}

// notes are the watch events a connection got.
func (b *bench) notes(id Conn) (events []string) {
	for _, f := range b.out[id] {
		if r := proto.NewReader(f); r.Int32() == proto.XidNotification {
			_, _, typ, _ := r.Int64(), r.Int32(), r.Int32(), r.Int32()
			events = append(events, fmt.Sprintf("%d %s", typ, r.String()))
		}
	}
	return events
}

func TestASessionLivesAsLongAsItIsHeardOf(t *testing.T) {
	b := newBench(t, State{})
	b.connect(1, proto.ConnectRequest{TimeoutMs: 2000})
	b.connect(2, proto.ConnectRequest{TimeoutMs: 20000})
	require.Equal(t, proto.OK, b.create(1, "/e", 1))
	b.pass(1900)
	b.m.Request(b.now, 1, proto.Header{Xid: proto.XidPing, Op: proto.OpPing}, &proto.EmptyRequest{})
	b.pass(1900)
	require.True(t, b.exists(2, "/e"))
	b.pass(200)
	require.False(t, b.exists(2, "/e"), "its deadline has passed")
}

func TestTheServersOwnAbsenceIsNotHeldAgainstItsClients(t *testing.T) {
	b := newBench(t, State{})
	b.connect(1, proto.ConnectRequest{TimeoutMs: 2000})
	require.Equal(t, proto.OK, b.create(1, "/e", 1))
	b.now.Mono += 60_000
	b.m.Tick(b.now)
	require.True(t, b.exists(1, "/e"))
}

func TestTheTimeoutIsKeptWithinTheServersBounds(t *testing.T) {
	for asked, granted := range map[int32]int32{-5: 1000, 10: 1000, 5000: 5000, 1 << 30: 20000} {
		b := newBench(t, State{})
		b.connect(1, proto.ConnectRequest{TimeoutMs: asked})
		r := proto.NewReader(b.last(1))
		r.Int32()
		require.Equal(t, granted, r.Int32(), "asked for %d", asked)
	}
}

func TestASessionIsTakenUpByItsPasswordAlone(t *testing.T) {
	b := newBench(t, State{})
	id, password := b.connect(1, proto.ConnectRequest{TimeoutMs: 5000})
	got, _ := b.connect(2, proto.ConnectRequest{TimeoutMs: 5000, SessionID: id, Password: make([]byte, 16)})
	require.Zero(t, got, "wrong password")
	got, _ = b.connect(3, proto.ConnectRequest{TimeoutMs: 5000, SessionID: id, Password: password})
	require.Equal(t, id, got)
	got, _ = b.connect(4, proto.ConnectRequest{TimeoutMs: 5000, SessionID: id + 1, Password: password})
	require.Zero(t, got, "unknown session")
}

func TestTheNewerConnectionTakesTheSessionOver(t *testing.T) {
	b := newBench(t, State{})
	id, password := b.connect(1, proto.ConnectRequest{TimeoutMs: 5000})
	b.m.Connect(b.now, 2, "127.0.0.1", proto.ConnectRequest{TimeoutMs: 5000, SessionID: id, Password: password})
	require.Equal(t, []Conn{1}, b.collect())
	before := b.m.Zxid()
	b.m.Request(b.now, 1, proto.Header{Xid: 9, Op: proto.OpCreate}, &proto.CreateRequest{Op: proto.OpCreate, Path: "/late", ACL: world, TTL: -1})
	b.collect()
	require.Equal(t, before, b.m.Zxid(), "what the old connection still had under way is dropped")
	require.False(t, b.exists(2, "/late"))
}

func TestAClientFromTheFutureIsHungUpOn(t *testing.T) {
	b := newBench(t, State{})
	b.m.Connect(b.now, 1, "127.0.0.1", proto.ConnectRequest{TimeoutMs: 5000, LastZxidSeen: 77})
	require.Equal(t, []Conn{1}, b.collect())
	require.Empty(t, b.out[1])
}

func TestAFailedMultiLeavesNothingBehindButItsZxid(t *testing.T) {
	b := newBench(t, State{})
	b.connect(1, proto.ConnectRequest{TimeoutMs: 5000})
	b.create(1, "/p", 0)
	b.create(1, "/p/old", 0)
	b.do(1, proto.OpGetChildren, &proto.ReadRequest{Path: "/p", Watch: true})
	before := dump(b.m)
	zxid := b.m.Zxid()
	ops := []proto.MultiOp{
		{Op: proto.OpCreate, Body: &proto.CreateRequest{Op: proto.OpCreate, Path: "/p/s-", ACL: world, Flags: 2, TTL: -1}},
		{Op: proto.OpCreate, Body: &proto.CreateRequest{Op: proto.OpCreate, Path: "/p/e", ACL: world, Flags: 1, TTL: -1}},
		{Op: proto.OpSetData, Body: &proto.SetDataRequest{Path: "/p", Data: []byte("new"), Version: -1}},
		{Op: proto.OpDelete, Body: &proto.DeleteRequest{Path: "/p/old", Version: -1}},
		{Op: proto.OpCreate, Body: &proto.CreateRequest{Op: proto.OpCreate, Path: "/p/old", ACL: world, Flags: 1, TTL: -1}},
		{Op: proto.OpCheck, Body: &proto.CheckRequest{Path: "/p", Version: 7}},
		{Op: proto.OpDelete, Body: &proto.DeleteRequest{Path: "/p/e", Version: -1}},
	}
	code, r := b.do(1, proto.OpMulti, &proto.MultiRequest{Ops: ops})
	require.Equal(t, proto.OK, code)
	for i := range ops {
		want := []proto.Code{0, 0, 0, 0, 0, proto.BadVersion, proto.RuntimeInconsistency}[i]
		require.Equal(t, int32(-1), r.Int32())
		require.False(t, r.Bool())
		require.Equal(t, int32(want), r.Int32())
		require.Equal(t, int32(want), r.Int32())
	}
	require.Equal(t, int32(-1), r.Int32())
	require.True(t, r.Bool())
	require.Equal(t, before, dump(b.m))
	require.Equal(t, zxid+1, b.m.Zxid())
	require.Empty(t, b.notes(1))
}

// dump renders all nodes.
func dump(m *Machine) string {
	var lines []string
	for path, n := range m.tree.nodes {
		lines = append(lines, fmt.Sprintf("%s %+v %q %v %v", path, n.meta, n.data, n.acl, n.childNames()))
	}
	slices.Sort(lines)
	return fmt.Sprint(lines)
}

func TestAMultiFiresItsWatchesInOrderOnce(t *testing.T) {
	b := newBench(t, State{})
	b.connect(1, proto.ConnectRequest{TimeoutMs: 5000})
	b.do(1, proto.OpAddWatch, &proto.WatchRequest{Path: "/", Mode: 1})
	b.do(1, proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{
		{Op: proto.OpCreate, Body: &proto.CreateRequest{Op: proto.OpCreate, Path: "/a", ACL: world, TTL: -1}},
		{Op: proto.OpCreate, Body: &proto.CreateRequest{Op: proto.OpCreate, Path: "/a/b", ACL: world, TTL: -1}},
		{Op: proto.OpSetData, Body: &proto.SetDataRequest{Path: "/a", Version: 0}},
		{Op: proto.OpDelete, Body: &proto.DeleteRequest{Path: "/a/b", Version: -1}},
	}})
	require.Equal(t, []string{"1 /a", "1 /a/b", "3 /a", "2 /a/b"}, b.notes(1))
}

func TestAnEmptiedContainerAndAnOutlivedNodeAreSweptAway(t *testing.T) {
	b := newBench(t, State{})
	b.connect(1, proto.ConnectRequest{TimeoutMs: 20000})
	for _, path := range []string{"/used", "/fresh"} {
		code, _ := b.do(1, proto.OpCreateContainer, &proto.CreateRequest{Op: proto.OpCreateContainer, Path: path, ACL: world, Flags: 4, TTL: -1})
		require.Equal(t, proto.OK, code)
	}
	code, _ := b.do(1, proto.OpCreateTTL, &proto.CreateRequest{Op: proto.OpCreateTTL, Path: "/ttl", ACL: world, Flags: 5, TTL: 6000})
	require.Equal(t, proto.OK, code)
	b.create(1, "/used/child", 0)
	b.pass(5000)
	require.True(t, b.exists(1, "/used") && b.exists(1, "/fresh") && b.exists(1, "/ttl"))
	b.do(1, proto.OpDelete, &proto.DeleteRequest{Path: "/used/child", Version: -1})
	b.pass(5000)
	require.False(t, b.exists(1, "/used"), "emptied")
	require.False(t, b.exists(1, "/ttl"), "outlived")
	require.True(t, b.exists(1, "/fresh"), "never had a child")
}

func TestAnEventIsNotToldToWhoMayNotReadTheNode(t *testing.T) {
	b := newBench(t, State{})
	b.connect(1, proto.ConnectRequest{TimeoutMs: 5000})
	b.connect(2, proto.ConnectRequest{TimeoutMs: 5000})
	b.do(1, proto.OpAddWatch, &proto.WatchRequest{Path: "/", Mode: 1})
	b.do(2, proto.OpAuth, &proto.AuthRequest{Scheme: "digest", Auth: []byte("u:p")})
	b.do(2, proto.OpCreate, &proto.CreateRequest{Op: proto.OpCreate, Path: "/secret", ACL: []proto.ACL{{Perms: 31, Scheme: "auth"}}, TTL: -1})
	require.Empty(t, b.notes(1))
	require.True(t, b.exists(2, "/secret"))
	code, _ := b.do(1, proto.OpGetData, &proto.ReadRequest{Path: "/secret"})
	require.Equal(t, proto.NoAuth, code)
}

// What the changes say, put together, is the state: a machine built from them answers the same.
func TestChangesAddUpToTheState(t *testing.T) {
	b := newBench(t, State{})
	st := State{}
	fold(&st, b.m)
	id, password := b.connect(1, proto.ConnectRequest{TimeoutMs: 5000})
	for i := range 200 {
		path := fmt.Sprintf("/n%d", i%7)
		switch i % 5 {
		case 0, 1:
			b.create(1, path, int32(i%3))
		case 2:
			b.do(1, proto.OpSetData, &proto.SetDataRequest{Path: path, Data: []byte(path), Version: -1})
		case 3:
			b.do(1, proto.OpDelete, &proto.DeleteRequest{Path: path, Version: -1})
		case 4:
			b.do(1, proto.OpSetACL, &proto.SetACLRequest{Path: path, ACL: world, Version: -1})
		}
		if i%11 == 0 {
			fold(&st, b.m)
		}
	}
	fold(&st, b.m)
	again := newBench(t, st)
	require.Equal(t, dump(b.m), dump(again.m))
	require.Equal(t, b.m.Zxid(), again.m.Zxid())
	got, _ := again.connect(9, proto.ConnectRequest{TimeoutMs: 5000, SessionID: id, Password: password})
	require.Equal(t, id, got)
}

// fold is what a store does with changes.
func fold(st *State, m *Machine) {
	ch, ok := m.TakeChanges()
	if !ok {
		return
	}
	st.Zxid = ch.Zxid
	drop := func(path string) (old NodeRecord) {
		st.Nodes = slices.DeleteFunc(st.Nodes, func(n NodeRecord) bool {
			if n.Path == path {
				old = n
			}
			return n.Path == path
		})
		return old
	}
	for _, n := range ch.Nodes {
		old := drop(n.Path)
		if !n.HasData {
			n.Data = old.Data
		}
		st.Nodes = append(st.Nodes, n)
	}
	for _, path := range ch.Removed {
		drop(path)
	}
	for _, s := range ch.Sessions {
		st.Sessions = slices.DeleteFunc(st.Sessions, func(o SessionRecord) bool { return o.ID == s.ID })
		st.Sessions = append(st.Sessions, s)
	}
	for _, id := range ch.Closed {
		st.Sessions = slices.DeleteFunc(st.Sessions, func(o SessionRecord) bool { return o.ID == id })
	}
}

func TestAStoreWithoutAParentIsRefused(t *testing.T) {
	_, err := New(Options{}, State{Nodes: []NodeRecord{{Path: "/"}, {Path: "/zookeeper"}, {Path: "/a/b"}}}, Now{})
	require.ErrorContains(t, err, "no parent")
}

func TestPathsAreJudgedAsZooKeeperDoes(t *testing.T) {
	for path, ok := range map[string]bool{
		"/": true, "/a": true, "/a/b": true, "/é": true, "/a.b": true, "/..a": true, "/...": true,
		"/" + strings.Repeat("x", 31999): true, "/" + strings.Repeat("x", 32000): false,
		"": false, "a": false, "/a/": false, "//": false, "/a//b": false, "/.": false, "/a/..": false, "/a/./b": false,
		"/a\x00": false, "/\x1f": false, "/\u0085": false, "/\ue000": false, "/\U0001F600": false, "/\xff": false,
	} {
		require.Equal(t, ok, validPath(path), "%q", path)
	}
}

// FuzzRequests feeds decoded junk to a machine: it must keep its invariants, and give the same bytes for the same events.
func FuzzRequests(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1})
	seed := func(op proto.Op, req proto.Request) {
		body := proto.AppendRequest(nil, req)
		f.Add(append(binary.BigEndian.AppendUint16([]byte{byte(op)}, uint16(len(body))), body...))
	}
	seed(proto.OpCreate, &proto.CreateRequest{Op: proto.OpCreate, Path: "/a", ACL: world, Flags: 1, TTL: -1})
	seed(proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpDelete, Body: &proto.DeleteRequest{Path: "/a"}}}})
	seed(proto.OpAddWatch, &proto.WatchRequest{Path: "/", Mode: 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		a, b := newBench(t, State{}), newBench(t, State{})
		for _, x := range []*bench{a, b} {
			x.connect(1, proto.ConnectRequest{TimeoutMs: 5000})
		}
		for len(script) >= 3 {
			op, n := proto.Op(script[0]), min(int(binary.BigEndian.Uint16(script[1:])), len(script)-3)
			body := script[3 : 3+n]
			script = script[3+n:]
			for _, x := range []*bench{a, b} {
				req, _ := proto.DecodeRequest(op, body)
				x.m.Request(x.now, 1, proto.Header{Xid: 1, Op: op}, req)
				x.collect()
			}
		}
		require.Equal(t, a.out, b.out)
		require.Equal(t, dump(a.m), dump(b.m))
	})
}
