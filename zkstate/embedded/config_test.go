package embedded

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func parse(t *testing.T, text string) (Config, error) {
	file := filepath.Join(t.TempDir(), "zoo.cfg")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return ParseConfig(file)
}

func TestZooKeepersOwnKeysAreRead(t *testing.T) {
	c, err := parse(t, `# as Kafka ships it, and more
dataDir=/tmp/zookeeper
clientPort=2181
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
tickTime = 2000
initLimit=10
syncLimit=5
minSessionTimeout=-1
maxSessionTimeout=90000
4lw.commands.whitelist=ruok, stat
autopurge.purgeInterval=1
extendedTypesEnabled=true
DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=
server.1=localhost:2888:3888
flowers=roses
`)
	require.NoError(t, err)
	require.Equal(t, []string{"unknown key flowers is ignored"}, c.Warnings)
	c.Warnings = nil
	require.Equal(t, Config{
		Addr: "127.0.0.1:2181", DataDir: "/tmp/zookeeper", TickTime: 2 * time.Second, MaxSessionTimeout: 90 * time.Second,
		FourLetterWhitelist: []string{"ruok", "stat"}, ExtendedTypes: true, SuperDigest: "super:D/InIHSb7yEEbrWz8b9l71RjZJU=",
	}, c)
}

func TestTheServersOfAnEnsembleAreRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "myid"), []byte("2\n"), 0o600))
	lines := "dataDir=" + dir + "\nserver.1=a:1:2;2181\nserver.2=b:3:4:participant;127.0.0.1:2182\nserver.3=[::1]:5:6\n"
	c, err := parse(t, lines+"quorumListenOnAllIPs=true\n")
	require.NoError(t, err)
	require.Equal(t, Config{Addr: "127.0.0.1:2182", DataDir: dir, MaxClientConns: 60, ListenOnAll: true, Ensemble: &Ensemble{ID: 2, Servers: map[uint64]Addresses{
		1: {"a:1", "a:2"}, 2: {"b:3", "b:4"}, 3: {"[::1]:5", "[::1]:6"},
	}}}, c)
	require.Equal(t, ":3", c.bindTo("b:3"))

	file := filepath.Join(t.TempDir(), "zoo.cfg")
	require.NoError(t, os.WriteFile(file, []byte(lines+"clientPort=1\n"), 0o600))
	c, err = ParseConfig(file, Alone())
	require.NoError(t, err)
	require.Nil(t, c.Ensemble)
	require.Len(t, c.Warnings, 1)

	for line, want := range map[string]string{
		"server.4=c:1:2:observer\n": "participants",
		"server.4=c:1\n":            "not host:port:port",
		"server.4=c:1:2|d:1:2\n":    "port",
		"server.4=c:x:2\n":          "the first port is not a port",
		"server.0=c:1:2\n":          "1 to 255",
		"server.x=c:1:2\n":          "1 to 255",
		"sslQuorum=true\n":          "sslQuorum",
		"group.1=1:2\n":             "no groups",
		"weight.1=2\n":              "one vote",
	} {
		_, err := parse(t, lines+line)
		require.ErrorContains(t, err, want, line)
	}
	for id, want := range map[string]string{"7": "no server.N line names", "x": "not a number"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "myid"), []byte(id), 0o600))
		_, err := parse(t, lines)
		require.ErrorContains(t, err, want)
	}
}

func TestDefaultsAreZooKeepers(t *testing.T) {
	c, err := parse(t, "dataDir=/x\nclientPort=2181\n")
	require.NoError(t, err)
	c.Log = testConfig(t).Log
	c, err = c.withDefaults()
	require.NoError(t, err)
	require.Equal(t, []any{":2181", 60, 3 * time.Second, 6 * time.Second, time.Minute, 0xfffff, []string{"srvr"}},
		[]any{c.Addr, c.MaxClientConns, c.TickTime, c.MinSessionTimeout, c.MaxSessionTimeout, c.JuteMaxBuffer, c.FourLetterWhitelist})
}

func TestAWrongConfigurationIsRefusedByName(t *testing.T) {
	for text, want := range map[string]string{
		"clientPort=2181\n":                                                  "dataDir is not set",
		"dataDir=/x\n":                                                       "clientPort is not set",
		"dataDir=/x\nclientPort=70000\n":                                     "clientPort",
		"dataDir=/x\nclientPort=1\nsecureClientPort=2\n":                     "ssl.keyStore.location",
		"dataDir=/x\nclientPort=1\ntickTime=fast\n":                          "tickTime",
		"dataDir=/x\nclientPort=1\nserver.1=a:1:2\nserver.2=b:1:2\n":         "/x/myid",
		"dataDir=/x\nclientPort=1\nmaxClientCnxns=99999999999999999999999\n": "maxClientCnxns",
	} {
		_, err := parse(t, text)
		require.ErrorContains(t, err, want)
	}
	_, err := ParseConfig(filepath.Join(t.TempDir(), "missing"))
	require.ErrorContains(t, err, "missing")
	cfg := testConfig(t)
	cfg.MinSessionTimeout, cfg.MaxSessionTimeout = 2*time.Minute, time.Minute
	_, err = Start(cfg)
	require.ErrorContains(t, err, "minSessionTimeout")
	cfg = testConfig(t)
	cfg.Addr = "256.0.0.1:1"
	_, err = Start(cfg)
	require.Error(t, err)
}

func FuzzParseConfig(f *testing.F) {
	f.Add("dataDir=/x\nclientPort=2181\n")
	f.Fuzz(func(t *testing.T, text string) { _, _ = parse(t, text) })
}
