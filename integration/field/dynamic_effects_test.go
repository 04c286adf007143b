package field

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// alterBroker changes a dynamic setting of a broker, or of all ("").
func alterBroker(t *testing.T, addr, broker string, one kmsg.IncrementalAlterConfigsRequestResourceConfig) {
	t.Helper()
	req := at(1, kmsg.NewPtrIncrementalAlterConfigsRequest())
	req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: broker, Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{one}}}
	got := ask[*kmsg.IncrementalAlterConfigsResponse](dial(t, addr), req).Resources[0]
	require.Zero(t, got.ErrorCode, value(got.ErrorMessage))
}

// BR-055: an address that is set while the broker runs is published at once, and by its next life.
func TestAnotherAddressIsPublishedAtOnceAndAfterARestart(t *testing.T) {
	for name, program := range map[string]cluster.Program{"barnabas": cluster.Barnabas, "apache": cluster.Kafka(apacheVersion)} {
		t.Run(name, func(t *testing.T) {
			if name == "apache" {
				needApache(t)
			}
			b := cluster.StartProgram(t, program, zktest.Embedded(t).Addr(), 1, nil, func(int) map[string]string { return nil }).Brokers[0]
			_, port, err := net.SplitHostPort(b.Addr)
			require.NoError(t, err)
			awaitPublished := func(when string) {
				c := dial(t, b.Addr)
				eventually(t, func() bool {
					known := describe(c).Brokers
					return len(known) == 1 && known[0].Host == "localhost" // none, if its session was lost meanwhile
				}, "the other address is published %s", when)
			}
			alterBroker(t, b.Addr, "1", change("advertised.listeners", kmsg.IncrementalAlterConfigOpSet, "PLAINTEXT://localhost:"+port))
			awaitPublished("at once")
			b.Stop(t)
			b.Start(t)
			b.WaitReady(t)
			awaitPublished("after a restart")
		})
	}
}

// proving makes a user with a password for SCRAM, and is how it proves to be that.
func proving(t *testing.T, addr string) kgo.Opt {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	require.NoError(t, err)
	defer client.Close()
	altered, err := kadm.NewClient(client).AlterUserSCRAMs(lane.Patience(t), nil, []kadm.UpsertSCRAM{{User: "alice", Mechanism: kadm.ScramSha256, Iterations: 4096, Password: "alice-secret"}})
	require.NoError(t, err)
	require.NoError(t, altered.Error())
	return kgo.SASL(scram.Auth{User: "alice", Pass: "alice-secret"}.AsSha256Mechanism())
}

// awaitPublished waits until who comes by an address is told to come by it.
func awaitPublished(t *testing.T, addr string, options ...kgo.Opt) {
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(addr), kgo.MetadataMinAge(50*time.Millisecond))...)
	require.NoError(t, err)
	defer client.Close()
	eventually(t, func() bool {
		known, err := kadm.NewClient(client).ListBrokers(lane.Patience(t))
		return err == nil && len(known) == 1 && net.JoinHostPort(known[0].Host, fmt.Sprint(known[0].Port)) == addr
	}, "%s is published", addr)
}

// awaitRefused waits until nobody listens at an address.
func awaitRefused(t *testing.T, addr string) {
	eventually(t, func() bool {
		socket, err := net.Dial("tcp", addr)
		if err == nil {
			_ = socket.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	}, "%s is closed", addr)
}

// Listeners are opened and closed while the broker runs (KIP-226), those that prove who a client is among them; what is not open is not published.
func TestListenersAreOpenedAndClosedWhileTheBrokerRuns(t *testing.T) {
	for name, program := range map[string]cluster.Program{"barnabas": cluster.Barnabas, "apache": cluster.Kafka(apacheVersion)} {
		t.Run(name, func(t *testing.T) {
			if name == "apache" {
				needApache(t)
			}
			b := cluster.StartProgram(t, program, zktest.Embedded(t).Addr(), 1, nil, func(int) map[string]string {
				return map[string]string{
					"listener.security.protocol.map":                      "PLAINTEXT:PLAINTEXT,MORE:PLAINTEXT,PROVEN:SASL_PLAINTEXT",
					"listener.name.proven.sasl.enabled.mechanisms":        "SCRAM-SHA-256",
					"listener.name.proven.scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
				}
			}).Brokers[0]
			proves := proving(t, b.Addr)
			more, proven := fmt.Sprintf("127.0.0.1:%d", lane.Port(t)), fmt.Sprintf("127.0.0.1:%d", lane.Port(t))
			alterBroker(t, b.Addr, "1", change("listeners", kmsg.IncrementalAlterConfigOpSet, "PLAINTEXT://"+b.Addr+",MORE://"+more+",PROVEN://"+proven))
			awaitPublished(t, more)
			awaitPublished(t, proven, proves)
			holding, err := net.Dial("tcp", more)
			require.NoError(t, err)
			defer func() { _ = holding.Close() }()

			alterBroker(t, b.Addr, "1", change("listeners", kmsg.IncrementalAlterConfigOpSet, "PLAINTEXT://"+b.Addr+",PROVEN://"+proven))
			require.NoError(t, holding.SetReadDeadline(time.Now().Add(patience)))
			_, err = holding.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "who came by a listener that is gone is sent away")
			awaitRefused(t, more)
			awaitPublished(t, proven, proves)

			alterBroker(t, b.Addr, "1", change("listeners", kmsg.IncrementalAlterConfigOpDelete, ""))
			awaitRefused(t, proven)
			awaitPublished(t, b.Addr)
		})
	}
}

