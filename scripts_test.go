package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
)

// script runs one of the scripts with the binary under test.
func script(t *testing.T, env []string, name string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(filepath.Join("scripts", name), args...)
	cmd.Env = append(append(os.Environ(), "BARNABAS="+cluster.Binary(t)), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		var failed *exec.ExitError
		require.ErrorAs(t, err, &failed)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestServersStartAndStopByTheScriptsOfOld(t *testing.T) {
	dir := t.TempDir()
	zk, port := cluster.Port(t), cluster.Port(t)
	zookeeper := filepath.Join(dir, "zookeeper.properties")
	require.NoError(t, os.WriteFile(zookeeper, fmt.Appendf(nil, "dataDir=%s/zookeeper\nclientPort=%d\nclientPortAddress=127.0.0.1\n", dir, zk), 0o600))
	server := filepath.Join(dir, "server.properties")
	require.NoError(t, os.WriteFile(server, fmt.Appendf(nil, "broker.id=7\nlisteners=PLAINTEXT://127.0.0.1:%d\nlog.dirs=%s/logs\nzookeeper.connect=127.0.0.1:%d\n", port, dir, zk), 0o600))
	env := []string{"LOG_DIR=" + filepath.Join(dir, "out"), "KAFKA_HEAP_OPTS=-Xmx1G"}

	out, code := script(t, env, "zookeeper-server-start.sh", "-daemon", zookeeper)
	require.Zero(t, code, out)
	await(t, zk)
	out, code = script(t, env, "kafka-server-start.sh", "-daemon", server, "--override", "num.partitions=5")
	require.Zero(t, code, out)
	await(t, port)
	require.Eventually(t, func() bool { // its port is open before it has registered
		out, code = script(t, env, "kafka-topics.sh", "--bootstrap-server", loopback(port), "--create", "--if-not-exists", "--topic", "t")
		return code == 0
	}, time.Minute, 100*time.Millisecond, "a topic is created")
	out, _ = script(t, env, "kafka-topics.sh", "--bootstrap-server", loopback(port), "--describe", "--topic", "t")
	assert.Contains(t, out, "PartitionCount: 5", "--override comes last")
	out, code = script(t, env, "zookeeper-shell.sh", loopback(zk), "ls", "/brokers/ids")
	assert.Zero(t, code)
	assert.Contains(t, out, "[7]")

	out, code = script(t, env, "kafka-server-stop.sh")
	assert.Zero(t, code, out)
	awaitGone(t, port)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "logs", ".kafka_cleanshutdown"))
		return err == nil
	}, time.Minute, 50*time.Millisecond, "a stop by script is a clean one")
	log, err := os.ReadFile(filepath.Join(dir, "out", "kafkaServer.out"))
	require.NoError(t, err)
	assert.NotContains(t, string(log), "panic")
	assert.Contains(t, string(log), "reached at PLAINTEXT://"+loopback(port))
	assert.Contains(t, string(log), "stopping: terminated")
	out, code = script(t, env, "zookeeper-server-stop.sh")
	assert.Zero(t, code, out)
	awaitGone(t, zk)
}

func await(t *testing.T, port int) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", loopback(port))
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, time.Minute, 50*time.Millisecond)
}

func awaitGone(t *testing.T, port int) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", loopback(port))
		if err == nil {
			conn.Close()
		}
		return err != nil
	}, time.Minute, 50*time.Millisecond)
}

func TestAScriptMayBeCalledByALinkToIt(t *testing.T) {
	lane.Program(t, "readlink") // without it a script looks beside the link
	all, err := filepath.Glob("scripts/*.sh")
	require.NoError(t, err)
	for _, name := range all {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.NotContains(t, string(text), `dirname "$0"`, "%s looks for its neighbours beside the link", name)
	}
	here, err := filepath.Abs("scripts")
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), "topics here")
	require.NoError(t, os.Symlink(filepath.Join(here, "kafka-topics.sh"), link))
	cmd := exec.Command(link, "--version")
	cmd.Env = append(os.Environ(), "BARNABAS="+cluster.Binary(t))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// What ps shows is made up, so that no server of this machine is stopped.
func TestAStopLooksAtWhatRunsUnderAnIdThatWasLeftBehind(t *testing.T) {
	dir := t.TempDir()
	sleeper := func() *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return cmd
	}
	stranger, server, tool := sleeper(), sleeper(), sleeper()
	write := func(name, format string, args ...any) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, format, args...), 0o755))
	}
	env := []string{"LOG_DIR=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH")}
	write("ps", "#!/bin/sh\necho '%d sleep 1000'\necho '%d /opt/my kafka/barnabas broker list --watch'\n", stranger.Process.Pid, tool.Process.Pid)
	write("kafkaServer.pid", "%d\n%d\n", stranger.Process.Pid, tool.Process.Pid)
	out, code := script(t, env, "kafka-server-stop.sh")
	assert.Equal(t, 1, code)
	assert.Equal(t, "No kafka server to stop\n", out)

	write("ps", "#!/bin/sh\necho '%d sleep 1000'\necho '%d /opt/my kafka/other-name broker --config a b.properties'\n", stranger.Process.Pid, server.Process.Pid)
	write("kafkaServer.pid", "%d\n%d\n", stranger.Process.Pid, server.Process.Pid)
	out, code = script(t, env, "kafka-server-stop.sh")
	require.Zero(t, code, out)
	require.EqualError(t, server.Wait(), "signal: terminated")
	for _, alive := range []*exec.Cmd{stranger, tool} {
		assert.NoError(t, alive.Process.Signal(syscall.Signal(0)))
	}
}

func TestScriptsSayHowTheyAreCalled(t *testing.T) {
	for _, name := range []string{"kafka-server-start.sh", "zookeeper-server-start.sh"} {
		out, code := script(t, nil, name)
		assert.Equal(t, 1, code)
		assert.True(t, strings.HasPrefix(out, "USAGE: "), out)
	}
}

func TestEveryKafkaCommandHasItsScript(t *testing.T) {
	for _, c := range kafkaCommands() {
		text, err := os.ReadFile(filepath.Join("scripts", c.Name+".sh"))
		require.NoError(t, err)
		assert.Contains(t, string(text), " "+c.Name+" ")
	}
}
