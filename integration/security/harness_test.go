package security

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

const (
	password    = "sesame1" // of the key stores
	plainModule = "org.apache.kafka.common.security.plain.PlainLoginModule"
	scramModule = "org.apache.kafka.common.security.scram.ScramLoginModule"
)

// testdata is where a file of testdata is, for other programs.
func testdata(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	require.NoError(t, err)
	return path
}

func jaas(module string, options ...string) string {
	return module + " required " + strings.Join(options, " ") + ";"
}

// stores are the settings of a key store and a trust store; side is broker or client, kind JKS, PKCS12 or PEM.
func stores(t testing.TB, side, kind string) map[string]string {
	ending := map[string]string{"JKS": "jks", "PKCS12": "p12", "PEM": "pem"}[kind]
	set := map[string]string{"ssl.keystore.type": kind, "ssl.truststore.type": kind, "ssl.keystore.location": testdata(t, side+"."+ending)}
	if kind == "PEM" {
		set["ssl.key.password"], set["ssl.truststore.location"] = password, testdata(t, "ca.pem")
		return set
	}
	set["ssl.keystore.password"], set["ssl.truststore.password"], set["ssl.truststore.location"] = password, password, testdata(t, "trust."+ending)
	return set
}

// with joins settings.
func with(sets ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, set := range sets {
		for name, value := range set {
			all[name] = value
		}
	}
	return all
}

// write writes a property file.
func write(t testing.TB, set map[string]string) string {
	t.Helper()
	var text strings.Builder
	for name, value := range set {
		fmt.Fprintf(&text, "%s=%s\n", name, value)
	}
	path := filepath.Join(t.TempDir(), "client.properties")
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	return path
}

// broker is one broker with a listener of each kind, whose names are those of the protocols, and PEM on a fifth.
type broker struct {
	*cluster.Cluster
	addrs map[string]string
}

const (
	reauthMs           = 4000
	patienceOfPrograms = 3 * time.Minute // a machine may be busy

	madeMeanwhile = 100 // looks that sarama may take at a topic that is made by being looked at; three, a quarter of a second apart, are not enough everywhere
)

// start starts one; alice may come in by PLAIN, carol by SCRAM.
func start(t *testing.T, program cluster.Program) broker {
	b := broker{addrs: map[string]string{}}
	zk := zktest.Embedded(t).Addr()
	listeners := []string{"PLAINTEXT://${addr}"}
	for _, name := range []string{"SSL", "SASL_PLAINTEXT", "SASL_SSL", "PEM", "SHORT"} {
		b.addrs[name] = net.JoinHostPort("127.0.0.1", strconv.Itoa(cluster.Port(t)))
		listeners = append(listeners, name+"://"+b.addrs[name])
	}
	users := jaas(plainModule, `user_alice="alice-secret"`, `user_bob="bob-secret"`)
	settings := map[string]string{
		"listeners":                        strings.Join(listeners, ","),
		"listener.security.protocol.map":   "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,PEM:SSL,SHORT:SASL_PLAINTEXT",
		"ssl.client.auth":                  "required",
		"ssl.principal.mapping.rules":      "RULE:^CN=(.*?),.*$/$1/U,DEFAULT",
		"sasl.enabled.mechanisms":          "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		"auto.create.topics.enable":        "true",
		"offsets.topic.num.partitions":     "3",
		"group.initial.rebalance.delay.ms": "0",
		"zookeeper.session.timeout.ms":     "30000", // a busy machine may hold a JVM up

		"listener.name.short.sasl.enabled.mechanisms":   "PLAIN,SCRAM-SHA-256",
		"listener.name.short.connections.max.reauth.ms": strconv.Itoa(reauthMs),
	}
	for listener, kind := range map[string]string{"ssl": "JKS", "sasl_ssl": "PKCS12", "pem": "PEM"} {
		for name, value := range stores(t, "broker", kind) {
			settings["listener.name."+listener+"."+name] = value
		}
	}
	for _, listener := range []string{"sasl_plaintext", "sasl_ssl", "short"} {
		settings["listener.name."+listener+".plain.sasl.jaas.config"] = users
		for _, mechanism := range []string{"scram-sha-256", "scram-sha-512"} {
			settings["listener.name."+listener+"."+mechanism+".sasl.jaas.config"] = jaas(scramModule)
		}
	}
	addCredential(t, zk, "carol", "carol-secret")
	b.Cluster = cluster.StartProgram(t, program, zk, 1, settings, func(int) map[string]string { return nil })
	return b
}

// addCredential puts a user's credentials of SCRAM into ZooKeeper, where the brokers find them.
func addCredential(t *testing.T, zk, user, secret string) {
	t.Helper()
	out := run(t, "", cluster.Binary(t), "kafka-configs", "--zookeeper", zk, "--alter", "--entity-type", "users", "--entity-name", user,
		"--add-config", fmt.Sprintf("SCRAM-SHA-512=[password=%s],SCRAM-SHA-256=[iterations=8192,password=%[1]s]", secret))
	require.Contains(t, out, "Completed")
}

// run runs a program to its end and gives what it printed.
func run(t *testing.T, input, name string, args ...string) string {
	t.Helper()
	out, err := tryToRun(t, input, name, args...)
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return out
}

func tryToRun(t *testing.T, input, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patienceOfPrograms)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// java runs a main class of a release of Apache Kafka.
func java(t *testing.T, version, input, class string, args ...string) string {
	t.Helper()
	lib := lane.KafkaJars(t, version)
	return run(t, input, lane.Java(t), append([]string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", lib + "/*", class}, args...)...)
}
