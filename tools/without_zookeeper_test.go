package tools

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tools whose originals are of use only, or mostly, in clusters without ZooKeeper.

func run(tool func([]string, *bytes.Buffer, *bytes.Buffer) int, args string) ran {
	return runCommand(tool, strings.Fields(args)...)
}

func clientMetricsTool(args []string, out, errs *bytes.Buffer) int {
	return ClientMetrics(args, nil, out, errs)
}
func metadataQuorumTool(args []string, out, errs *bytes.Buffer) int {
	return MetadataQuorum(args, nil, out, errs)
}
func storageTool(args []string, out, errs *bytes.Buffer) int { return Storage(args, nil, out, errs) }
func jmxTool(args []string, out, errs *bytes.Buffer) int     { return JMX(args, nil, out, errs) }

func TestClientMetricsCallsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--bootstrap-server b", "Command must include exactly one action: --alter, --delete, --describe or --list."},
		{"--list", "--bootstrap-server must be specified."},
		{"--bootstrap-server b --list --name n", `Option "[list]" can't be used with option "[name]"`},
		{"--bootstrap-server b --describe --interval 1", `Option "[describe]" can't be used with option "[interval]"`},
		{"--bootstrap-server b --alter", "One of --name or --generate-name must be specified with --alter."},
		{"--bootstrap-server b --alter --name n --generate-name", "One of --name or --generate-name must be specified with --alter."},
		{"--bootstrap-server b --delete", "A client metrics resource name must be specified with --delete."},
		{"--bogus", "bogus is not a recognized option"},
	} {
		got := run(clientMetricsTool, c.args)
		assert.Equal(t, 1, got.code, c.args)
		assert.Equal(t, c.want, firstLine(got.stderr), c.args)
		assert.Empty(t, got.stdout, c.args)
	}
}

func TestARandomIdIsNeverTakenForAnOption(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := randomUUID()
		assert.Len(t, id, 22)
		assert.NotEqual(t, byte('-'), id[0])
		assert.False(t, seen[id])
		seen[id] = true
	}
}

func TestMetadataQuorumCallsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "kafka-metadata-quorum: error: too few arguments\n"},
		{"describe --status", "kafka-metadata-quorum: error: one of the arguments --bootstrap-server --bootstrap-controller is required\n"},
		{"--bootstrap-controller c describe --status", "This cluster has no controllers of its own"},
		{"--bootstrap-server b describe", "One of --status or --replication must be specified with describe sub-command\n"},
		{"--bootstrap-server b describe --status --replication", "Only one of --status or --replication should be specified with describe sub-command\n"},
		{"--bootstrap-server b describe --status --human-readable", "The option --human-readable is only supported along with --replication\n"},
		{"--bootstrap-server b --command-config /nosuch describe --status", "Properties file /nosuch does not exists!\n"},
		{"--bootstrap-server b add-controller", "You must supply the configuration file of the controller you are adding when using add-controller.\n"},
		{"--bootstrap-server b remove-controller -i -1 -d x", "Invalid negative --controller-id: -1\n"},
		{"--bootstrap-server b remove-controller -i 1", "kafka-metadata-quorum: error: argument --controller-directory-id/-d is required\n"},
	} {
		got := run(metadataQuorumTool, c.args)
		assert.Equal(t, 1, got.code, c.args)
		assert.Contains(t, got.stderr, c.want, c.args)
	}
	help := run(metadataQuorumTool, "--help")
	assert.Zero(t, help.code, "of this one help is no failure")
	assert.Contains(t, help.stdout, "add-controller")
}

