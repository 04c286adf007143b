package zkstate_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

func operationsAreAnsweredEachByItselfInTheOrderGiven(t *testing.T, addr string) {
	c, ctx := connect(t, addr, nil), within(t, time.Minute)
	rs, err := c.Do(ctx, []Op{
		Create("/a", []byte("1")), Create("/a/b", nil), Get("/a"), Get("/a/b"), Children("/a"), Exists("/missing"),
		Set("/a", []byte("2"), 0), Set("/a", []byte("3"), 0), CreateSequential("/a/n-", nil), CreateEphemeral("/a/e", nil),
		Delete("/a/b", AnyVersion), Get("/a/b"), Get("/a"), Create("/a", nil), Sync("/a"), {Kind: OpGetACL, Path: "/a"},
	})
	require.NoError(t, err)
	errs := make([]error, len(rs))
	for i, r := range rs {
		errs[i] = r.Err
	}
	assert.Equal(t, []error{nil, nil, nil, nil, nil, ErrNoNode, nil, ErrBadVersion, nil, nil, nil, ErrNoNode, nil, ErrNodeExists, nil, nil}, errs)
	assert.Equal(t, "1", string(rs[2].Data))
	assert.Nil(t, rs[3].Data, "a directory has no data, which is not empty data")
	assert.Equal(t, []string{"b"}, rs[4].Children)
	assert.Equal(t, int32(1), rs[6].Stat.Version)
	assert.Equal(t, "/a/n-0000000001", rs[8].Path, "the chroot is not shown")
	assert.Equal(t, "2", string(rs[12].Data))
	assert.Equal(t, []ACL{{Perms: PermAll, Scheme: "world", ID: "anyone"}}, rs[15].ACL)
}

func theChrootIsMadeWhenItIsMissing(t *testing.T, addr string) {
	c := connect(t, addr, func(c *Config) { c.Servers = addr + chroot(t) + "/deep/er" })
	_, err := c.One(within(t, time.Minute), Create("/x", nil))
	require.NoError(t, err)
	outside := connect(t, addr, nil)
	_, err = outside.One(within(t, time.Minute), Exists("/deep/er/x"))
	require.NoError(t, err)
}

func aMultiHappensWholeOrNotAtAll(t *testing.T, addr string) {
	c, ctx := connect(t, addr, nil), within(t, time.Minute)
	rs, err := c.Multi(ctx, []Op{Create("/a", nil), CreateSequential("/a/n-", []byte("x")), Set("/a", []byte("y"), 0), Check("/a", 1)})
	require.NoError(t, err)
	assert.Equal(t, "/a/n-0000000000", rs[1].Path)
	assert.Equal(t, int32(1), rs[2].Stat.Version)

	rs, err = c.Multi(ctx, []Op{Create("/b", nil), Check("/a", 7), Create("/c", nil)})
	require.ErrorIs(t, err, ErrBadVersion)
	assert.Equal(t, []error{ErrRolledBack, ErrBadVersion, ErrRolledBack}, []error{rs[0].Err, rs[1].Err, rs[2].Err})
	_, err = c.One(ctx, Exists("/b"))
	assert.ErrorIs(t, err, ErrNoNode)
}

func thousandsOfOperationsArePipelinedAndThoseOnOneNodeKeepTheirOrder(t *testing.T, addr string) {
	c, ctx := connect(t, addr, func(c *Config) { c.MaxInFlight = 64 }), within(t, 60*time.Second)
	ops := []Op{Create("/p", nil)}
	for i := range 500 {
		ops = append(ops, Create(fmt.Sprintf("/p/%d", i), nil))
	}
	for v := range int32(3) {
		for i := range 500 {
			ops = append(ops, Set(fmt.Sprintf("/p/%d", i), []byte{byte(v)}, v))
		}
	}
	rs, err := c.Do(ctx, ops)
	require.NoError(t, err)
	for i, r := range rs {
		require.NoError(t, r.Err, "%d %v", i, ops[i])
	}
	r, err := c.One(ctx, Get("/p/499"))
	require.NoError(t, err)
	assert.Equal(t, []byte{2}, r.Data)
}

