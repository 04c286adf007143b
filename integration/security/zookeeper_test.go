package security

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

// towardsZooKeeper are the settings of connections to a ZooKeeper that takes TLS only, and from whom it knows.
func towardsZooKeeper(t testing.TB, kind string) map[string]string {
	set := map[string]string{"zookeeper.ssl.client.enable": "true", "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty"}
	for name, value := range stores(t, "client", kind) {
		if name == "ssl.key.password" {
			name = "ssl.keystore.password" // for a store in PEM, ZooKeeper's clients take the one for the other
		}
		set["zookeeper."+name] = value
	}
	return set
}

// A broker, its life after a kill, and the tools reach a ZooKeeper through TLS alone, with stores of each kind.
func TestABrokerAndItsToolsReachZooKeeperThroughTLS(t *testing.T) {
	port := strconv.Itoa(cluster.Port(t))
	secure := net.JoinHostPort("127.0.0.1", port)
	zktest.Each(t, func(t *testing.T, srv zktest.Server) {
		b := cluster.Prepare(t, secure, 1, with(towardsZooKeeper(t, "JKS"), map[string]string{"zookeeper.session.timeout.ms": "60000"}), func(int) map[string]string { return nil }).Brokers[0]
		b.Start(t)
		b.WaitReady(t)
		for _, kind := range []string{"PEM", "PKCS12"} {
			b.Kill(t)
			for name, value := range towardsZooKeeper(t, kind) {
				b.Set(name, value)
			}
			killed := time.Now()
			b.Start(t)
			b.WaitReady(t)
			assert.Less(t, time.Since(killed), 40*time.Second, "the session of the life before is ended through TLS, too")
		}

		tool := func(args ...string) (string, error) {
			ctx, cancel := context.WithTimeout(context.Background(), patienceOfPrograms)
			defer cancel()
			out, err := exec.CommandContext(ctx, cluster.Binary(t), args...).CombinedOutput()
			return string(out), err
		}
		file := write(t, towardsZooKeeper(t, "PEM"))
		for _, row := range []struct {
			says string
			args []string
		}{
			{fmt.Sprintf("%q:[%q]", "endpoints", "PLAINTEXT://"+b.Addr), []string{"zookeeper-shell", secure, "-zk-tls-config-file", file, "get", "/brokers/ids/1"}},
			{"Completed updating config for entity: user-principal 'alice'.", []string{"kafka-configs", "--zookeeper", secure, "--zk-tls-config-file", file, "--alter", "--entity-type", "users", "--entity-name", "alice",
				"--add-config", "SCRAM-SHA-256=[iterations=4096,password=x]"}},
			{"endpoints.0.protocol  PLAINTEXT", []string{"zk", "get", "/brokers/ids/1", "--zookeeper", secure, "--zk-tls-config-file", file}},
			{"Adding ACLs for resource", []string{"kafka-acls", "--authorizer-properties", "zookeeper.connect=" + secure, "--zk-tls-config-file", file, "--add", "--allow-principal", "User:alice", "--topic", "t"}},
		} {
			out, err := tool(row.args...)
			assert.NoError(t, err, out)
			assert.Contains(t, out, row.says)
		}
		out, err := tool("zookeeper-shell", secure, "-zk-tls-config-file", file, "getAcl", "/config/users/alice")
		assert.NoError(t, err, out)
		assert.Regexp(t, `'x509,'.*CN=`, out, "what a tool makes is of whom its certificate names")
		out, err = tool("zookeeper-shell", secure, "-timeout", "3000", "ls", "/")
		assert.Error(t, err, "without TLS: %s", out)
		b.Stop(t)

		for _, wrong := range []struct{ name, value, says string }{
			{"zookeeper.ssl.truststore.location", testdata(t, "client.p12"), "certificate signed by unknown authority"}, // it trusts nobody but itself
			{"zookeeper.ssl.ocsp.enable", "true", "zookeeper.ssl.ocsp.enable: "},
		} {
			b.Set("zookeeper.connection.timeout.ms", "6000")
			b.Set(wrong.name, wrong.value)
			b.Start(t)
			assert.NotZero(t, b.ExitCode(t, patienceOfPrograms))
			assert.Contains(t, b.LogTail(2000), wrong.says)
		}
	}, "secureClientPort="+port, "secureClientPortAddress=127.0.0.1", "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
		"ssl.keyStore.location="+testdata(t, "broker.jks"), "ssl.keyStore.password="+password, "ssl.trustStore.location="+testdata(t, "trust.jks"), "ssl.trustStore.password="+password)
}
