package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
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
	out, code = script(t, env, "kafka-topics.sh", "--bootstrap-server", loopback(port), "--create", "--topic", "t")
	require.Zero(t, code, out)
	out, _ = script(t, env, "kafka-topics.sh", "--bootstrap-server", loopback(port), "--describe", "--topic", "t")
	assert.Contains(t, out, "PartitionCount: 5", "--override comes last")
	out, code = script(t, env, "zookeeper-shell.sh", loopback(zk), "ls", "/brokers/ids")
	assert.Zero(t, code)
	assert.Contains(t, out, "[7]")

	out, code = script(t, env, "kafka-server-stop.sh")
	assert.Zero(t, code, out)
	awaitGone(t, port)
	log, err := os.ReadFile(filepath.Join(dir, "out", "kafkaServer.out"))
	require.NoError(t, err)
	assert.NotContains(t, string(log), "panic")
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "logs", ".kafka_cleanshutdown"))
		return err == nil
	}, 20*time.Second, 50*time.Millisecond, "a stop by script is a clean one")
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
	}, 20*time.Second, 50*time.Millisecond)
}

func awaitGone(t *testing.T, port int) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", loopback(port))
		if err == nil {
			conn.Close()
		}
		return err != nil
	}, 20*time.Second, 50*time.Millisecond)
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
