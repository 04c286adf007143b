package security

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/proto"
	"barnabas/zkstate/sasl"
	"barnabas/zkstate/zktest"
)

// A ZooKeeper that answers nobody who is not authenticated by SASL has brokers of both kinds, with zookeeper.set.acl, and the tools; nobody else may write what they made.
func TestBrokersAndToolsAreKnownToZooKeeperBySASL(t *testing.T) {
	java, jars := lane.Java(t), lane.KafkaJars(t, "3.9.1")
	login := jaasFile(t, "kafka-secret")
	t.Setenv("JDK_JAVA_OPTIONS", login) // ZooKeeper and Apache Kafka
	t.Setenv("KAFKA_OPTS", "-Xmx1g "+login)
	zk := zktest.Real(t, "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider", "enforce.auth.enabled=true", "enforce.auth.schemes=sasl").Addr()
	c := cluster.StartMixed(t, zk, []cluster.Program{cluster.Barnabas, cluster.Kafka("3.9.1")}, map[string]string{"zookeeper.set.acl": "true", "zookeeper.session.timeout.ms": "30000"})
	ours := c.Brokers[0]

	producer, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(20*time.Millisecond), kgo.AlwaysRetryEOF(), kgo.RecordDeliveryTimeout(patienceOfPrograms))
	require.NoError(t, err)
	t.Cleanup(producer.Close)
	_, err = kadm.NewClient(producer).CreateTopic(lane.Patience(t), 20, 2, nil, "t") // a controller that takes over reads them in bulk
	require.NoError(t, err)
	c.WaitWhole(t, "t", 20, 2)
	ours.Kill(t)
	ours.Start(t)
	ours.WaitReady(t) // ends the session of the life before
	c.WaitWhole(t, "t", 20, 2)
	require.NoError(t, producer.ProduceSync(lane.Patience(t), &kgo.Record{Topic: "t", Value: []byte("x")}).FirstErr())

	run := func(name string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
		return string(out), err
	}
	tool := func(args ...string) string {
		out, err := run(cluster.Binary(t), args...)
		require.NoError(t, err, out)
		return out
	}
	tool("kafka-configs", "--zookeeper", zk, "--alter", "--entity-type", "users", "--entity-name", "alice", "--add-config", "SCRAM-SHA-256=[iterations=4096,password=x]")
	const mine, readable, open = "sasl:kafka:31", "sasl:kafka:31 world:anyone:1", "world:anyone:31"
	secured := aclsOf(t, zk)
	for path, want := range map[string]string{"/brokers/topics/t/partitions/7/state": readable, "/brokers/ids/1": readable, "/brokers/ids/2": readable, "/config/users/alice": mine, "/consumers": open} {
		assert.Equal(t, want, secured[path], path)
	}
	assert.Contains(t, tool("zookeeper-shell", zk, "getAcl", "/config/users/alice"), "'sasl,'kafka")
	assert.Contains(t, tool("zk", "get", "/config/users/alice", "--zookeeper", zk), "iterations=4096 (hidden)", "nobody else may read it")

	// The tree is opened and closed again by either's tool, with one result.
	migrator := func(acl string) {
		out, err := run(java, "-Xmx128m", "-cp", filepath.Join(jars, "*"), "kafka.admin.ZkSecurityMigrator", "--zookeeper.acl="+acl, "--zookeeper.connect", zk)
		require.NoError(t, err, out)
	}
	tool("zookeeper-security-migration", "--zookeeper.acl", "unsecure", "--zookeeper.connect", zk)
	opened := aclsOf(t, zk)
	assert.Equal(t, open, opened["/brokers/topics/t/partitions/7/state"])
	assert.Equal(t, open, opened["/config/users/alice"])
	migrator("unsecure")
	assert.Equal(t, opened, aclsOf(t, zk))
	tool("zookeeper-security-migration", "--zookeeper.acl=secure", "--zookeeper.connect="+zk)
	closed := aclsOf(t, zk)
	assert.Equal(t, secured["/config/users/alice"], closed["/config/users/alice"])
	migrator("secure")
	assert.Equal(t, closed, aclsOf(t, zk))

	ours.Stop(t)
	for options, says := range map[string]string{
		"":                   "zookeeper.set.acl is true",
		jaasFile(t, "wrong"): `authenticating as "kafka"`,
		login + " -Dzookeeper.sasl.clientconfig=Kerberos": "useKeyTab wants keyTab and principal",
	} {
		t.Setenv("KAFKA_OPTS", options)
		ours.Set("zookeeper.connection.timeout.ms", "3000")
		ours.Start(t)
		assert.NotZero(t, ours.ExitCode(t, time.Minute))
		assert.Contains(t, ours.LogTail(2000), says)
	}
	t.Setenv("KAFKA_OPTS", "")
	out, err := run(cluster.Binary(t), "zookeeper-security-migration", "--zookeeper.acl", "secure", "--zookeeper.connect", zk)
	assert.Error(t, err)
	assert.Contains(t, out, "ERROR: No JAAS configuration file has been specified and no TLS client certificate has been specified.")
}

// jaasFile writes the logins of all and gives the option that names the file.
func jaasFile(t testing.TB, password string) string {
	file := filepath.Join(t.TempDir(), "jaas.conf")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `
		Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_kafka="kafka-secret"; };
		Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password=%q; };
		Kerberos { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true; };`, password), 0o600))
	return "-Djava.security.auth.login.config=" + file
}

// aclsOf are the access lists of the whole tree but ZooKeeper's own nodes, as "scheme:id:permissions" each.
func aclsOf(t testing.TB, zk string) map[string]string {
	conn, err := client.Dial(zk, 30*time.Second, client.Session{}, nil)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.Login(sasl.Account{User: "kafka", Password: "kafka-secret"}, zk))
	acls := map[string]string{}
	for left := []string{"/"}; len(left) > 0; left = left[1:] {
		path := left[0]
		r, err := conn.Call(proto.OpGetACL, &proto.PathRequest{Path: path})
		require.NoError(t, err, path)
		var entries []string
		for _, a := range r.ACLs() {
			entries = append(entries, fmt.Sprintf("%s:%s:%d", a.Scheme, a.ID, a.Perms))
		}
		acls[path] = strings.Join(entries, " ")
		r, err = conn.Call(proto.OpGetChildren, &proto.ReadRequest{Path: path})
		require.NoError(t, err, path)
		for _, child := range r.Strings() {
			if child != "zookeeper" {
				left = append(left, strings.TrimSuffix(path, "/")+"/"+child)
			}
		}
	}
	return acls
}
