package embedded_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/proto"
	"barnabas/zkstate/zktest"
)

// Random requests go to the embedded server and to Apache ZooKeeper, one at a time, and every answer, stat, zxid and watch event
// must be the same. What cannot be the same is translated first: session ids become the number of the client, times become the
// order in which they were seen, children and events of one request are compared as sets.

// side is one of the two servers, with the clients on it.
type side struct {
	t       *testing.T
	srv     zktest.Server
	clients []*peer
}

// peer is a client and the events it got.
type peer struct {
	conn *client.Conn
	mu   sync.Mutex
	seen []string
}

func (p *peer) events() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.seen
	p.seen = nil
	slices.Sort(out)
	return out
}

func (s *side) join(i int) {
	p := &peer{}
	conn, err := client.Dial(s.srv.Addr(), 20*time.Second, client.Session{}, func(e client.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen = append(p.seen, fmt.Sprintf("%d %s", e.Type, e.Path))
	})
	require.NoError(s.t, err)
	p.conn = conn
	if i == len(s.clients) {
		s.clients = append(s.clients, p)
	} else {
		s.clients[i] = p
	}
}

func (s *side) owner(id int64) string {
	for i, p := range s.clients {
		if p.conn.Session().ID == id {
			return fmt.Sprintf("client%d", i)
		}
	}
	return fmt.Sprintf("%x", uint64(id))
}

func (s *side) stat(st proto.Stat) string {
	owner := s.owner(st.EphemeralOwner)
	sameTime := st.Ctime == st.Mtime || st.Mzxid != st.Czxid // a node that was never written has one time
	return fmt.Sprintf("{c%x m%x p%x v%d cv%d av%d owner %s len %d kids %d %v}", st.Czxid, st.Mzxid, st.Pzxid, st.Version, st.Cversion,
		st.Aversion, owner, st.DataLength, st.NumChildren, sameTime)
}

// show renders an answer so that equal answers are equal text.
func (s *side) show(op proto.Op, req proto.Request, reply client.Reply) string {
	head := fmt.Sprintf("zxid %x code %d ", reply.Zxid, reply.Code)
	if reply.Code != proto.OK {
		return head + fmt.Sprintf("%x", reply.Body)
	}
	r := proto.NewReader(reply.Body)
	text := s.body(op, req, r)
	require.NoError(s.t, r.Err(), "op %d", op)
	return head + text
}

func (s *side) body(op proto.Op, req proto.Request, r *proto.Reader) string {
	switch op {
	case proto.OpCreate:
		return r.String()
	case proto.OpSync:
		return r.String()
	case proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		return r.String() + s.stat(r.Stat())
	case proto.OpExists, proto.OpSetData, proto.OpSetACL:
		return s.stat(r.Stat())
	case proto.OpGetData:
		return fmt.Sprintf("%q", r.Buffer()) + s.stat(r.Stat())
	case proto.OpGetACL:
		acls := r.ACLs() // the order of a client's own identities is that of a hash set there
		slices.SortFunc(acls, func(a, b proto.ACL) int { return strings.Compare(a.ID, b.ID) })
		return fmt.Sprint(acls) + s.stat(r.Stat())
	case proto.OpGetChildren, proto.OpGetEphemerals:
		return fmt.Sprint(sorted(r.Strings()))
	case proto.OpGetChildren2:
		return fmt.Sprint(sorted(r.Strings())) + s.stat(r.Stat())
	case proto.OpGetAllChildrenNum, proto.OpAddWatch:
		return strconv.Itoa(int(r.Int32()))
	case proto.OpMulti, proto.OpMultiRead:
		return s.multi(r)
	}
	return ""
}

