package embedded_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/proto"
	"barnabas/zkstate/zktest"
)

// The behaviours that clients rely on, through the library that Barnabas itself uses, on the embedded server and on Apache's. All
// share one server of each kind; every one has a corner of the tree to itself.
func TestZooKeeperBehaviour(t *testing.T) {
	zktest.Each(t, func(t *testing.T, srv zktest.Server) {
		for _, b := range []struct {
			name string
			test func(t *testing.T, srv zktest.Server, dir string)
		}{
			{"parent counters move on creation and removal of children alone", parentCounters},
			{"sequence numbers come from the parent and are never used twice", sequenceNumbers},
			{"a closed session takes its ephemerals along", closedSession},
			{"an expired session takes its ephemerals along and tells its client", expiredSession},
			{"an ephemeral node has no children", ephemeralParents},
			{"a failed multi answers one result per operation", failedMulti},
			{"a watch fires once", oneShotWatches},
			{"what nobody may do is refused", accessControl},
			{"null and empty data are told apart", nullData},
			{"a session is taken up again after the server was killed", restart},
			{"a request over the limit ends the connection", tooLarge},
			{"operations of an ensemble are refused by their codes", refusals},
			{"four-letter commands answer whoever asks", fourLetters},
		} {
			t.Run(b.name, func(t *testing.T) {
				dir := "/" + strings.ReplaceAll(b.name, " ", "-")
				c := dial(t, srv)
				_, err := c.Call(proto.OpCreate, &proto.CreateRequest{Op: proto.OpCreate, Path: dir, ACL: openACL, TTL: -1})
				require.NoError(t, err)
				b.test(t, srv, dir)
			})
		}
	}, "reconfigEnabled=true")
}

func dial(t *testing.T, srv zktest.Server) *client.Conn {
	t.Helper()
	c, err := client.Dial(srv.Addr(), 50*time.Second, client.Session{}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Close()
	})
	return c
}

type quietZK struct{}

func (quietZK) Printf(string, ...any) {}

// library connects go-zookeeper and waits for its session.
func library(t *testing.T, srv zktest.Server, timeout time.Duration) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	c, events, err := zk.Connect([]string{srv.Addr()}, timeout, zk.WithLogger(quietZK{}))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	await(t, events, zk.StateHasSession)
	return c, events
}

func await(t *testing.T, events <-chan zk.Event, state zk.State) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case e := <-events:
			if e.State == state {
				return
			}
		case <-deadline:
			t.Fatalf("no %v in 20 s", state)
		}
	}
}

