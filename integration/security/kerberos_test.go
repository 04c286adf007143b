package security

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/broker/auth"
	"barnabas/integration/cluster"
	"barnabas/integration/kdc"
	"barnabas/integration/lane"
	"barnabas/kerberos"
	"barnabas/zkstate/zktest"
)

const (
	brokerPrincipal = "kafka/localhost@" + kdc.Realm
	alicePrincipal  = "alice@" + kdc.Realm
)

// byTicket are the settings of a client that proves itself by what a JAAS entry says.
func byTicket(login string) map[string]string {
	return map[string]string{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka", "sasl.jaas.config": login}
}

// startRealm makes a realm that programs of both kinds find.
func startRealm(t *testing.T) *kdc.KDC {
	realm := kdc.Start(t)
	t.Setenv("KAFKA_OPTS", "-Djava.security.krb5.conf="+realm.Config)
	t.Setenv("JDK_JAVA_OPTIONS", "-Djava.security.krb5.conf="+realm.Config)
	return realm
}

// kerberosBroker starts a broker that knows clients by their tickets: people by their names in capitals, of whom ALICE may do all.
func kerberosBroker(t *testing.T, keyTable string) (b *cluster.Cluster, door string) {
	door = net.JoinHostPort("localhost", strconv.Itoa(cluster.Port(t))) // libraries in C take addresses for names
	return cluster.StartProgram(t, cluster.Barnabas, zktest.Embedded(t).Addr(), 1, map[string]string{
		"listeners": "PLAINTEXT://${addr},CLIENTS://" + door, "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
		"listener.name.clients.gssapi.sasl.jaas.config":   kdc.Login(keyTable, brokerPrincipal),
		"listener.name.clients.connections.max.reauth.ms": "2000",
		"sasl.kerberos.service.name":                      "kafka",
		"sasl.kerberos.principal.to.local.rules":          "RULE:[1:$1@$0](.*@" + kdc.Realm + ")s/@.*//U,DEFAULT",
		"authorizer.class.name":                           "kafka.security.authorizer.AclAuthorizer", "super.users": "User:ALICE;User:ANONYMOUS",
		"auto.create.topics.enable": "true", "offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0",
	}, func(int) map[string]string { return nil }), door
}

func TestClientsComeInByTickets(t *testing.T) {
	lane.KafkaJars(t, "3.9.1")
	realm := startRealm(t)
	keys := realm.Add(t, brokerPrincipal, alicePrincipal, "bob")
	short := realm.Cache(t, keys, alicePrincipal, "1s")
	b, door := kerberosBroker(t, keys)
	bin, alice := cluster.Binary(t), write(t, byTicket(kdc.Login(keys, alicePrincipal)))

	t.Run("consoles of Apache Kafka", func(t *testing.T) {
		java(t, "3.9.1", "hello\n", "kafka.tools.ConsoleProducer", "--bootstrap-server", door, "--topic", "t", "--producer.config", alice)
		out := java(t, "2.8.2", "", "kafka.tools.ConsoleConsumer", "--bootstrap-server", door, "--topic", "t", "--consumer.config", alice, "--from-beginning", "--max-messages", "1", "--timeout-ms", "120000")
		assert.Contains(t, out, "hello")
	})
	t.Run("our own tools", func(t *testing.T) {
		cached := write(t, byTicket(kdc.LoginByCache(realm.Cache(t, keys, alicePrincipal, "1h"))))
		run(t, "hello\n", bin, "kafka-console-producer", "--bootstrap-server", door, "--topic", "own", "--producer.config", alice)
		out := run(t, "", bin, "kafka-console-consumer", "--bootstrap-server", door, "--topic", "own", "--consumer.config", cached, "--from-beginning", "--max-messages", "1", "--timeout-ms", "120000")
		assert.Contains(t, out, "hello")
		assert.Contains(t, run(t, "", bin, "topic", "list", "--bootstrap-server", door, "--command-config", cached), "own")
	})
	t.Run("authenticating again", func(t *testing.T) {
		client, err := kgo.NewClient(kgo.SeedBrokers(door), kgo.SASL(auth.ClientGSSAPI(kerberos.NewTickets(kerberos.Account{
			ConfigFile: realm.Config, Principal: alicePrincipal, KeyTable: keys, Now: time.Now,
		}), "kafka")), kgo.DefaultProduceTopic("again"), kgo.AllowAutoTopicCreation(), kgo.RecordDeliveryTimeout(patienceOfPrograms), kgo.AlwaysRetryEOF()) // as in TestEveryClientComesInByWhatItProves
		require.NoError(t, err)
		defer client.Close()
		for until := time.Now().Add(3 * time.Second); time.Now().Before(until); {
			require.NoError(t, client.ProduceSync(lane.Patience(t), kgo.StringRecord("x")).FirstErr())
			time.Sleep(50 * time.Millisecond) // the pace of a client that has little to say
		}
	})
	t.Run("kcat", func(t *testing.T) {
		lane.Program(t, "kcat")
		plugins, _ := filepath.Glob("/usr/lib/*/sasl2/libgssapiv2.so")
		lane.Need(t, len(plugins) > 0, "Cyrus SASL's module for GSSAPI")
		t.Setenv("KRB5_CONFIG", realm.Config)
		t.Setenv("KRB5CCNAME", filepath.Join(t.TempDir(), "tickets"))
		args := []string{"-b", door, "-t", "kcat", "-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=GSSAPI", "-X", "sasl.kerberos.keytab=" + keys, "-X", "sasl.kerberos.principal=" + alicePrincipal, "-X", "allow.auto.create.topics=true"}
		run(t, "hello\n", "kcat", append([]string{"-P"}, args...)...)
		assert.Contains(t, run(t, "", "kcat", append([]string{"-C", "-e", "-q"}, args...)...), "hello\n")
	})
	t.Run("sarama", func(t *testing.T) { // which does not ask who the broker is
		for _, version := range []int16{sarama.SASLHandshakeV0, sarama.SASLHandshakeV1} {
			cfg := sarama.NewConfig()
			cfg.Producer.Return.Successes, cfg.ApiVersionsRequest, cfg.Metadata.Retry.Max = true, version > 0, madeMeanwhile
			cfg.Net.SASL.Enable, cfg.Net.SASL.Mechanism, cfg.Net.SASL.Version = true, sarama.SASLTypeGSSAPI, version
			cfg.Net.SASL.GSSAPI = sarama.GSSAPIConfig{AuthType: sarama.KRB5_KEYTAB_AUTH, KeyTabPath: keys, KerberosConfigPath: realm.Config, ServiceName: "kafka", Username: "alice", Realm: kdc.Realm}
			producer, err := sarama.NewSyncProducer([]string{door}, cfg)
			require.NoError(t, err)
			_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: "sarama", Value: sarama.StringEncoder("hello")})
			assert.NoError(t, err)
			assert.NoError(t, producer.Close())
		}
	})
	t.Run("who is known may not do all", func(t *testing.T) {
		out, err := tryToRun(t, "x\n", bin, "kafka-console-producer", "--bootstrap-server", door, "--topic", "t", "--producer.config", write(t, byTicket(kdc.Login(keys, "bob"))))
		assert.True(t, err != nil || strings.Contains(out, "AUTHORIZATION_FAILED"), out)
		assert.Contains(t, out, "AUTHORIZATION_FAILED")
	})

	// What each is told who is not taken for who he says he is.
	stale := realm.Add(t, "carol")
	realm.Add(t, "carol") // gives her other keys
	for name, c := range map[string]struct {
		settings map[string]string
		says     string
	}{
		"keys of before":       {byTicket(kdc.Login(stale, "carol")), "KDC_ERR_PREAUTH_FAILED"},
		"an unknown principal": {byTicket(kdc.Login(keys, "eve")), "has no key of eve@" + kdc.Realm},
		"no such service":      {with(byTicket(kdc.Login(keys, alicePrincipal)), map[string]string{"sasl.kerberos.service.name": "http"}), "KDC_ERR_S_PRINCIPAL_UNKNOWN"},
		"no service":           {with(byTicket(kdc.Login(keys, alicePrincipal)), map[string]string{"sasl.kerberos.service.name": ""}), "sasl.kerberos.service.name"},
	} {
		out, err := tryToRun(t, "", bin, "kafka-topics", "--bootstrap-server", door, "--list", "--command-config", write(t, c.settings))
		assert.Error(t, err, name)
		assert.Contains(t, out, c.says, name)
	}

	old := write(t, byTicket(kdc.LoginByCache(short)))
	assert.Eventually(t, func() bool { // it may take a second
		out, err := tryToRun(t, "", bin, "kafka-topics", "--bootstrap-server", door, "--list", "--command-config", old)
		return err != nil && strings.Contains(out, "expired at")
	}, time.Minute, 100*time.Millisecond)

	// The broker's keys are changed, and its file is not: nobody's ticket can be read.
	realm.Add(t, brokerPrincipal)
	out, err := tryToRun(t, "", bin, "kafka-topics", "--bootstrap-server", door, "--list", "--command-config", alice)
	assert.Error(t, err)
	assert.Contains(t, out, "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI")
	assert.Eventually(t, func() bool { return strings.Contains(b.Brokers[0].LogTail(1<<20), "matching key not found in keytab") }, time.Minute, 20*time.Millisecond)
}

