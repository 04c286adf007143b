package embedded_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"barnabas/zkstate/embedded"
	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/proto"
)

// serveDirEnv makes the test binary a server over that directory, to be killed by its parent.
const serveDirEnv = "BARNABAS_TEST_SERVE_DIR"

func quietLog() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return logrus.NewEntry(log)
}

func serveForParent(dir string) {
	signal.Ignore(syscall.SIGXFSZ) // a file at its limit shall be an error of the write, as a full disk is
	srv, err := embedded.Start(embedded.Config{Addr: "127.0.0.1:0", DataDir: dir, Log: quietLog(), MaxSessionTimeout: time.Minute})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(srv.Addr())
	<-srv.Done()
}

// startChild starts a server process and tells its address. With a limit, no file of it may grow over so many half KiB.
func startChild(t *testing.T, dir string, limit ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	if len(limit) > 0 {
		cmd = exec.Command("sh", "-c", "ulimit -f "+limit[0]+` && exec "$0"`, os.Args[0])
	}
	cmd.Env = append(os.Environ(), serveDirEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	addr, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cmd, addr[:len(addr)-1]
}

var openACL = []proto.ACL{{Perms: proto.PermAll, Scheme: "world", ID: "anyone"}}

func create(path, data string, flags int32) *proto.CreateRequest {
	return &proto.CreateRequest{Op: proto.OpCreate2, Path: path, Data: []byte(data), ACL: openACL, Flags: flags, TTL: -1}
}

// Whatever was acknowledged before kill -9 is there afterwards, with the same stat, and the session can be taken up again.
func TestWhatWasAcknowledgedSurvivesKill9(t *testing.T) {
	dir := t.TempDir()
	type acked struct {
		path string
		stat proto.Stat
	}
	var all []acked
	var owner client.Session
	for round := range 3 {
		cmd, addr := startChild(t, dir)
		c, err := client.Dial(addr, 50*time.Second, owner, nil)
		require.NoError(t, err, "round %d: the session lives on", round)
		for _, a := range all {
			r, err := c.Call(proto.OpExists, &proto.ReadRequest{Path: a.path})
			require.NoError(t, err, "%s was acknowledged", a.path)
			require.Equal(t, a.stat, r.Stat())
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					path := fmt.Sprintf("/r%d-w%d-%d", round, w, i)
					r, err := c.Call(proto.OpCreate2, create(path, path, int32(i%2)))
					if err != nil {
						return
					}
					_, stat := r.String(), r.Stat()
					mu.Lock()
					all = append(all, acked{path, stat})
					enough := len(all) >= (round+1)*300
					mu.Unlock()
					if enough {
						_ = cmd.Process.Kill()
						return
					}
				}
			})
		}
		wg.Wait()
		_ = cmd.Wait()
		c.Drop()
		owner = c.Session()
	}
	require.GreaterOrEqual(t, len(all), 900)
}

// A full disk ends the server. Exactly what was acknowledged is there when it starts again with room.
func TestAFullDiskLosesNothingThatWasAcknowledged(t *testing.T) {
	dir := t.TempDir()
	cmd, addr := startChild(t, dir, "600")
	c, err := client.Dial(addr, 50*time.Second, client.Session{}, nil)
	require.NoError(t, err)
	acked := 0
	for ; acked < 1000; acked++ {
		if _, err := c.Call(proto.OpCreate2, create(fmt.Sprintf("/n%d", acked), strings.Repeat("x", 20_000), 0)); err != nil {
			require.ErrorIs(t, err, client.ErrClosed)
			break
		}
	}
	require.Less(t, acked, 1000, "the limit was reached")
	require.Greater(t, acked, 3)
	_ = cmd.Wait() // it ends by itself
	c.Drop()

	srv, err := embedded.Start(embedded.Config{Addr: "127.0.0.1:0", DataDir: dir, Log: quietLog()})
	require.NoError(t, err)
	defer srv.Close()
	c, err = client.Dial(srv.Addr(), 50*time.Second, c.Session(), nil)
	require.NoError(t, err)
	defer c.Close()
	r, err := c.Call(proto.OpGetAllChildrenNum, &proto.PathRequest{Path: "/"})
	require.NoError(t, err)
	require.EqualValues(t, acked+3, r.Int32())
}

func TestASecondServerOnTheSameDirectoryIsRefused(t *testing.T) {
	cfg := embedded.Config{Addr: "127.0.0.1:0", DataDir: t.TempDir(), Log: quietLog()}
	srv, err := embedded.Start(cfg)
	require.NoError(t, err)
	defer srv.Close()
	_, err = embedded.Start(cfg)
	require.ErrorContains(t, err, "timeout")
}

func TestADirectoryOfApacheZooKeeperIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(dir+"/version-2", 0o755))
	require.NoError(t, os.WriteFile(dir+"/version-2/log.1", []byte("x"), 0o644))
	_, err := embedded.Start(embedded.Config{Addr: "127.0.0.1:0", DataDir: dir, Log: quietLog()})
	require.ErrorContains(t, err, "Apache ZooKeeper")
}