func anOperationTooLargeForAServerIsNotSent(t *testing.T, addr string) {
	c, ctx := connect(t, addr, nil), within(t, time.Minute)
	_, err := c.One(ctx, Create("/big", make([]byte, 2<<20)))
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = c.One(ctx, Create("/nearly", make([]byte, 1<<20-4096)))
	require.NoError(t, err)
}

func badPathsAreRefusedWithoutAskingTheServer(t *testing.T, addr string) {
	c, ctx := connect(t, addr, nil), within(t, time.Minute)
	for _, p := range []string{"", "a", "/a/", "//", "/a/../b", "/\x00"} {
		_, err := c.One(ctx, Get(p))
		assert.ErrorIs(t, err, ErrBadArguments, p)
	}
}

func aWatchFiresOnceForEveryChangeThatIsReadAgain(t *testing.T, addr string) {
	c, ctx := connect(t, addr, nil), within(t, time.Minute)
	events := c.Subscribe()
	_, err := c.One(ctx, Exists("/w").Watched())
	require.ErrorIs(t, err, ErrNoNode)
	_, err = c.One(ctx, Create("/w", nil))
	require.NoError(t, err)
	assert.Equal(t, "/w", expect(t, events, NodeCreated).Path)
	_, err = c.Do(ctx, []Op{Get("/w").Watched(), Children("/w").Watched(), Set("/w", []byte("x"), AnyVersion), Create("/w/c", nil)})
	require.NoError(t, err)
	seen := map[EventKind]string{}
	for range 2 {
		e := <-events.C()
		seen[e.Kind] = e.Path
	}
	assert.Equal(t, map[EventKind]string{NodeDataChanged: "/w", NodeChildrenChanged: "/w"}, seen)
}

func aSessionOutlivesABrokenConnectionWithItsNodesAndWatches(t *testing.T, addr string) {
	p := newProxy(t, addr)
	c, ctx := connect(t, p.addr(), nil), within(t, time.Minute)
	other := connect(t, addr, nil)
	_, err := c.Do(ctx, []Op{CreateEphemeral("/e", nil), Exists("/new").Watched()})
	require.NoError(t, err)
	events := c.Subscribe()
	id, generation := c.Session()

	p.refuse()
	expect(t, events, Disconnected)
	_, err = other.One(ctx, Create("/new", nil))
	require.NoError(t, err)
	p.heal()
	expect(t, events, Connected)
	assert.Equal(t, "/new", expect(t, events, NodeCreated).Path, "what changed while away is told")
	nowID, nowGeneration := c.Session()
	assert.Equal(t, []any{id, generation}, []any{nowID, nowGeneration})
	_, err = c.One(ctx, Exists("/e"))
	require.NoError(t, err)
}

func operationsOfAnExpiredSessionNeverRunInTheNext(t *testing.T, addr string) {
	p := newProxy(t, addr)
	c, ctx := connect(t, p.addr(), func(c *Config) { c.SessionTimeout = shortSession }), within(t, time.Minute)
	_, err := c.One(ctx, CreateEphemeral("/e", nil))
	require.NoError(t, err)
	events := c.Subscribe()
	_, first := c.Session()

	p.refuse()
	expect(t, events, Disconnected)
	var wg sync.WaitGroup
	errs := make([]error, 50)
	for i := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, errs[i] = c.One(ctx, Create(fmt.Sprintf("/late-%d", i), nil))
		}()
	}
	expect(t, events, SessionLapsed)
	waitFor(t, func() bool { return !sessionAlive(t, addr, chroot(t)+"/e") })
	p.heal()
	expect(t, events, SessionExpired)
	started := expect(t, events, SessionStarted)
	wg.Wait()
	for _, err := range errs {
		assert.ErrorIs(t, err, ErrSessionExpired)
	}
	assert.Equal(t, first+1, started.Generation)
	names, err := c.One(ctx, Children("/"))
	require.NoError(t, err)
	assert.Empty(t, names.Children, "nothing of the old session took effect, and its ephemeral node is gone")

	_, err = c.One(WithGeneration(ctx, first), Create("/late", nil))
	assert.ErrorIs(t, err, ErrSessionExpired)
	_, err = c.One(WithGeneration(ctx, first+1), Create("/new", nil))
	assert.NoError(t, err)
}