func (s *side) multi(r *proto.Reader) string {
	var b strings.Builder
	for r.Err() == nil {
		op, done, code := proto.Op(r.Int32()), r.Bool(), r.Int32()
		fmt.Fprintf(&b, "[%d %v %d ", op, done, code)
		if done {
			break
		}
		if op == proto.OpError {
			fmt.Fprintf(&b, "%d", r.Int32())
		} else {
			b.WriteString(s.body(op, nil, r))
		}
	}
	return b.String()
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// script makes random requests from a seed.
type script struct{ *rand.Rand }

func pick[T any](s script, list ...T) T { return list[s.IntN(len(list))] }

func (s script) path() string {
	return pick(s, "/", "/a", "/a/b", "/a/b/c", "/a/c", "/d", "/d/e", "/d/f", "/g", "/zookeeper", "/zookeeper/config", "/a//b", "bad", "/a/", "", "/a/../b", "/é/ü")
}

// In 3.8 the last kind of watch that a client sets on a path replaces the earlier ones; here, as in 3.9, they stand side by side.
// So each lasting kind has a path of its own.
const lasting, recursive = "/a/c", "/d"

func (s script) onceable() string {
	for {
		if p := s.path(); p != lasting && p != recursive {
			return p
		}
	}
}

func (s script) version() int32 { return pick[int32](s, -1, -1, -1, -1, 0, 1, 2, -2) }

func (s script) data() []byte {
	return pick(s, nil, []byte{}, []byte("x"), []byte("some longer data"))
}

func (s script) acl() []proto.ACL {
	open := []proto.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}
	return pick(s, open, open, open, open, open, []proto.ACL{{Perms: 31, Scheme: "auth"}}, []proto.ACL{{Perms: 1, Scheme: "world", ID: "anyone"}},
		[]proto.ACL{{Perms: 31, Scheme: "digest", ID: "u:tpUq/4Pn5A64fVZyQ0gOJ8ZWqkY="}, {Perms: 1, Scheme: "world", ID: "anyone"}},
		nil, []proto.ACL{{Perms: 31, Scheme: "ip", ID: "127.0.0.1"}}, []proto.ACL{{Perms: 31, Scheme: "ip", ID: "10.0.0.0/8"}},
		[]proto.ACL{{Perms: 31, Scheme: "nonsense", ID: "x"}}, []proto.ACL{open[0], open[0]})
}

func (s script) write(multi bool) (proto.Op, proto.Request) {
	switch n := s.IntN(12); {
	case n < 5:
		op := pick(s, proto.OpCreate, proto.OpCreate2)
		r := &proto.CreateRequest{Op: op, Path: s.path(), Data: s.data(), ACL: s.acl(), Flags: pick[int32](s, 0, 0, 0, 1, 2, 3, 9), TTL: -1}
		switch s.IntN(8) {
		case 0:
			r.Op, r.Flags = proto.OpCreateContainer, 4
		case 1:
			r.Op, r.Flags, r.TTL = proto.OpCreateTTL, pick[int32](s, 5, 6), pick[int64](s, 1000000, -1, 0)
		}
		return r.Op, r
	case n < 8:
		return proto.OpDelete, &proto.DeleteRequest{Path: s.path(), Version: s.version()}
	case n < 10:
		return proto.OpSetData, &proto.SetDataRequest{Path: s.path(), Data: s.data(), Version: s.version()}
	case multi:
		return proto.OpCheck, &proto.CheckRequest{Path: s.path(), Version: s.version()}
	}
	return proto.OpSetACL, &proto.SetACLRequest{Path: pick(s, "/a/b", "/a/c", "/d/e", "/nope", "bad"), ACL: s.acl(), Version: s.version()}
}