func TestLogDirectoriesAreShown(t *testing.T) {
	dir := t.TempDir()
	at := func(name, meta string) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "meta.properties"), []byte(meta), 0o600))
	}
	info := func(dirs string) ran {
		file := filepath.Join(dir, "server.properties")
		require.NoError(t, os.WriteFile(file, []byte("broker.id=1\nzookeeper.connect=127.0.0.1:1\nlog.dirs="+strings.ReplaceAll(dirs, "DIR", dir)+"\n"), 0o600))
		got := run(storageTool, "info --config "+file)
		got.stdout = strings.ReplaceAll(got.stdout, dir, "DIR")
		return got
	}
	at("a", "#\nversion=0\nbroker.id=1\ncluster.id=abc\n")
	at("b", "version=0\nbroker.id=1\ncluster.id=abc\n")
	at("c", "version=0\nbroker.id=1\ncluster.id=other\n")
	at("d", "version=0\nbroker.id=2\ncluster.id=abc\n")
	at("k", "version=1\nnode.id=1\ncluster.id=abc\n")
	at("v", "version=7\n")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bare"), 0o755))
	const metadata = "Found metadata: {broker.id=1, cluster.id=abc, version=0}\n\n"
	assert.Equal(t, ran{0, "Found log directories:\n  DIR/a\n  DIR/b\n\n" + metadata, ""}, info("DIR/b,DIR/a"))
	assert.Equal(t, ran{0, "Found log directory:\n  DIR/a\n\n" + metadata, ""}, info("DIR/a"))
	for dirs, problem := range map[string]string{
		"DIR/a,DIR/bare":              "DIR/bare is not formatted.",
		"DIR/a,DIR/none":              "DIR/none does not exist",
		"DIR/a,DIR/server.properties": "DIR/server.properties is not a directory",
		"DIR/a,DIR/c":                 "Mismatched cluster IDs between storage directories.",
		"DIR/a,DIR/d":                 "Mismatched node IDs between storage directories.",
		"DIR/k":                       "The kafka configuration file appears to be for a legacy cluster, but the directories are formatted for a cluster in KRaft mode.",
		"DIR/v":                       "Unsupported version for DIR/v/meta.properties: 7",
	} {
		got := info(dirs)
		assert.Equal(t, 1, got.code, dirs)
		assert.Contains(t, got.stdout, "Found problem:\n  "+problem+"\n\n")
	}
	assert.Contains(t, info("DIR/none,DIR/bare").stdout, "Found problems:\n  DIR/bare is not formatted.\n  DIR/none does not exist\n")
}

func TestADirectoryIsNotFormattedByATool(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.properties")
	require.NoError(t, os.WriteFile(file, []byte("broker.id=1\nzookeeper.connect=127.0.0.1:1\n"), 0o600))
	got := run(storageTool, "format -t MkU3OEVBNTcwNTJENDM2Qk -c "+file)
	assert.Equal(t, ran{1, "", "The kafka configuration file appears to be for a legacy cluster. Formatting is only supported for clusters in KRaft mode.\n"}, got)
	got = run(storageTool, "format -c "+file)
	assert.Contains(t, got.stderr, "kafka-storage: error: argument --cluster-id/-t is required\n")
	assert.Contains(t, run(storageTool, "info -c /nosuch").stderr, "/nosuch")
	assert.Len(t, run(storageTool, "random-uuid").stdout, 23)
	assert.Equal(t, 1, run(storageTool, "--help").code)
	t.Setenv("BARNABAS_COMPAT", "3.9.1")
	assert.Equal(t, 0, run(storageTool, "--help").code)
}

func TestWhoLooksForJMXIsToldOfMetrics(t *testing.T) {
	got := run(jmxTool, "--object-name kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "/metrics")
	assert.Equal(t, "bogus is not a recognized option", firstLine(run(jmxTool, "--bogus").stderr))
	assert.Zero(t, run(jmxTool, "--help").code)
	assert.Contains(t, run(jmxTool, "--help").stdout, "--object-name")
	assert.Equal(t, 1, run(jmxTool, "").code)
	t.Setenv("BARNABAS_COMPAT", "3.9.1")
	assert.Equal(t, 1, run(jmxTool, "--help").code)
	assert.Contains(t, run(jmxTool, "--help").stderr, "--object-name")
}