func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, time.Minute, 20*time.Millisecond)
}

// sessionAlive tells whether the server still lists the ephemeral node.
func sessionAlive(t *testing.T, addr, node string) bool {
	dump, err := fourLetters(addr, "dump")
	require.NoError(t, err)
	return contains(dump, node)
}

func contains(s, part string) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i:i+len(part)] == part {
			return true
		}
	}
	return false
}

func aWriteWhoseAnswerIsLostIsReportedAsUnknown(t *testing.T, addr string) {
	p := newProxy(t, addr)
	c, ctx := connect(t, p.addr(), nil), within(t, time.Minute)
	p.mute()
	done := make(chan error, 1)
	go func() {
		_, err := c.One(ctx, Create("/x", nil))
		done <- err
	}()
	other := connect(t, addr, nil)
	waitFor(t, func() bool { _, err := other.One(ctx, Exists("/x")); return err == nil })
	p.heal()
	p.cut()
	require.ErrorIs(t, <-done, ErrConnectionLoss)
	_, err := c.One(ctx, Get("/x"))
	require.NoError(t, err, "reads are repeated by themselves")
}

func operationsWaitForAServerThatIsAway(t *testing.T, addr string) {
	p := newProxy(t, addr)
	c := connect(t, p.addr(), func(c *Config) { c.SessionTimeout = 20 * time.Second })
	events := c.Subscribe()
	p.refuse()
	expect(t, events, Disconnected)

	short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := c.One(short, Create("/never", nil))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, ErrConnectionLoss, "it was not sent")

	done := make(chan error, 1)
	go func() {
		_, err := c.One(within(t, time.Minute), Create("/x", nil))
		done <- err
	}()
	p.heal()
	require.NoError(t, <-done)
}

func TestConnectFailsInTimeWhenNobodyIsThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	began := time.Now()
	_, err = Connect(Config{Servers: addr, ConnectTimeout: 300 * time.Millisecond, Log: quiet()})
	require.ErrorContains(t, err, "no ZooKeeper session within 300ms")
	assert.Less(t, time.Since(began), 20*time.Second)
}

func anotherServerIsTriedWhenTheFirstHangsOrSpeaksSomethingElse(t *testing.T, addr string) {
	for name, behave := range map[string]func(net.Conn){
		"hangs":           func(net.Conn) {},
		"something else":  func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
		"closes at once":  func(c net.Conn) { _ = c.Close() },
		"half a greeting": func(c net.Conn) { _, _ = c.Write([]byte{0, 0}) },
	} {
		t.Run(name, func(t *testing.T) {
			good := addr
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			var wg sync.WaitGroup
			wg.Add(1)
			go func() {
				defer wg.Done()
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					t.Cleanup(func() { _ = conn.Close() })
					behave(conn)
				}
			}()
			t.Cleanup(func() { _ = l.Close(); wg.Wait() })
			bad := l.Addr().String()
			c, err := Connect(Config{Servers: bad + "," + good + chroot(t), SessionTimeout: 3 * time.Second, ConnectTimeout: time.Minute, Log: quiet()})
			require.NoError(t, err)
			c.Close()
		})
	}
}

func closeEndsTheSessionAtOnceAndEverythingThatWaits(t *testing.T, addr string) {
	p := newProxy(t, addr)
	c, err := Connect(Config{Servers: p.addr() + chroot(t), SessionTimeout: 30 * time.Second, Log: quiet()})
	require.NoError(t, err)
	ctx := within(t, time.Minute)
	_, err = c.One(ctx, CreateEphemeral("/e", nil))
	require.NoError(t, err)
	events := c.Subscribe().C()
	c.Close()
	for range events {
	}
	other := connect(t, addr, nil)
	_, err = other.One(ctx, Exists("/e"))
	require.ErrorIs(t, err, ErrNoNode, "the session said goodbye")
	_, err = c.One(ctx, Get("/"))
	require.ErrorIs(t, err, ErrClosed)
	_, open := <-c.Subscribe().C()
	assert.False(t, open)
}

