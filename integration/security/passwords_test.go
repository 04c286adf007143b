package security

import (
	"crypto/sha256"
	"crypto/tls"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// shownAt is the fingerprint of the certificate that a listener shows; false while nobody answers.
func shownAt(addr string) ([sha256.Size]byte, bool) {
	d := &net.Dialer{Timeout: 10 * time.Second}
	c, err := tls.DialWithDialer(d, "tcp", addr, &tls.Config{InsecureSkipVerify: true}) // whose it is does not matter here
	if err != nil {
		return [sha256.Size]byte{}, false
	}
	defer c.Close()
	return sha256.Sum256(c.ConnectionState().PeerCertificates[0].Raw), true
}

// The password of a key store stands nowhere but encrypted in ZooKeeper: written by Kafka's tool before the first start, changed while Barnabas
// runs, and read by Kafka, which takes its place.
func TestPasswordsOfKeyStoresAreKeptAsKafkaKeepsThem(t *testing.T) {
	tool, _ := lane.KafkaJars(t, "2.8.2"), lane.KafkaJars(t, "3.9.1")
	zk := zktest.Embedded(t).Addr()
	outside := net.JoinHostPort("127.0.0.1", strconv.Itoa(cluster.Port(t)))
	c := cluster.Prepare(t, zk, 1, map[string]string{
		"listeners": "PLAINTEXT://${addr},OUTSIDE://" + outside, "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL", "inter.broker.listener.name": "PLAINTEXT",
		"listener.name.outside.ssl.keystore.location": testdata(t, "broker.p12"), "listener.name.outside.ssl.keystore.type": "PKCS12",
		"password.encoder.secret": "the secret", "password.encoder.cipher.algorithm": "AES/GCM/NoPadding", "password.encoder.key.length": "256",
	}, func(int) map[string]string { return nil })
	const key = "listener.name.outside.ssl.keystore.password"
	run(t, "", lane.Java(t), "-cp", filepath.Join(tool, "*"), "kafka.admin.ConfigCommand", "--zookeeper", zk, "--alter", "--entity-type", "brokers", "--entity-name", "1",
		"--add-config", key+"="+password+",password.encoder.secret=the secret,password.encoder.iterations=8192")
	b := c.Brokers[0]
	b.Start(t)
	b.WaitReady(t)
	first, up := shownAt(outside)
	require.True(t, up, "the listener has its key store")

	ctx := lane.Patience(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	alter := func(file, secret string) error {
		set := func(name, value string) kadm.AlterConfig {
			return kadm.AlterConfig{Name: "listener.name.outside." + name, Value: &value}
		}
		altered, err := admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{set("ssl.keystore.location", testdata(t, file)), set("ssl.keystore.password", secret)}, 1)
		require.NoError(t, err)
		return altered[0].Err
	}
	require.Error(t, alter("client.p12", "not the word"))
	require.NoError(t, alter("client.p12", password))
	var second [sha256.Size]byte
	require.Eventually(t, func() bool {
		second, up = shownAt(outside)
		return up && second != first
	}, time.Minute, 50*time.Millisecond, "the other key store is used")
	described, err := admin.DescribeBrokerConfigs(ctx, 1)
	require.NoError(t, err)
	for _, d := range described[0].Configs {
		if d.Key == key {
			assert.True(t, d.Sensitive)
			assert.Nil(t, d.Value)
		}
	}
	assert.NotContains(t, b.LogTail(1<<20), password)

	b.Stop(t)
	b.Become(cluster.Kafka("3.9.1"))
	b.Start(t)
	b.WaitReady(t)
	third, up := shownAt(outside)
	require.True(t, up, "Kafka reads what Barnabas wrote")
	assert.Equal(t, second, third)
}
