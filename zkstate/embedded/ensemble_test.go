package embedded_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
	"barnabas/zkstate/embedded"
	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/proto"
)

// servers is an ensemble in this process. Each server may have addresses of its own for the others.
type servers struct {
	t     *testing.T
	cfg   []embedded.Config
	up    []*embedded.Server
	ports int
}

// newServers makes n servers, numbered from 1, and starts none.
func newServers(t *testing.T, n int) *servers {
	e := &servers{t: t, up: make([]*embedded.Server, n), ports: lane.Ports(t, 3*n)}
	for i := range n {
		e.cfg = append(e.cfg, embedded.Config{
			Addr: e.addr(i, 0), DataDir: t.TempDir(), Log: quietLog(), FourLetterWhitelist: []string{"*"}, MinSessionTimeout: time.Second,
			Ensemble: &embedded.Ensemble{ID: uint64(i + 1), Servers: map[uint64]embedded.Addresses{}},
		})
		for j := range n {
			e.cfg[i].Ensemble.Servers[uint64(j+1)] = embedded.Addresses{Quorum: e.addr(j, 1), Relay: e.addr(j, 2)}
		}
	}
	t.Cleanup(func() {
		for i := range n {
			e.stop(i)
		}
	})
	return e
}

func (e *servers) addr(i, which int) string { return fmt.Sprintf("127.0.0.1:%d", e.ports+3*i+which) }

func (e *servers) start(who ...int) {
	e.t.Helper()
	for _, i := range who {
		srv, err := embedded.Start(e.cfg[i])
		require.NoError(e.t, err)
		e.up[i] = srv
	}
}

func (e *servers) stop(who ...int) {
	for _, i := range who {
		if e.up[i] != nil {
			require.NoError(e.t, e.up[i].Close())
			e.up[i] = nil
		}
	}
}

// dial connects to one server as soon as that serves.
func (e *servers) dial(i int, s client.Session) *client.Conn {
	e.t.Helper()
	return dialServing(e.t, e.addr(i, 0), s, nil)
}