func TestABrokerThatKerberosDoesNotKnowIsRefusedAtStart(t *testing.T) {
	realm := startRealm(t)
	stale := realm.Add(t, brokerPrincipal)
	realm.Add(t, brokerPrincipal)
	file := write(t, nil)
	for name, c := range map[string]struct {
		settings map[string]string
		says     string
	}{
		"no login":            {nil, "listener.name.sasl_plaintext.gssapi.sasl.jaas.config"},
		"no service":          {map[string]string{"sasl.kerberos.service.name": "", "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": kdc.Login(stale, brokerPrincipal)}, "sasl.kerberos.service.name"},
		"no keys":             {map[string]string{"listener.name.sasl_plaintext.gssapi.sasl.jaas.config": kdc.Login(file, brokerPrincipal)}, "is no key table"},
		"keys of another":     {map[string]string{"listener.name.sasl_plaintext.gssapi.sasl.jaas.config": kdc.Login(stale, "kafka/elsewhere")}, "has no key of kafka/elsewhere@" + kdc.Realm},
		"tickets for keys":    {map[string]string{"listener.name.sasl_plaintext.gssapi.sasl.jaas.config": kdc.LoginByCache(file)}, "useKeyTab=true"},
		"rules that are none": {map[string]string{"sasl.kerberos.principal.to.local.rules": "RULE:[1", "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": kdc.Login(stale, brokerPrincipal)}, "sasl.kerberos.principal.to.local.rules"},
		"keys of before":      {map[string]string{"listener.name.sasl_plaintext.gssapi.sasl.jaas.config": kdc.Login(stale, brokerPrincipal)}, "KDC_ERR_PREAUTH_FAILED"},
	} {
		settings := with(map[string]string{
			"broker.id": "1", "zookeeper.connect": zktest.Embedded(t).Addr(), "log.dirs": t.TempDir(), "listeners": "SASL_PLAINTEXT://127.0.0.1:" + strconv.Itoa(cluster.Port(t)),
			"security.inter.broker.protocol": "SASL_PLAINTEXT", "sasl.kerberos.service.name": "kafka",
		}, c.settings)
		out, err := tryToRun(t, "", cluster.Binary(t), "broker", write(t, settings))
		assert.Error(t, err, name)
		assert.Contains(t, out, c.says, name)
	}
}