func parentCounters(t *testing.T, srv zktest.Server, dir string) {
	c, _ := library(t, srv, 10*time.Second)
	stat := func() *zk.Stat {
		_, st, err := c.Exists(dir)
		require.NoError(t, err)
		return st
	}
	start := stat()
	_, err := c.Create(dir+"/a", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	made := stat()
	require.Equal(t, start.Cversion+1, made.Cversion)
	require.Equal(t, start.NumChildren+1, made.NumChildren)
	require.Greater(t, made.Pzxid, start.Pzxid)
	_, err = c.Set(dir+"/a", []byte("x"), -1)
	require.NoError(t, err)
	require.Equal(t, made, stat(), "data of a child is no concern of the parent")
	_, err = c.Set(dir, []byte("y"), -1)
	require.NoError(t, err)
	written := stat()
	require.Equal(t, made.Version+1, written.Version)
	require.Equal(t, []any{made.Cversion, made.Pzxid}, []any{written.Cversion, written.Pzxid})
	require.NoError(t, c.Delete(dir+"/a", -1))
	gone := stat()
	require.Equal(t, written.Cversion+1, gone.Cversion)
	require.Greater(t, gone.Pzxid, written.Pzxid)
	require.Equal(t, written.Mzxid, gone.Mzxid)
}

func sequenceNumbers(t *testing.T, srv zktest.Server, dir string) {
	c, _ := library(t, srv, 10*time.Second)
	for i, want := range []string{"0000000000", "0000000001", "0000000002"} {
		path, err := c.Create(dir+"/n-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		require.Equal(t, dir+"/n-"+want, path)
		if i == 1 {
			require.NoError(t, c.Delete(path, -1))
		}
	}
	path, err := c.Create(dir+"/", nil, zk.FlagSequence|zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	require.Equal(t, dir+"/0000000003", path)
}

func closedSession(t *testing.T, srv zktest.Server, dir string) {
	other := dial(t, srv)
	owner, _, err := zk.Connect([]string{srv.Addr()}, 10*time.Second, zk.WithLogger(quietZK{}))
	require.NoError(t, err)
	for i := range 3 {
		_, err := owner.Create(fmt.Sprintf("%s/e%d", dir, i), nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	r, err := other.Call(proto.OpExists, &proto.ReadRequest{Path: dir})
	require.NoError(t, err)
	before := r.Stat()
	require.EqualValues(t, 3, before.NumChildren)
	owner.Close()
	r, err = other.Call(proto.OpExists, &proto.ReadRequest{Path: dir})
	require.NoError(t, err)
	after := r.Stat()
	require.Zero(t, after.NumChildren)
	require.Equal(t, before.Cversion+3, after.Cversion)
	require.Greater(t, after.Pzxid, before.Pzxid)
}

func expiredSession(t *testing.T, srv zktest.Server, dir string) {
	c, events := library(t, srv, 10*time.Second)
	_, err := c.Create(dir+"/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	gone := make(chan client.Event, 10)
	watcher, err := client.Dial(srv.Addr(), 50*time.Second, client.Session{}, func(e client.Event) { gone <- e })
	require.NoError(t, err)
	defer watcher.Close()
	_, err = watcher.Call(proto.OpExists, &proto.ReadRequest{Path: dir + "/e", Watch: true})
	require.NoError(t, err)

	// A second client that stops pinging: the server itself must end its session.
	silent, err := net.Dial("tcp", srv.Addr())
	require.NoError(t, err)
	defer silent.Close()
	_, err = silent.Write(proto.Seal(proto.AppendConnect(proto.Frame(), proto.ConnectRequest{TimeoutMs: 300, Password: make([]byte, 16)})))
	require.NoError(t, err)
	_ = silent.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err = io.ReadAll(silent)
	require.NoError(t, err, "hung up on within its timeout and a little")

	st, err := c.Multi(&zk.CheckVersionRequest{Path: dir, Version: -1})
	require.NoError(t, err)
	require.Len(t, st, 1)
	// go-zookeeper does not show its password, so the owner of a fresh ephemeral stands in for it.
	owner, err := client.Dial(srv.Addr(), 50*time.Second, client.Session{}, nil)
	require.NoError(t, err)
	_, err = owner.Call(proto.OpCreate2, create(dir+"/f", "", 1))
	require.NoError(t, err)
	_, err = watcher.Call(proto.OpExists, &proto.ReadRequest{Path: dir + "/f", Watch: true})
	require.NoError(t, err)
	s := owner.Session()
	srv.ExpireSession(s.ID, s.Password)
	require.Equal(t, client.Event{Type: proto.NodeDeleted, Path: dir + "/f"}, <-gone)
	<-owner.Done()
	owner.Drop()
	_, err = client.Dial(srv.Addr(), 50*time.Second, s, nil)
	require.ErrorIs(t, err, client.ErrExpired)
	_ = events
}

func ephemeralParents(t *testing.T, srv zktest.Server, dir string) {
	c, _ := library(t, srv, 10*time.Second)
	_, err := c.Create(dir+"/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, err = c.Create(dir+"/e/child", nil, 0, zk.WorldACL(zk.PermAll))
	require.ErrorIs(t, err, zk.ErrNoChildrenForEphemerals)
	require.ErrorIs(t, c.Delete(dir, -1), zk.ErrNotEmpty)
}

func failedMulti(t *testing.T, srv zktest.Server, dir string) {
	c, _ := library(t, srv, 10*time.Second)
	acl := zk.WorldACL(zk.PermAll)
	_, err := c.Create(dir+"/epoch", nil, 0, acl)
	require.NoError(t, err)
	for _, tc := range []struct {
		ops  []any
		want []error
	}{
		{[]any{&zk.CheckVersionRequest{Path: dir + "/epoch", Version: 5}, &zk.SetDataRequest{Path: dir, Version: -1}}, []error{zk.ErrBadVersion, zk.ErrUnknown}},
		{[]any{&zk.CheckVersionRequest{Path: dir + "/epoch", Version: 0}, &zk.CreateRequest{Path: dir + "/epoch", Acl: acl}}, []error{nil, zk.ErrNodeExists}},
		{[]any{&zk.CreateRequest{Path: dir + "/A", Acl: acl}, &zk.DeleteRequest{Path: dir + "/missing"}, &zk.CreateRequest{Path: dir + "/B", Acl: acl}},
			[]error{nil, zk.ErrNoNode, zk.ErrUnknown}},
	} {
		got, err := c.Multi(tc.ops...)
		require.Error(t, err)
		require.Len(t, got, len(tc.ops))
		for i, r := range got {
			if tc.want[i] == zk.ErrUnknown {
				require.Error(t, r.Error)
			} else {
				require.Equal(t, tc.want[i], r.Error)
			}
		}
	}
	children, _, err := c.Children(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"epoch"}, children)
}

func oneShotWatches(t *testing.T, srv zktest.Server, dir string) {
	c, _ := library(t, srv, 10*time.Second)
	there, _, made, err := c.ExistsW(dir + "/n")
	require.NoError(t, err)
	require.False(t, there)
	_, _, children, err := c.ChildrenW(dir)
	require.NoError(t, err)
	_, err = c.Create(dir+"/n", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	require.Equal(t, zk.EventNodeCreated, (<-made).Type)
	require.Equal(t, zk.EventNodeChildrenChanged, (<-children).Type)
	_, _, written, err := c.GetW(dir + "/n")
	require.NoError(t, err)
	for range 2 {
		_, err = c.Set(dir+"/n", nil, -1)
		require.NoError(t, err)
	}
	require.Equal(t, zk.EventNodeDataChanged, (<-written).Type)
	_, more := <-written
	require.False(t, more)
}

func accessControl(t *testing.T, srv zktest.Server, dir string) {
	owner, _ := library(t, srv, 10*time.Second)
	require.NoError(t, owner.AddAuth("digest", []byte("user:password")))
	_, err := owner.Create(dir+"/mine", []byte("x"), 0, zk.AuthACL(zk.PermAll))
	require.NoError(t, err)
	_, err = owner.Create(dir+"/shown", nil, 0, append(zk.DigestACL(zk.PermAll, "user", "password"), zk.WorldACL(zk.PermRead)...))
	require.NoError(t, err)
	stranger, _ := library(t, srv, 10*time.Second)
	_, _, err = stranger.Get(dir + "/mine")
	require.ErrorIs(t, err, zk.ErrNoAuth)
	_, err = stranger.Set(dir+"/shown", nil, -1)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	acl, _, err := stranger.GetACL(dir + "/shown")
	require.NoError(t, err)
	require.Equal(t, "user:x", acl[0].ID)
	_, err = stranger.Create(dir+"/bad", nil, 0, zk.AuthACL(zk.PermAll))
	require.ErrorIs(t, err, zk.ErrInvalidACL)
	acl, _, err = owner.GetACL(dir + "/shown")
	require.NoError(t, err)
	require.NotEqual(t, "user:x", acl[0].ID)
}

func nullData(t *testing.T, srv zktest.Server, dir string) {
	c := dial(t, srv)
	for name, data := range map[string][]byte{"null": nil, "empty": {}} {
		req := create(dir+"/"+name, "", 0)
		req.Data = data
		_, err := c.Call(proto.OpCreate2, req)
		require.NoError(t, err)
	}
	srv.Restart()
	c = dial(t, srv)
	r, err := c.Call(proto.OpGetData, &proto.ReadRequest{Path: dir + "/null"})
	require.NoError(t, err)
	require.Nil(t, r.Buffer())
	r, err = c.Call(proto.OpGetData, &proto.ReadRequest{Path: dir + "/empty"})
	require.NoError(t, err)
	require.NotNil(t, r.Buffer())
}

func restart(t *testing.T, srv zktest.Server, dir string) {
	c, err := client.Dial(srv.Addr(), 50*time.Second, client.Session{}, nil)
	require.NoError(t, err)
	r, err := c.Call(proto.OpCreate2, create(dir+"/e", "data", 1))
	require.NoError(t, err)
	_, before := r.String(), r.Stat()
	srv.Restart()
	<-c.Done()
	c.Drop()
	events := make(chan client.Event, 1)
	c, err = client.Dial(srv.Addr(), 50*time.Second, c.Session(), func(e client.Event) { events <- e })
	require.NoError(t, err)
	defer c.Close()
	r, err = c.Call(proto.OpExists, &proto.ReadRequest{Path: dir + "/e"})
	require.NoError(t, err)
	require.Equal(t, before, r.Stat())
	_, err = c.Call(proto.OpSetWatches, &proto.SetWatchesRequest{RelativeZxid: before.Czxid - 1, Data: []string{dir + "/e"}})
	require.NoError(t, err)
	require.Equal(t, client.Event{Type: proto.NodeDataChanged, Path: dir + "/e"}, <-events)
}

func tooLarge(t *testing.T, srv zktest.Server, dir string) {
	c := dial(t, srv)
	const limit = 0xfffff
	fits := create(dir+"/n", "", 0)
	fits.Data = make([]byte, limit-8-len(proto.AppendRequest(nil, fits)))
	_, err := c.Call(proto.OpCreate2, fits)
	require.NoError(t, err)
	_, err = c.Do(proto.OpSetData, &proto.SetDataRequest{Path: dir + "/n", Data: make([]byte, limit), Version: -1})
	require.ErrorIs(t, err, client.ErrClosed)
}

func refusals(t *testing.T, srv zktest.Server, dir string) {
	code := func(op proto.Op, req proto.Request) proto.Code {
		r, err := dial(t, srv).Do(op, req)
		require.NoError(t, err)
		return r.Code
	}
	ttl := create(dir+"/ttl", "", 5)
	ttl.Op, ttl.TTL = proto.OpCreateTTL, 1000
	require.Equal(t, proto.Unimplemented, code(proto.OpCreateTTL, ttl))
	reconfig := &proto.SetWatchesRequest{} // three null strings and a version: what matters is the operation
	require.Equal(t, proto.Unimplemented, code(proto.OpReconfig, reconfig))
	require.Equal(t, proto.Unimplemented, code(proto.Op(55), &proto.EmptyRequest{}))
	require.Equal(t, proto.AuthFailed, code(proto.OpAuth, &proto.AuthRequest{Scheme: "nonsense"}))
	require.Equal(t, proto.BadArguments, code(proto.OpDelete, &proto.DeleteRequest{Path: "/zookeeper/quota", Version: -1}))
	require.Equal(t, proto.NoAuth, code(proto.OpSetData, &proto.SetDataRequest{Path: "/zookeeper/config", Version: -1}))
}

func fourLetters(t *testing.T, srv zktest.Server, _ string) {
	dial(t, srv)
	for word, want := range map[string]string{
		"ruok": "imok", "isro": "rw", "srvr": "Mode: standalone\nNode count: ", "stat": "Clients:\n /127.0.0.1:", "mntr": "zk_znode_count\t",
		"conf": "clientPort=", "cons": ",sid=0x", "dump": "ephemeral nodes dump:", "envi": "zookeeper.version=", "wchs": "Total watches:",
		"wchc": "\n", "wchp": "\n", "dirs": "datadir_size: ",
	} {
		require.Contains(t, ask(t, srv.Addr(), word), want, word)
	}
	require.Empty(t, ask(t, srv.Addr(), "abcd"), "no command, and far too long a frame")
	require.Equal(t, "imok", ask(t, srv.Addr(), "ru", "ok\n"), "in two packets, with a line end")
}

// ask sends a command in parts and reads to the end.
func ask(t *testing.T, addr string, parts ...string) string {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	for _, p := range parts {
		_, err = conn.Write([]byte(p))
		require.NoError(t, err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

func TestOnlyListedCommandsAreAnswered(t *testing.T) {
	zktest.Each(t, func(t *testing.T, srv zktest.Server) {
		require.Contains(t, ask(t, srv.Addr(), "srvr"), "standalone")
		require.Equal(t, "ruok is not executed because it is not in the whitelist.\n", ask(t, srv.Addr(), "ruok"))
	}, "4lw.commands.whitelist=srvr")
}

func TestConnectionsFromOneAddressAreLimited(t *testing.T) {
	zktest.Each(t, func(t *testing.T, srv zktest.Server) {
		var first *client.Conn
		for range 3 {
			c, err := client.Dial(srv.Addr(), 30*time.Second, client.Session{}, nil)
			require.NoError(t, err)
			defer c.Drop()
			first = c
		}
		_, err := client.Dial(srv.Addr(), 30*time.Second, client.Session{}, nil)
		require.Error(t, err)
		require.NoError(t, first.Close())
		require.Eventually(t, func() bool {
			c, err := client.Dial(srv.Addr(), 30*time.Second, client.Session{}, nil)
			if err == nil {
				c.Drop()
			}
			return err == nil
		}, time.Minute, 50*time.Millisecond)
	}, "maxClientCnxns=3")
}