func (s script) request() (proto.Op, proto.Request) {
	switch n := s.IntN(20); {
	case n < 8:
		return s.write(false)
	case n < 10:
		m := &proto.MultiRequest{}
		for range s.IntN(4) {
			op, r := s.write(true)
			m.Ops = append(m.Ops, proto.MultiOp{Op: op, Body: r})
		}
		return proto.OpMulti, slicesWithoutACL(m)
	case n < 11:
		m := &proto.MultiRequest{}
		for range s.IntN(4) {
			m.Ops = append(m.Ops, proto.MultiOp{Op: pick(s, proto.OpGetData, proto.OpGetChildren), Body: &proto.ReadRequest{Path: s.path()}})
		}
		return proto.OpMultiRead, m
	case n < 12:
		return proto.OpAddWatch, pick(s, &proto.WatchRequest{Path: lasting, Mode: 0}, &proto.WatchRequest{Path: recursive, Mode: 1},
			&proto.WatchRequest{Path: "/g", Mode: 7})
	case n < 13:
		return proto.OpRemoveWatches, &proto.WatchRequest{Path: s.path(), Mode: pick[int32](s, 1, 2, 3, 9)}
	case n < 14 && s.IntN(2) == 0:
		return proto.OpSetWatches2, &proto.SetWatchesRequest{Exist: []string{s.onceable()}, Persistent: []string{lasting}, PersistentTree: []string{recursive}, Second: true}
	case n < 14:
		return proto.OpSetWatches, &proto.SetWatchesRequest{RelativeZxid: int64(s.IntN(40)), Data: []string{s.onceable()}, Exist: []string{s.onceable()}, Child: []string{s.onceable()}}
	case n < 15:
		return pick(s, proto.OpSync, proto.OpGetACL, proto.OpGetEphemerals), &proto.PathRequest{Path: pick(s, "/", "/a", "/d", "/zookeeper/config", "/nope")}
	case n < 16:
		return proto.OpGetAllChildrenNum, &proto.PathRequest{Path: pick(s, "/", "/a", "/d", "/nope")}
	}
	r := &proto.ReadRequest{Path: s.path()}
	if s.IntN(3) == 0 {
		r.Path, r.Watch = s.onceable(), true
	}
	return pick(s, proto.OpExists, proto.OpGetData, proto.OpGetChildren, proto.OpGetChildren2), r
}

// slicesWithoutACL drops setACL, which cannot stand in a multi.
func slicesWithoutACL(m *proto.MultiRequest) *proto.MultiRequest {
	m.Ops = slices.DeleteFunc(m.Ops, func(op proto.MultiOp) bool { return op.Op == proto.OpSetACL })
	return m
}

func TestAnswersEqualThoseOfApacheZooKeeper(t *testing.T) {
	seed, steps := uint64(1), 3000
	if s := os.Getenv("BARNABAS_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	lines := []string{"extendedTypesEnabled=true", "reconfigEnabled=true"}
	ours, theirs := &side{t: t, srv: zktest.Embedded(t, lines...)}, &side{t: t, srv: zktest.Real(t, lines...)}
	sides := []*side{ours, theirs}
	const clients = 3
	for i := range clients {
		for _, s := range sides {
			s.join(i)
		}
	}
	rnd := script{rand.New(rand.NewPCG(seed, 0))}
	for step := range steps {
		i := rnd.IntN(clients)
		var got [2]string
		switch rnd.IntN(60) {
		case 0: // the session ends, a new one comes
			for k, s := range sides {
				require.NoError(t, s.clients[i].conn.Close())
				got[k] = s.settle(i)
				s.join(i)
			}
			require.Equal(t, got[1], got[0], "seed %d step %d: session %d closes", seed, step, i)
			continue
		case 1:
			auth := &proto.AuthRequest{Scheme: pick(rnd, "digest", "ip"), Auth: []byte(pick(rnd, "u:p", "v:q", "nocolon"))}
			for _, s := range sides {
				_, err := s.clients[i].conn.Do(proto.OpAuth, auth)
				require.NoError(t, err)
			}
			continue
		}
		op, req := rnd.request()
		for k, s := range sides {
			reply, err := s.clients[i].conn.Do(op, req)
			require.NoError(t, err, "seed %d step %d: op %d %+v", seed, step, op, req)
			got[k] = s.show(op, req, reply) + s.settle(-1)
		}
		require.Equal(t, got[1], got[0], "seed %d step %d: client %d op %d %s", seed, step, i, op, describe(req))
	}
}

func describe(req proto.Request) string {
	m, ok := req.(*proto.MultiRequest)
	if !ok {
		return fmt.Sprintf("%+v", req)
	}
	var b strings.Builder
	for _, op := range m.Ops {
		fmt.Fprintf(&b, "%d %+v; ", op.Op, op.Body)
	}
	return b.String()
}

// settle waits until every client has got what the last request caused, and lists the events.
func (s *side) settle(except int) string {
	var b strings.Builder
	for i, p := range s.clients {
		if i == except {
			continue
		}
		_, err := p.conn.Do(proto.OpPing, &proto.EmptyRequest{})
		require.NoError(s.t, err)
		if events := p.events(); len(events) > 0 {
			fmt.Fprintf(&b, " client%d saw %v", i, events)
		}
	}
	return b.String()
}