// Brokers of both kinds know each other by tickets alone; one is killed, and each is controller and follower of the other kind.
func TestBrokersOfBothKindsKnowEachOtherByTickets(t *testing.T) {
	lane.KafkaJars(t, "3.9.1")
	realm := startRealm(t)
	keys := realm.Add(t, brokerPrincipal, alicePrincipal)
	doors := map[int]string{}
	c := cluster.Prepare(t, zktest.Embedded(t).Addr(), 3, map[string]string{
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_PLAINTEXT", "inter.broker.listener.name": "BROKERS",
		"sasl.kerberos.service.name":                      "kafka",
		"listener.name.brokers.gssapi.sasl.jaas.config":   kdc.Login(keys, brokerPrincipal),
		"listener.name.brokers.connections.max.reauth.ms": strconv.Itoa(reauthMs),
		"min.insync.replicas":                             "2", "controlled.shutdown.retry.backoff.ms": "500", "replica.lag.time.max.ms": "30000",
	}, func(id int) map[string]string {
		doors[id] = net.JoinHostPort("127.0.0.1", strconv.Itoa(cluster.Port(t)))
		return map[string]string{"listeners": "PLAINTEXT://${addr},BROKERS://" + doors[id]}
	})
	for i, program := range []cluster.Program{cluster.Kafka("3.9.1"), cluster.Barnabas, cluster.Barnabas} {
		c.Brokers[i].Become(program)
		c.Brokers[i].Start(t)
		if i == 0 {
			c.Brokers[i].WaitReady(t) // and is controller
		}
	}
	for _, b := range c.Brokers {
		b.WaitReady(t)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(20*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.AlwaysRetryEOF(), kgo.RecordDeliveryTimeout(patienceOfPrograms))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	const partitions = 6
	_, err = kadm.NewClient(client).CreateTopic(lane.Patience(t), partitions, 3, nil, "t")
	require.NoError(t, err)
	produce := func() {
		c.WaitWhole(t, "t", partitions, 3)
		for p := range int32(partitions) {
			require.NoError(t, client.ProduceSync(lane.Patience(t), &kgo.Record{Topic: "t", Partition: p, Value: []byte("x")}).FirstErr())
		}
	}
	produce()

	alice := write(t, byTicket(kdc.Login(keys, alicePrincipal)))
	for i, b := range c.Brokers[:2] { // our tools go to either kind
		out := run(t, "", cluster.Binary(t), "kafka-topics", "--bootstrap-server", doors[i+1], "--list", "--command-config", alice)
		assert.Contains(t, out, "t", b.LogTail(2000))
	}
	ticket, err := kerberos.NewTickets(kerberos.Account{ConfigFile: realm.Config, Principal: alicePrincipal, KeyTable: keys, Now: time.Now}).For(lane.Patience(t), "kafka", "localhost")
	require.NoError(t, err)
	answersByTicket(t, doors[1], ticket, refusedTicket)
	answersByTicket(t, doors[2], ticket, "closed")
	for i, goes := range []func(testing.TB){c.Brokers[0].Stop, c.Brokers[1].Kill} { // the first is controller
		goes(t)
		c.Brokers[i].Start(t)
		c.Brokers[i].WaitReady(t)
		produce()
	}
}
