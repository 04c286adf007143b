// Package zktest gives tests a ZooKeeper: the embedded server, Apache's, or the same test on both, one after the other. What passes
// on one and not on the other is a fault of the embedded server or a wrong belief of the test.
package zktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/integration/lane"
	"barnabas/zkstate/embedded"
	"barnabas/zkstate/embedded/client"
)

// jarsOf is the Kafka release whose jars hold the ZooKeeper to compare with: 3.8.4.
const jarsOf = "3.9.1"

const (
	startWait = 2 * time.Minute
	pollEvery = 20 * time.Millisecond
)

// Server is one ZooKeeper of one process. What goes wrong in its methods fails the test.
type Server interface {
	// Addr is host:port for clients; it stays the same over restarts.
	Addr() string
	// Stop ends the server; sessions and data stay on disk. The process of a real one is killed, without a chance to tidy up.
	Stop()
	// Start begins again after Stop.
	Start()
	// Restart is Stop and Start.
	Restart()
	// ExpireSession ends a session as its timeout would: its ephemerals go and its client finds it expired.
	ExpireSession(id int64, password []byte)
}

// Each runs a test as subtests "embedded" and "real", each with a fresh server. lines are added to zoo.cfg. The real one is left out
// where Java or the jars are missing.
func Each(t *testing.T, test func(t *testing.T, srv Server), lines ...string) {
	t.Run("embedded", func(t *testing.T) { test(t, Embedded(t, lines...)) })
	t.Run("real", func(t *testing.T) { test(t, Real(t, lines...)) })
}

// Embedded starts an embedded server, which ends with the test.
func Embedded(t testing.TB, lines ...string) Server {
	dir := t.TempDir()
	s := &embeddedServer{base: base{t: t, addr: port(t)}, dir: dir}
	s.cfg = s.writeConfig(dir, lines)
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Real starts Apache ZooKeeper, or skips the test where it cannot.
func Real(t testing.TB, lines ...string) Server {
	java, jars := lane.Java(t), lane.KafkaJars(t, jarsOf)
	dir := t.TempDir()
	s := &realServer{base: base{t: t, addr: port(t)}, java: java, jars: jars}
	s.cfg = s.writeConfig(dir, lines)
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// port is an address that stays the server's while it is stopped: one that the system gives to outgoing connections could be had by any of them, and a client that looks for its server could even
// find itself.
func port(t testing.TB) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(lane.Port(t))) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// base is what both kinds of server share.
type base struct {
	t    testing.TB
	addr string
	cfg  string
}

func (b *base) Addr() string { return b.addr }

// writeConfig makes a zoo.cfg with short ticks, so that sessions may be short too.
func (b *base) writeConfig(dir string, lines []string) string {
	host, port, err := net.SplitHostPort(b.addr)
	must(b.t, err)
	text := fmt.Sprintf("tickTime=100\nmaxSessionTimeout=60000\ndataDir=%s\nclientPortAddress=%s\nclientPort=%s\nmaxClientCnxns=0\nadmin.enableServer=false\n"+
		"4lw.commands.whitelist=*\n%s\n", filepath.Join(dir, "data"), host, port, strings.Join(lines, "\n"))
	file := filepath.Join(dir, "zoo.cfg")
	must(b.t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func (b *base) ExpireSession(id int64, password []byte) {
	b.t.Helper()
	c, err := client.Dial(b.addr, time.Minute, client.Session{ID: id, Password: password}, nil)
	must(b.t, err)
	if err := c.Close(); err != nil && !errors.Is(err, client.ErrClosed) {
		b.t.Fatal(err)
	}
}

type embeddedServer struct {
	base
	dir string
	srv *embedded.Server
}

func (s *embeddedServer) Start() {
	s.t.Helper()
	cfg, err := embedded.ParseConfig(s.cfg)
	must(s.t, err)
	log := logrus.New()
	log.SetOutput(io.Discard)
	cfg.Log = logrus.NewEntry(log)
	cfg.Addr = s.addr
	s.srv, err = embedded.Start(cfg)
	must(s.t, err)
	s.addr = s.srv.Addr()
}

func (s *embeddedServer) Stop() {
	if s.srv == nil {
		return
	}
	must(s.t, s.srv.Close())
	s.srv = nil
}

func (s *embeddedServer) Restart() {
	s.Stop()
	s.Start()
}

type realServer struct {
	base
	java, jars string
	process    *exec.Cmd
}

func (s *realServer) Start() {
	s.t.Helper()
	s.process = exec.Command(s.java, "-Xmx128M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dzookeeper.extendedTypesEnabled="+s.flag("extendedTypesEnabled"),
		"-cp", filepath.Join(s.jars, "*"), "org.apache.zookeeper.server.quorum.QuorumPeerMain", s.cfg)
	lane.Bind(s.process)
	must(s.t, s.process.Start())
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !serving(s.addr) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Fatalf("ZooKeeper does not serve %s after %v", s.addr, startWait)
		}
	}
}

// flag reads a boolean from zoo.cfg that the real server wants as a system property before it reads the file.
func (s *realServer) flag(name string) string {
	text, err := os.ReadFile(s.cfg)
	must(s.t, err)
	return fmt.Sprint(strings.Contains(string(text), name+"=true"))
}

// serving asks the server whether it is past its start.
func serving(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return false
	}
	answer, _ := io.ReadAll(conn)
	return strings.Contains(string(answer), "Mode: standalone")
}

func (s *realServer) Stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	s.process = nil
}

func (s *realServer) Restart() {
	s.Stop()
	s.Start()
}