func closeDoesNotWaitForAServerThatIsAway(t *testing.T, addr string) {
	p := newProxy(t, addr)
	c, err := Connect(Config{Servers: p.addr() + chroot(t), SessionTimeout: time.Minute, Log: quiet()})
	require.NoError(t, err)
	events := c.Subscribe()
	p.refuse()
	expect(t, events, Disconnected)
	done := make(chan error, 1)
	go func() {
		_, err := c.One(context.Background(), Get("/"))
		done <- err
	}()
	began := time.Now()
	c.Close()
	assert.Less(t, time.Since(began), 20*time.Second)
	assert.True(t, errors.Is(<-done, ErrClosed))
}

func withSecureACLsOnlyTheCreatorMayWriteAndSecretsAreHidden(t *testing.T, addr string) {
	ctx := within(t, time.Minute)
	secure := connect(t, addr, func(c *Config) { c.SecureACLs = true; c.Auth = []Auth{{"digest", "broker:secret"}} })
	require.NoError(t, secure.MakePersistentPaths(ctx))
	_, err := secure.One(ctx, Create("/config/users/alice", []byte("x")))
	require.NoError(t, err)
	stranger := connect(t, addr, nil)
	rs, err := stranger.Do(ctx, []Op{Get("/brokers/topics"), Create("/brokers/topics/t", nil), Get("/config/users/alice"), Create("/consumers/g", nil)})
	require.NoError(t, err)
	assert.Equal(t, []error{nil, ErrNoAuth, ErrNoAuth, nil}, []error{rs[0].Err, rs[1].Err, rs[2].Err, rs[3].Err})
	friend := connect(t, addr, func(c *Config) { c.Auth = []Auth{{"digest", "broker:secret"}} })
	_, err = friend.One(ctx, Get("/config/users/alice"))
	require.NoError(t, err)
}

func credentialsHoldAfterAReconnectionAndInTheNextSession(t *testing.T, addr string) {
	p := newProxy(t, addr)
	ctx := within(t, time.Minute)
	c := connect(t, p.addr(), func(c *Config) {
		c.SessionTimeout = shortSession
		c.SecureACLs = true
		c.Auth = []Auth{{"digest", "broker:secret"}}
	})
	_, err := c.One(ctx, Create("/config", nil))
	require.NoError(t, err)
	events := c.Subscribe()
	p.cut()
	expect(t, events, Connected)
	_, err = c.One(ctx, Set("/config", []byte("1"), AnyVersion))
	require.NoError(t, err)
	p.refuse()
	expect(t, events, SessionLapsed)
	time.AfterFunc(2*shortSession, p.heal)
	expect(t, events, SessionStarted)
	_, err = c.One(ctx, Set("/config", []byte("2"), AnyVersion))
	require.NoError(t, err)
}

func TestASessionOutlivesARestartOfTheServer(t *testing.T) {
	zktest.Each(t, func(t *testing.T, srv zktest.Server) {
		c, ctx := connect(t, srv.Addr(), func(c *Config) { c.SessionTimeout = 20 * time.Second }), within(t, time.Minute)
		_, err := c.Do(ctx, []Op{CreateEphemeral("/e", nil), Create("/p", []byte("kept")), Exists("/later").Watched()})
		require.NoError(t, err)
		id, generation := c.Session()
		events := c.Subscribe()
		srv.Restart()
		r, err := c.One(ctx, Get("/p"))
		require.NoError(t, err)
		assert.Equal(t, "kept", string(r.Data))
		e, err := c.One(ctx, Exists("/e"))
		require.NoError(t, err)
		assert.Equal(t, id, e.Stat.EphemeralOwner)
		_, err = c.One(ctx, Create("/later", nil))
		require.NoError(t, err)
		assert.Equal(t, Event{Kind: NodeCreated, Path: "/later", Session: id, Generation: generation}, expect(t, events, NodeCreated))
	})
}
