package security

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/kdc"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// One JAAS file says who everybody is, as where Kerberos is all there is: a ZooKeeper that answers nobody without a ticket has brokers of both kinds, with zookeeper.set.acl, who know each other by
// tickets, and the tools.
func TestBrokersAndToolsAreKnownToZooKeeperByTickets(t *testing.T) {
	lane.KafkaJars(t, "3.9.1")
	realm := kdc.Start(t)
	keys := realm.Add(t, brokerPrincipal, "zookeeper/localhost")
	file := filepath.Join(t.TempDir(), "jaas.conf")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "Server { %s };\nClient { %s };\nKafkaServer { %[2]s };\n", kdc.Login(keys, "zookeeper/localhost@"+kdc.Realm), kdc.Login(keys, brokerPrincipal)), 0o600))
	options := "-Djava.security.krb5.conf=" + realm.Config + " -Djava.security.auth.login.config=" + file
	t.Setenv("JDK_JAVA_OPTIONS", options)
	t.Setenv("KAFKA_OPTS", options)
	zk := zktest.Real(t, "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider", "enforce.auth.enabled=true", "enforce.auth.schemes=sasl").Addr()
	c := cluster.Prepare(t, zk, 2, map[string]string{
		"zookeeper.set.acl": "true", "zookeeper.session.timeout.ms": "30000", "security.inter.broker.protocol": "SASL_PLAINTEXT", "sasl.kerberos.service.name": "kafka",
	}, func(int) map[string]string {
		return map[string]string{"listeners": "PLAINTEXT://${addr},SASL_PLAINTEXT://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(cluster.Port(t)))}
	})
	c.Brokers[1].Become(cluster.Kafka("3.9.1"))
	for _, b := range c.Brokers {
		b.Start(t)
		b.WaitReady(t) // the first is controller
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(20*time.Millisecond), kgo.AlwaysRetryEOF(), kgo.RecordDeliveryTimeout(patienceOfPrograms))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	_, err = kadm.NewClient(client).CreateTopic(lane.Patience(t), 3, 2, nil, "t")
	require.NoError(t, err)
	c.WaitWhole(t, "t", 3, 2)
	ours := c.Brokers[0]
	ours.Kill(t)
	ours.Start(t)
	ours.WaitReady(t) // ends the session of the life before
	c.WaitWhole(t, "t", 3, 2)
	require.NoError(t, client.ProduceSync(lane.Patience(t), &kgo.Record{Topic: "t", Value: []byte("x")}).FirstErr())
	assert.Contains(t, run(t, "", cluster.Binary(t), "zookeeper-shell", zk, "getAcl", "/brokers/topics/t"), "'sasl,'kafka/localhost@"+kdc.Realm)

	ours.Stop(t)
	t.Setenv("KAFKA_OPTS", "-Djava.security.krb5.conf="+filepath.Join(t.TempDir(), "none")+" -Djava.security.auth.login.config="+file)
	ours.Set("zookeeper.connection.timeout.ms", "3000")
	ours.Start(t)
	assert.NotZero(t, ours.ExitCode(t, time.Minute))
	assert.Contains(t, ours.LogTail(2000), "no such file")
}
