package embedded_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
	"barnabas/zkstate/embedded"
	"barnabas/zkstate/embedded/client"
)

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
