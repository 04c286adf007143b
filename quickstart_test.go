package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
)

// started is a running quickstart.
type started struct {
	cmd   *exec.Cmd
	lines chan string
	said  strings.Builder
}

func startQuickstart(t *testing.T, args ...string) *started {
	t.Helper()
	s := &started{cmd: exec.Command(cluster.Binary(t), append([]string{"quickstart", "--console-port", "0"}, args...)...), lines: make(chan string, 1000)}
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	s.cmd.Stderr = s.cmd.Stdout
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // under nohup the program would be as deaf to it as this test
	require.NoError(t, s.cmd.Start())
	go func() {
		defer close(s.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			s.lines <- scan.Text()
		}
	}()
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	return s
}

func (s *started) until(t *testing.T, text string) {
	t.Helper()
	limit := time.After(3 * time.Minute)
	for {
		select {
		case line, open := <-s.lines:
			fmt.Fprintln(&s.said, line)
			if strings.Contains(line, text) {
				return
			}
			require.True(t, open, "ended without saying %q:\n%s", text, s.said.String())
		case <-limit:
			t.Fatalf("did not say %q:\n%s", text, s.said.String())
		}
	}
}

func (s *started) interrupt(t *testing.T) {
	t.Helper()
	s.stop(t, os.Interrupt)
}

func (s *started) stop(t *testing.T, by os.Signal) {
	t.Helper()
	require.NoError(t, s.cmd.Process.Signal(by))
	s.until(t, "everything is kept")
	require.NoError(t, s.cmd.Wait())
}

func tool(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(cluster.Binary(t), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	require.NoError(t, err, "%v: %s", args, out)
	return string(out)
}

// free returns the first of n ports in a row that are free now, and one more for ZooKeeper.
func free(t *testing.T, n int) (first, zookeeper int) {
	t.Helper()
	return lane.Ports(t, n), lane.Port(t)
}

func TestQuickstartKeepsEverythingBetweenRuns(t *testing.T) {
	port, zk := free(t, 1)
	args := []string{"--data", filepath.Join(t.TempDir(), "data"), "--port", strconv.Itoa(port), "--zookeeper-port", strconv.Itoa(zk)}
	s := startQuickstart(t, args...)
	s.until(t, "Ctrl-C")
	for _, command := range []string{"kafka-topics.sh", "kafka-console-producer.sh", "kafka-console-consumer.sh"} {
		assert.Contains(t, s.said.String(), command)
	}
	server := loopback(port)
	assert.Equal(t, "Created topic hello.\n", tool(t, "", "kafka-topics", "--bootstrap-server", server, "--create", "--topic", "hello"))
	tool(t, "one\ntwo\n", "kafka-console-producer", "--bootstrap-server", server, "--topic", "hello")
	s.interrupt(t)

	s = startQuickstart(t, args...)
	s.until(t, "Ctrl-C")
	assert.Equal(t, "one\ntwo\n", tool(t, "", "kafka-console-consumer", "--bootstrap-server", server, "--topic", "hello", "--partition", "0", "--offset", "earliest", "--max-messages", "2"))
	s.stop(t, syscall.SIGHUP) // as when the terminal is closed
	assert.FileExists(t, filepath.Join(args[1], "broker-1", ".kafka_cleanshutdown"))
}

func TestQuickstartWithSeveralBrokersRunsAProcessForEach(t *testing.T) {
	port, zk := free(t, 3)
	s := startQuickstart(t, "--data", filepath.Join(t.TempDir(), "data"), "--port", strconv.Itoa(port), "--zookeeper-port", strconv.Itoa(zk), "--brokers", "3")
	s.until(t, "broker 3 is process")
	described := func(as func(said string) bool) func() bool { // any of the brokers is asked, who may not have heard yet of a topic or a death
		return func() bool {
			out, err := exec.Command(cluster.Binary(t), "kafka-topics", "--bootstrap-server", loopback(port)+","+loopback(port+1), "--describe", "--topic", "hello").Output()
			return err == nil && as(string(out))
		}
	}
	require.Eventually(t, func() bool {
		out, err := exec.Command(cluster.Binary(t), "kafka-topics", "--bootstrap-server", loopback(port), "--create", "--if-not-exists", "--topic", "hello", "--partitions", "3", "--replication-factor", "3").CombinedOutput()
		return err == nil || strings.Contains(string(out), "exists")
	}, time.Minute, 100*time.Millisecond)
	require.Eventually(t, described(func(said string) bool { return strings.Contains(said, "ReplicationFactor: 3") }), time.Minute, 100*time.Millisecond)

	line := s.said.String()[strings.Index(s.said.String(), "broker 3 is process")+len("broker 3 is process "):]
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	s.until(t, "broker 3 has ended (signal: killed)")
	require.Eventually(t, described(func(said string) bool { return !strings.Contains(said, "Leader: 3") }), time.Minute, 200*time.Millisecond, "the leaderships of a killed broker go to others")
	s.interrupt(t)
}

func TestQuickstartThatIsStoppedWhileItStartsLeavesNoBroker(t *testing.T) {
	port, zk := free(t, 3)
	data := filepath.Join(t.TempDir(), "data")
	s := startQuickstart(t, "--data", data, "--port", strconv.Itoa(port), "--zookeeper-port", strconv.Itoa(zk), "--brokers", "3")
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(data, "broker-1.log"))
		return err == nil
	}, time.Minute, time.Millisecond)
	s.stop(t, syscall.SIGTERM)
	running, err := exec.Command("ps", "-A", "-o", "args=").Output()
	require.NoError(t, err)
	assert.NotContains(t, string(running), data)
}

