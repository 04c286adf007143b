package embedded_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
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

// history is what clients of all servers were told: of nodes that they made, and of a node whose version each success has for itself.
type history struct {
	t     *testing.T
	stop  chan struct{}
	wg    sync.WaitGroup
	count atomic.Int64

	mu       sync.Mutex
	made     []string
	versions map[int32]int
	unknown  int
}

func newHistory(t *testing.T, e *servers, at []int) *history {
	h := &history{t: t, stop: make(chan struct{}), versions: map[int32]int{}}
	c := e.dial(at[0], client.Session{})
	_, err := c.Call(proto.OpCreate2, create("/counter", "", 0))
	require.NoError(t, err)
	for w := range 2 * len(at) {
		h.wg.Go(func() { h.work(w, e.addr(at[w%len(at)], 0)) })
	}
	return h
}

// work makes nodes and raises the counter, over as many connections as it takes.
func (h *history) work(w int, addr string) {
	for n := 0; ; {
		select {
		case <-h.stop:
			return
		default:
		}
		c, err := client.Dial(addr, 20*time.Second, client.Session{}, nil)
		if err != nil {
			time.Sleep(10 * time.Millisecond) // the pace of a client that looks for a server
			continue
		}
		for err == nil {
			select {
			case <-h.stop:
				c.Drop()
				return
			default:
			}
			n++
			err = h.once(c, fmt.Sprintf("/w%d-%d", w, n))
		}
		c.Drop()
	}
}

func (h *history) once(c *client.Conn, path string) error {
	if _, err := c.Call(proto.OpCreate2, create(path, path, 0)); err != nil {
		return err
	}
	h.mu.Lock()
	h.made = append(h.made, path)
	h.mu.Unlock()
	r, err := c.Call(proto.OpExists, &proto.ReadRequest{Path: "/counter"})
	if err != nil {
		return err
	}
	from := r.Stat().Version
	_, err = c.Call(proto.OpSetData, &proto.SetDataRequest{Path: "/counter", Data: []byte(path), Version: from})
	var code *client.Error
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		h.versions[from+1]++
	case errors.As(err, &code) && code.Code == proto.BadVersion:
		err = nil
	default:
		h.unknown++
	}
	h.count.Add(1)
	return err
}

// more returns when so many rounds more were answered.
func (h *history) more(n int64) {
	h.t.Helper()
	until := h.count.Load() + n
	require.Eventually(h.t, func() bool { return h.count.Load() >= until }, 2*time.Minute, 10*time.Millisecond)
}

func (h *history) end() {
	close(h.stop)
	h.wg.Wait()
}

// judge asks for what was acknowledged.
func (h *history) judge(c *client.Conn) {
	h.t.Helper()
	for _, path := range h.made {
		require.True(h.t, exists(h.t, c, path), "%s was acknowledged", path)
	}
	r, err := c.Call(proto.OpExists, &proto.ReadRequest{Path: "/counter"})
	require.NoError(h.t, err)
	last := int(r.Stat().Version)
	for v, times := range h.versions {
		require.Equal(h.t, 1, times, "version %d was given twice", v)
		require.LessOrEqual(h.t, int(v), last)
	}
	require.LessOrEqual(h.t, last-len(h.versions), h.unknown, "versions that nobody was given")
	require.NotEmpty(h.t, h.made)
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
	synced := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			return strings.Contains(word(e.addr(leader, 0), "mntr"), fmt.Sprintf("zk_synced_followers\t%d\n", n))
		}, time.Minute, 20*time.Millisecond)
	}
	e.stop(lost)
	synced(1)
	require.NoError(t, os.Remove(filepath.Join(e.cfg[lost].DataDir, "embedded-zookeeper.db")))
	_, err = c.Call(proto.OpCreate2, create("/meanwhile", "", 0))
	require.NoError(t, err)
	e.start(lost)
	synced(2)
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