// What is set for all brokers of unclean elections counts for a controller that has just started, too.
func TestUncleanElectionsForAllOutliveTheController(t *testing.T) {
	zookeeper := zktest.Embedded(t).Addr()
	c := cluster.Start(t, zookeeper, 2, map[string]string{"controlled.shutdown.enable": "false", "zookeeper.session.timeout.ms": "3000"})
	first, second := c.Brokers[0], c.Brokers[1]
	alterBroker(t, first.Addr, "", change("unclean.leader.election.enable", kmsg.IncrementalAlterConfigOpSet, "true"))
	createTopic(t, first.Addr, "unclean", 1, 2)
	c.WaitWhole(t, "unclean", 1, 2)
	second.Stop(t)
	known := dial(t, first.Addr)
	eventually(t, func() bool {
		p := describe(known, "unclean").Topics[0].Partitions
		return len(p) == 1 && p[0].Leader == 1 && len(p[0].ISR) == 1
	}, "the first leads alone")
	first.Stop(t)
	z := openTree(t, zookeeper)
	for _, told := range z.children(zkstate.ConfigChangesPath) { // as after a quarter of an hour
		_, err := z.one(zkstate.Delete(zkstate.ConfigChangesPath+"/"+told, zkstate.AnyVersion))
		require.NoError(t, err)
	}
	second.Start(t)
	second.WaitReady(t)
	awaitLeaders(t, dial(t, second.Addr), "unclean", 1)
}

// What is set for a broker, or for all, counts at once for topics that say nothing of their own, and no longer when it is taken back.
func TestDefaultsOfTopicsChangeWhileTheBrokerRuns(t *testing.T) {
	now := time.Now().UnixMilli()
	tells := func(code int16, records ...record) func(c *conn, topic string) bool {
		return func(c *conn, topic string) bool {
			return produce(c, 9, topic, 0, -1, batch{records: records}.encode(c.t)).ErrorCode == code
		}
	}
	large := plainly(now, strings.Repeat("x", 6000))
	effects := map[string]func(c *conn, topic string) bool{
		"message.max.bytes=1000":                          tells(kerr.MessageTooLarge.Code, large...),
		"log.segment.bytes=1000":                          tells(kerr.RecordListTooLarge.Code, large...),
		"log.cleanup.policy=compact":                      tells(kerr.InvalidRecord.Code, plainly(now, "without a key")...),
		"log.message.timestamp.before.max.ms=1000":        tells(kerr.InvalidTimestamp.Code, plainly(now-int64(time.Hour/time.Millisecond), "x")...),
		"log.message.timestamp.after.max.ms=3600000":      tells(kerr.InvalidTimestamp.Code, plainly(now+2*int64(time.Hour/time.Millisecond), "x")...),
		"log.message.timestamp.difference.max.ms=3600000": tells(kerr.InvalidTimestamp.Code, plainly(now-2*int64(time.Hour/time.Millisecond), "x")...),
		"log.message.timestamp.type=LogAppendTime": func(c *conn, topic string) bool {
			return produce(c, 9, topic, 0, -1, batch{records: plainly(now, "x")}.encode(c.t)).LogAppendTime >= 0
		},
		"compression.type=gzip": func(c *conn, topic string) bool {
			at := stored(c, topic, 0, batch{records: plainly(now, "x")})
			const attributes = 22 // of a batch, their lower byte
			return fetch(c, topic, 0, at).RecordBatches[attributes]&7 == 1
		},
		"log.message.downconversion.enable=false": func(c *conn, topic string) bool {
			at := stored(c, topic, 0, batch{records: plainly(now, "x")})
			return ask[*kmsg.FetchResponse](c, fetchRequest(2, topic, 0, at, 1<<20)).Topics[0].Partitions[0].ErrorCode == kerr.UnsupportedVersion.Code
		},
	}
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		for setting, effect := range effects {
			name, to, _ := strings.Cut(setting, "=")
			for _, broker := range []string{"", "1"} {
				topic := newTopic(t, addr, 1)
				require.False(t, effect(c, topic), setting)
				alterBroker(t, addr, broker, change(name, kmsg.IncrementalAlterConfigOpSet, to))
				eventually(t, func() bool { return effect(c, topic) }, "%s of broker %q", setting, broker)
				alterBroker(t, addr, broker, change(name, kmsg.IncrementalAlterConfigOpDelete, ""))
				eventually(t, func() bool { return !effect(c, topic) }, "%s of broker %q taken back", setting, broker)
			}
		}
	})
}