func TestQuickstartRefusesInOneSentenceAndTouchesNothing(t *testing.T) {
	refused := func(t *testing.T, args ...string) string {
		t.Helper()
		out, err := exec.Command(cluster.Binary(t), append([]string{"quickstart", "--console-port", "0"}, args...)...).CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "%s", out)
		assert.NotZero(t, exit.ExitCode())
		assert.Equal(t, 1, strings.Count(string(out), "\n"), "one sentence: %s", out)
		return string(out)
	}
	port, zk := free(t, 1)
	ports := []string{"--port", strconv.Itoa(port), "--zookeeper-port", strconv.Itoa(zk)}

	t.Run("a busy port", func(t *testing.T) {
		data := filepath.Join(t.TempDir(), "data")
		l, err := net.Listen("tcp", loopback(port))
		require.NoError(t, err)
		defer l.Close()
		said := refused(t, append(ports, "--data", data)...)
		assert.Contains(t, said, fmt.Sprintf("port %d", port))
		assert.Contains(t, said, "--port")
		assert.NoDirExists(t, data)
	})
	t.Run("a busy ZooKeeper port", func(t *testing.T) {
		l, err := net.Listen("tcp", loopback(zk))
		require.NoError(t, err)
		defer l.Close()
		assert.Contains(t, refused(t, append(ports, "--data", filepath.Join(t.TempDir(), "data"))...), "--zookeeper-port")
	})
	t.Run("one port for two", func(t *testing.T) {
		data := filepath.Join(t.TempDir(), "data")
		said := refused(t, "--data", data, "--port", strconv.Itoa(port), "--zookeeper-port", strconv.Itoa(port+1), "--brokers", "2")
		assert.Contains(t, said, fmt.Sprintf("port %d is meant for ZooKeeper and for broker 2", port+1))
		assert.NoDirExists(t, data)
	})
	t.Run("a folder that log.dirs takes for two", func(t *testing.T) {
		dir := t.TempDir()
		assert.Contains(t, refused(t, append(ports, "--data", filepath.Join(dir, "a,b"))...), "comma")
		entries, _ := os.ReadDir(dir)
		assert.Empty(t, entries)
	})
	t.Run("no folder, and words too many", func(t *testing.T) {
		assert.Contains(t, refused(t, append(ports, "--data", "")...), "--data")
		assert.Contains(t, refused(t, append(ports, "there")...), "there")
	})
	t.Run("a file in place of the folder", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
		assert.Contains(t, refused(t, append(ports, "--data", file)...), "is a file")
	})
	t.Run("a folder of something else", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("x"), 0o600))
		assert.Contains(t, refused(t, append(ports, "--data", dir)...), "neither empty nor")
		entries, _ := os.ReadDir(dir)
		assert.Len(t, entries, 1)
	})
	t.Run("logs whose ZooKeeper is missing", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "broker-1"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "broker-1", "meta.properties"), []byte("version=0\nbroker.id=1\ncluster.id=abcdefghijklmnopqrstuv\n"), 0o600))
		assert.Contains(t, refused(t, append(ports, "--data", dir)...), "abcdefghijklmnopqrstuv")
		assert.NoDirExists(t, filepath.Join(dir, "zookeeper"))
	})
	t.Run("logs of another cluster", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		port, zk := free(t, 1) // those of before may have been taken by a connection since
		ports := []string{"--port", strconv.Itoa(port), "--zookeeper-port", strconv.Itoa(zk)}
		s := startQuickstart(t, append(ports, "--data", dir)...)
		s.until(t, "Ctrl-C")
		s.interrupt(t)
		meta := filepath.Join(dir, "broker-1", "meta.properties")
		text, err := os.ReadFile(meta)
		require.NoError(t, err)
		foreign := strings.Replace(string(text), "cluster.id=", "cluster.id=Z", 1)
		require.NoError(t, os.WriteFile(meta, []byte(foreign), 0o600))
		said := refused(t, append(ports, "--data", dir)...)
		assert.Contains(t, said, "belongs to cluster Z")
		after, err := os.ReadFile(meta)
		require.NoError(t, err)
		assert.Equal(t, foreign, string(after))
	})
	t.Run("the logs of one of several brokers of another cluster", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		port, zk := free(t, 2)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "zookeeper"), 0o755))
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "broker-2"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "broker-2", "meta.properties"), []byte("version=0\nbroker.id=9\n"), 0o600))
		said := refused(t, "--data", dir, "--port", strconv.Itoa(port), "--zookeeper-port", strconv.Itoa(zk), "--brokers", "2")
		assert.Contains(t, said, "broker 2 did not start (exit status 1)")
	})
	t.Run("a folder that may not be written", func(t *testing.T) {
		dir, err := os.MkdirTemp("", "barnabas-read-only-") // t.TempDir lies below a folder that only this user may enter
		require.NoError(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		require.NoError(t, os.Chmod(dir, 0o555))
		cmd := exec.Command(cluster.Binary(t), append([]string{"quickstart", "--console-port", "0", "--data", dir}, ports...)...)
		if os.Getuid() == 0 { // root may write everywhere
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		require.Error(t, err)
		lane.Need(t, errors.As(err, &exit), "a folder for temporary files that other users may enter")
		assert.Contains(t, string(out), "cannot be written")
	})
}

func TestQuickstartServesTheConsole(t *testing.T) {
	port, zk := free(t, 1)
	console := cluster.Port(t)
	s := startQuickstart(t, "--data", filepath.Join(t.TempDir(), "data"), "--port", strconv.Itoa(port), "--zookeeper-port", strconv.Itoa(zk), "--console-port", strconv.Itoa(console))
	s.until(t, "Ctrl-C stops it")
	assert.Contains(t, s.said.String(), "web console           http://"+loopback(console)+"/")
	tool(t, "", "topic", "create", "orders", "--partitions", "2", "--bootstrap-server", loopback(port))
	tool(t, "<script>alert(1)</script>\n", "kafka-console-producer", "--topic", "orders", "--bootstrap-server", loopback(port))

	client := &http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	get := func(path string) (int, string) {
		resp, err := client.Get("http://" + loopback(console) + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	for path, want := range map[string]string{
		"/": "Healthy: 1 broker answering", "/brokers": "127.0.0.1:" + strconv.Itoa(port), "/topics": `id="topic-orders"`, "/topic?name=orders": "Every replica is in sync.",
		"/topic/config?name=orders": "retention.ms", "/topic/messages?name=orders": "&lt;script&gt;alert(1)&lt;/script&gt;", "/groups": "There are no groups.", "/moves": "Nothing moves.", "/doctor": "Nothing is wrong",
		"/readyz": "ready", "/api/v1/health": `"healthy": true`,
	} {
		code, body := get(path)
		assert.Equal(t, http.StatusOK, code, path)
		assert.Contains(t, body, want, path)
	}
	s.interrupt(t)
}

func TestWaitingEndsWithWhateverGoesFirst(t *testing.T) {
	for at := range 2 {
		gone := []chan struct{}{make(chan struct{}), make(chan struct{})}
		over, restore := untilStopped(gone[0], gone[1])
		require.NoError(t, over.Err())
		close(gone[at])
		select {
		case <-over.Done():
		case <-time.After(time.Minute):
			t.Fatalf("the loss of number %d is not noticed", at)
		}
		restore()
	}
}