// link passes connections on until it is cut; then it holds them, as a network does that loses everything.
type link struct {
	l     net.Listener
	to    string
	cut   atomic.Bool
	mu    sync.Mutex
	conns []net.Conn
}

func newLink(t *testing.T, to string) *link {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	k := &link{l: l, to: to}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", to)
			if err != nil {
				_ = nc.Close()
				continue
			}
			k.mu.Lock()
			k.conns = append(k.conns, nc, up)
			k.mu.Unlock()
			wg.Go(func() { k.pass(up, nc) })
			wg.Go(func() { k.pass(nc, up) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		k.drop()
		wg.Wait()
	})
	return k
}

func (k *link) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.conns {
		_ = c.Close()
	}
	k.conns = nil
}

func (k *link) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if k.cut.Load() {
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// A leader that is cut off from the others, and still has clients, can make nothing happen; what the others acknowledge meanwhile is there when it is back.
func TestALeaderThatIsCutOffDecidesNothing(t *testing.T) {
	e := newServers(t, 3)
	var links [3][3]*link
	for i := range 3 {
		for j := range 3 {
			if i != j {
				links[i][j] = newLink(t, e.addr(j, 1))
				a := e.cfg[i].Ensemble.Servers[uint64(j+1)]
				a.Quorum = links[i][j].l.Addr().String()
				e.cfg[i].Ensemble.Servers[uint64(j+1)] = a
			}
		}
	}
	e.start(0, 1, 2)
	h := newHistory(t, e, []int{0, 1, 2})
	for range 3 {
		h.more(100)
		leader := e.leader()
		c := e.dial(leader, client.Session{})
		cut := func(on bool) {
			for j := range 3 {
				if j != leader {
					for _, k := range []*link{links[leader][j], links[j][leader]} {
						k.cut.Store(on)
						if !on {
							k.drop()
						}
					}
				}
			}
		}
		cut(true)
		_, err := c.Call(proto.OpCreate2, create("/never", "", 0))
		require.ErrorIs(t, err, client.ErrClosed)
		h.more(50) // the others go on
		cut(false)
		require.Eventually(t, func() bool { return strings.Contains(word(e.addr(leader, 0), "srvr"), "Mode: follower") }, time.Minute, 20*time.Millisecond)
	}
	h.end()
	c := e.dial(0, client.Session{})
	h.judge(c)
	require.False(t, exists(t, c, "/never"))
}

// serveConfigEnv makes the test binary a server of that zoo.cfg, to be killed by its parent.
const serveConfigEnv = "BARNABAS_TEST_SERVE_CONFIG"

func serveConfigForParent(file string) {
	cfg, err := embedded.ParseConfig(file)
	if err == nil {
		cfg.Log = logrus.NewEntry(logrus.New())
		cfg.Log.Logger.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: time.StampMilli})
		cfg.Log.Logger.SetLevel(logrus.DebugLevel)
		var srv *embedded.Server
		if srv, err = embedded.Start(cfg); err == nil {
			<-srv.Done()
			err = srv.Err()
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// processes is an ensemble whose servers are processes.
type processes struct {
	*servers
	files    []string
	children []*exec.Cmd
}

func newProcesses(t *testing.T) *processes {
	e := &processes{servers: newServers(t, 3), files: make([]string, 3), children: make([]*exec.Cmd, 3)}
	for i, cfg := range e.cfg {
		var text strings.Builder
		_, port, _ := net.SplitHostPort(cfg.Addr)
		fmt.Fprintf(&text, "dataDir=%s\nclientPortAddress=127.0.0.1\nclientPort=%s\nminSessionTimeout=1000\n4lw.commands.whitelist=*\n", cfg.DataDir, port)
		for id, a := range cfg.Ensemble.Servers {
			_, relay, _ := net.SplitHostPort(a.Relay)
			fmt.Fprintf(&text, "server.%d=%s:%s\n", id, a.Quorum, relay)
		}
		e.files[i] = filepath.Join(cfg.DataDir, "zoo.cfg")
		require.NoError(t, os.WriteFile(e.files[i], []byte(text.String()), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(cfg.DataDir, "myid"), fmt.Appendf(nil, "%d\n", i+1), 0o600))
	}
	t.Cleanup(func() {
		e.kill(0, 1, 2)
		e.tellLogs()
	})
	return e
}

func (e *processes) start(who ...int) {
	for _, i := range who {
		e.children[i] = exec.Command(os.Args[0])
		e.children[i].Env = append(os.Environ(), serveConfigEnv+"="+e.files[i])
		log, err := os.OpenFile(e.files[i]+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(e.t, err)
		e.children[i].Stderr = log
		lane.Bind(e.children[i])
		require.NoError(e.t, e.children[i].Start())
		require.NoError(e.t, log.Close())
	}
}

// tellLogs shows what the servers said last, of a test that failed.
func (e *processes) tellLogs() {
	if !e.t.Failed() {
		return
	}
	for _, file := range e.files {
		text, _ := os.ReadFile(file + ".log")
		e.t.Logf("%s:\n%s", file, text[max(0, len(text)-6000):])
	}
}

// kill ends processes at once, all of them before it waits for any.
func (e *processes) kill(who ...int) {
	for _, i := range who {
		if e.children[i] != nil {
			_ = e.children[i].Process.Kill()
		}
	}
	for _, i := range who {
		if e.children[i] != nil {
			_ = e.children[i].Wait()
		}
	}
}

// whole waits until all three say that they are of the ensemble, and then until the leader says that they have everything: of a server that has just ended it
// may not know yet.
func (e *processes) whole() {
	e.t.Helper()
	everywhere := func(what, want string) (n int) {
		for i := range e.cfg {
			if strings.Contains(word(e.addr(i, 0), what), want) {
				n++
			}
		}
		return n
	}
	require.Eventually(e.t, func() bool {
		return everywhere("srvr", "Mode: ") == 3 && everywhere("mntr", "zk_synced_followers\t2\n") == 1
	}, 2*time.Minute, 20*time.Millisecond)
}

// Processes of an ensemble are killed, one or all at once, stopped in their tracks, and lose their disks, while clients write. $BARNABAS_ENSEMBLE_FAULTS is how often.
func TestWhatAnEnsembleAcknowledgedSurvivesFaults(t *testing.T) {
	faults, seed := 8, uint64(time.Now().UnixNano())
	if n, err := strconv.Atoi(os.Getenv("BARNABAS_ENSEMBLE_FAULTS")); err == nil {
		faults = n
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	e := newProcesses(t)
	e.start(0, 1, 2)
	h := newHistory(t, e.servers, []int{0, 1, 2})
	counts := map[string]int{}
	for range faults {
		h.more(100)
		i := rng.IntN(3)
		what := []string{"kill -9 of one", "kill -9 of all", "stopped in its tracks", "its disk is lost"}[rng.IntN(4)]
		counts[what]++
		switch what {
		case "kill -9 of one":
			e.kill(i)
			h.more(20)
			e.start(i)
		case "kill -9 of all":
			e.kill(0, 1, 2)
			e.start(0, 1, 2)
		case "stopped in its tracks":
			require.NoError(t, e.children[i].Process.Signal(syscall.SIGSTOP))
			h.more(20)
			require.NoError(t, e.children[i].Process.Signal(syscall.SIGCONT))
		case "its disk is lost": // of one, while the others have everything
			e.whole()
			e.kill(i)
			require.NoError(t, os.Remove(filepath.Join(e.cfg[i].DataDir, "embedded-zookeeper.db")))
			h.more(20)
			e.start(i)
			e.whole()
		}
	}
	h.more(50)
	h.end()
	for i := range 3 {
		h.judge(e.dial(i, client.Session{}))
	}
	t.Logf("%v, %d nodes made, %d versions given", counts, len(h.made), len(h.versions))
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