func dialServing(t *testing.T, addr string, s client.Session, onEvent func(client.Event)) (c *client.Conn) {
	t.Helper()
	require.Eventually(t, func() (ok bool) {
		var err error
		c, err = client.Dial(addr, 20*time.Second, s, onEvent)
		require.NotErrorIs(t, err, client.ErrExpired)
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	t.Cleanup(c.Drop)
	return c
}

// leader is who leads, once somebody does.
func (e *servers) leader() (leader int) {
	e.t.Helper()
	require.Eventually(e.t, func() bool {
		for i, srv := range e.up {
			if srv != nil && strings.Contains(word(e.addr(i, 0), "srvr"), "Mode: leader") {
				leader = i
				return true
			}
		}
		return false
	}, time.Minute, 20*time.Millisecond)
	return leader
}

// leads ends whoever else leads, for a moment, until this one does.
func (e *servers) leads(i int) {
	e.t.Helper()
	for l := e.leader(); l != i; l = e.leader() {
		e.stop(l)
		e.leader()
		e.start(l)
		e.synced(2)
	}
}

// synced waits until the leader has so many followers that are in step.
func (e *servers) synced(n int) {
	e.t.Helper()
	require.Eventually(e.t, func() bool {
		for i := range e.cfg {
			if strings.Contains(word(e.addr(i, 0), "mntr"), fmt.Sprintf("zk_synced_followers\t%d\n", n)) {
				return true
			}
		}
		return false
	}, time.Minute, 20*time.Millisecond)
}

// word asks a four-letter word; "" when nobody answers.
func word(addr, what string) string {
	nc, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return ""
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(nc, what)
	answer, _ := io.ReadAll(nc)
	return string(answer)
}

func exists(t *testing.T, c *client.Conn, path string) bool {
	t.Helper()
	_, err := c.Call(proto.OpExists, &proto.ReadRequest{Path: path})
	var code *client.Error
	if errors.As(err, &code) && code.Code == proto.NoNode {
		return false
	}
	require.NoError(t, err)
	return true
}

func TestAnEnsembleIsOneTreeThroughEachOfItsServers(t *testing.T) {
	e := newServers(t, 3)
	e.start(0, 1)
	require.Equal(t, "This ZooKeeper instance is not currently serving requests\n", word(e.addr(0, 0), "srvr"), "it begins with all its servers")
	require.Equal(t, "imok", word(e.addr(0, 0), "ruok"))
	e.start(2)
	leader := e.leader()
	require.Equal(t, 2, leader, "as with ZooKeeper the largest number leads at first")

	seen := make(chan client.Event, 1)
	watcher := dialServing(t, e.addr((leader+1)%3, 0), client.Session{}, func(ev client.Event) { seen <- ev })
	_, err := watcher.Call(proto.OpExists, &proto.ReadRequest{Path: "/a", Watch: true})
	require.Error(t, err)
	for i := range 3 {
		c := e.dial(i, client.Session{})
		_, err := c.Call(proto.OpCreate2, create("/"+string(rune('a'+i)), "x", 1))
		require.NoError(t, err)
		for j := range 3 {
			require.True(t, exists(t, e.dial(j, client.Session{}), "/"+string(rune('a'+i))))
		}
		if i == 0 {
			require.Equal(t, client.Event{Type: proto.NodeCreated, Path: "/a"}, <-seen)
			require.NoError(t, c.Close())
			require.False(t, exists(t, watcher, "/a"), "an ephemeral ends with its session")
		}
	}
	for i := range 3 {
		mode := "Mode: follower\nNode count: "
		if i == leader {
			mode = "Mode: leader\nNode count: "
		}
		require.Contains(t, word(e.addr(i, 0), "srvr"), mode)
		require.Contains(t, word(e.addr(i, 0), "conf"), fmt.Sprintf("serverId=%d\n", i+1))
		require.Equal(t, "rw", word(e.addr(i, 0), "isro"))
	}
	require.Eventually(t, func() bool { return strings.Contains(word(e.addr(leader, 0), "mntr"), "zk_synced_followers\t2\n") }, time.Minute, 20*time.Millisecond)
}

func TestAMinorityServesNobody(t *testing.T) {
	e := newServers(t, 3)
	e.start(0, 1, 2)
	leader := e.leader()
	c := e.dial(leader, client.Session{})
	e.stop((leader+1)%3, (leader+2)%3)
	<-c.Done()
	require.Eventually(t, func() bool {
		return word(e.addr(leader, 0), "stat") == "This ZooKeeper instance is not currently serving requests\n"
	}, time.Minute, 20*time.Millisecond)
	_, err := client.Dial(e.addr(leader, 0), time.Second, client.Session{}, nil)
	require.Error(t, err)
	e.start((leader + 1) % 3)
	c = e.dial(leader, c.Session())
	_, err = c.Call(proto.OpCreate2, create("/again", "", 0))
	require.NoError(t, err)
}

// Leaders come and go under load. Sessions and their ephemerals live on, no acknowledged node is lost, and no version of a node is given twice.
func TestNothingAcknowledgedIsLostWhenLeadersEnd(t *testing.T) {
	e := newServers(t, 3)
	e.start(0, 1, 2)
	keeper := e.dial(e.leader(), client.Session{})
	_, err := keeper.Call(proto.OpCreate2, create("/alive", "", 1))
	require.NoError(t, err)
	h := newHistory(t, e, []int{0, 1, 2})
	for range 4 {
		h.more(150)
		leader := e.leader()
		e.stop(leader)
		keeper.Drop()
		keeper = e.dial((leader+1)%3, keeper.Session())
		require.True(t, exists(t, keeper, "/alive"), "the session lived on")
		h.more(100)
		e.start(leader)
	}
	h.end()
	h.judge(e.dial(0, client.Session{}))
}

// What waits when a leader loses its majority is gone with it, and leaves no less room for requests when it leads again.
func TestADeposedLeaderForgetsWhatWaited(t *testing.T) {
	e := newServers(t, 3)
	e.start(0, 1, 2)
	leader := e.leader()
	c := e.dial(leader, client.Session{})
	_, err := c.Call(proto.OpCreate2, create("/large", "", 0))
	require.NoError(t, err)
	var running sync.WaitGroup
	defer running.Wait()
	first := make(chan struct{}, 1)
	for range 10 {
		c := e.dial(leader, client.Session{})
		for range 12 {
			running.Go(func() {
				for {
					if _, err := c.Call(proto.OpSetData, &proto.SetDataRequest{Path: "/large", Data: make([]byte, 1<<20-100), Version: -1}); err != nil {
						return
					}
					select {
					case first <- struct{}{}:
					default:
					}
				}
			})
		}
	}
	<-first
	e.stop((leader+1)%3, (leader+2)%3)
	running.Wait() // it has noticed
	e.start((leader+1)%3, (leader+2)%3)
	e.synced(2)
	e.leads(leader)
	c = e.dial(leader, client.Session{})
	require.True(t, exists(t, c, "/large"))
}

// A server whose disk was emptied is taken in anew, and then counts again; so does one that was away for longer than the log is kept.
func TestAnEmptiedServerComesBack(t *testing.T) {
	e := newServers(t, 3)
	e.start(0, 1, 2)
	leader := e.leader()
	lost, other := (leader+1)%3, (leader+2)%3
	c := e.dial(leader, client.Session{})
	_, err := c.Call(proto.OpCreate2, create("/kept", "", 0))
	require.NoError(t, err)
	e.stop(lost)
	e.synced(1)
	require.NoError(t, os.Remove(filepath.Join(e.cfg[lost].DataDir, "embedded-zookeeper.db")))
	_, err = c.Call(proto.OpCreate2, create("/meanwhile", "", 0))
	require.NoError(t, err)
	e.start(lost)
	e.synced(2)
	e.stop(other) // now it is needed for a majority
	c = e.dial(lost, client.Session{})
	require.True(t, exists(t, c, "/kept"))
	require.True(t, exists(t, c, "/meanwhile"))
	e.start(other)
	e.stop(leader)
	c = e.dial(lost, c.Session())
	require.True(t, exists(t, c, "/meanwhile"))
}

// Three become five: each gets the longer file and is started again, one after the other, and the new ones are started with it.
func TestAnEnsembleGrowsByItsFiles(t *testing.T) {
	e := newServers(t, 5)
	longer := make([]*embedded.Ensemble, 3)
	for i := range 3 {
		longer[i] = e.cfg[i].Ensemble
		servers := maps.Clone(longer[i].Servers)
		delete(servers, 4)
		delete(servers, 5)
		e.cfg[i].Ensemble = &embedded.Ensemble{ID: longer[i].ID, Servers: servers}
	}
	e.start(0, 1, 2)
	c := e.dial(0, client.Session{})
	_, err := c.Call(proto.OpCreate2, create("/before", "", 0))
	require.NoError(t, err)
	for i := range 3 {
		e.stop(i)
		e.cfg[i].Ensemble = longer[i]
		e.start(i)
		e.dial(i, client.Session{}).Drop()
	}
	e.start(3, 4)
	require.Eventually(t, func() bool { return strings.Contains(word(e.addr(e.leader(), 0), "mntr"), "zk_synced_followers\t4\n") }, time.Minute, 20*time.Millisecond)
	e.stop(0, 1) // of three they were the majority
	c = e.dial(4, c.Session())
	require.True(t, exists(t, c, "/before"))
	_, err = c.Call(proto.OpCreate2, create("/after", "", 0))
	require.NoError(t, err)
}

func TestATreeThatStoodAloneBecomesAnEnsembles(t *testing.T) {
	e := newServers(t, 3)
	alone := e.cfg[0]
	alone.Ensemble = nil
	srv, err := embedded.Start(alone)
	require.NoError(t, err)
	c := e.dial(0, client.Session{})
	_, err = c.Call(proto.OpCreate2, create("/before", "", 0))
	require.NoError(t, err)
	c.Drop()
	require.NoError(t, srv.Close())
	e.start(0, 1, 2)
	c = e.dial(1, c.Session())
	require.True(t, exists(t, c, "/before"), "the session, too, lives on")

	// It was the one that began the ensemble; without its disk it is one that joins.
	e.stop(0)
	e.synced(1)
	require.NoError(t, os.Remove(filepath.Join(e.cfg[0].DataDir, "embedded-zookeeper.db")))
	e.start(0)
	e.synced(2)
	e.leads(0)
	require.True(t, exists(t, e.dial(0, c.Session()), "/before"))

	two := newServers(t, 2)
	for i := range 2 {
		cfg := two.cfg[i]
		cfg.Ensemble = nil
		srv, err := embedded.Start(cfg)
		require.NoError(t, err)
		require.NoError(t, srv.Close())
	}
	two.start(0, 1)
	<-two.up[0].Done()
	require.ErrorContains(t, two.up[0].Err(), "trees of their own")
	<-two.up[1].Done()
}

// What is no member gets nothing from the ports for members, and does them no harm.
func TestThePortsForMembersBearStrangers(t *testing.T) {
	e := newServers(t, 3)
	e.start(0, 1, 2)
	c := e.dial(e.leader(), client.Session{})
	for _, hostile := range []string{
		"", "\x00", "GET / HTTP/1.1\r\n\r\n", "\xff\xff\xff\xff", "\x7f\xff\xff\xff" + strings.Repeat("x", 100), "\x00\x00\x00\x02{}",
		"\x00\x00\x00\x30" + `{"protocol":"barnabas-quorum-1","from":2,"to":1}  `, "\x00\x00\x00\x2f" + `{"protocol":"barnabas-relay-1","client":"nobody"}`,
		"\x00\x00\x00\x34" + `{"protocol":"barnabas-relay-1","client":"127.0.0.1:1"}` + "\xff\xff\xff\xff",
	} {
		for i := range 3 {
			for _, port := range []int{1, 2} {
				nc, err := net.Dial("tcp", e.addr(i, port))
				require.NoError(t, err)
				_, _ = io.WriteString(nc, hostile)
				_ = nc.(*net.TCPConn).CloseWrite()
				_ = nc.SetReadDeadline(time.Now().Add(time.Minute))
				_, _ = io.Copy(io.Discard, nc)
				_ = nc.Close()
			}
		}
	}
	require.False(t, exists(t, c, "/x"), "it goes on")
}
