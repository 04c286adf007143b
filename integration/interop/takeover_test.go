package interop

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// One broker's id, address, directories and znodes go from Barnabas to Apache Kafka and back, through clean stops and kills: whoever runs reads what the other wrote, byte for byte.
func TestABrokerChangesHandsWithItsDataDirectory(t *testing.T) {
	for _, version := range []string{"3.9.1", "2.8.2"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			lane.KafkaJars(t, version)
			zk := zktest.Real(t)
			settings := map[string]string{"log.segment.bytes": "1048576", "zookeeper.session.timeout.ms": "4000", "auto.create.topics.enable": "true", "log.message.timestamp.type": "CreateTime"}
			if version == "2.8.2" {
				settings["inter.broker.protocol.version"] = "2.8"
			}
			c := cluster.Start(t, zk.Addr(), 1, settings)
			b := c.Brokers[0]
			const n = 30_000
			written := map[string]bool{}
			write := func(prefix string) {
				for _, codec := range codecs {
					topic := prefix + "-" + codec
					franzProduce(t, c.Bootstrap(), topic, codec, n)
					written[topic] = true
				}
			}
			read := func() {
				for topic := range written {
					franzConsume(t, c.Bootstrap(), topic, n)
				}
			}
			kafka := cluster.Kafka(version)
			for step, next := range []struct {
				program cluster.Program
				kill    bool
			}{{kafka, false}, {cluster.Barnabas, false}, {kafka, true}, {cluster.Barnabas, true}, {cluster.Barnabas, true}} {
				write("step" + string(rune('0'+step)))
				read()
				if next.kill {
					b.Kill(t)
					waitUnregistered(t, zk.Addr(), b.ID) // Apache Kafka does not wait for its own old registration to go
				} else {
					b.Stop(t)
				}
				b.Become(next.program)
				b.Start(t)
				b.WaitReady(t)
				read()
			}
			require.Len(t, written, 5*len(codecs))
		})
	}
}

func waitUnregistered(t *testing.T, zookeeper string, id int) {
	t.Helper()
	zk := connect(t, zookeeper)
	defer zk.Close()
	require.Eventually(t, func() bool {
		_, err := zk.One(lane.Patience(t), zkstate.Exists(zkstate.BrokerIDPath(int32(id))))
		return errors.Is(err, zkstate.ErrNoNode)
	}, patience, 50*time.Millisecond)
}

func connect(t *testing.T, zookeeper string) *zkstate.Client {
	t.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	zk, err := zkstate.Connect(zkstate.Config{Servers: zookeeper, SessionTimeout: 10 * time.Second, Log: logrus.NewEntry(quiet)})
	require.NoError(t, err)
	return zk
}

// A directory of before batches, with znodes of before topic ids: what is in it is read, and what comes later is appended to the same segments.
func TestADirectoryOfKafka010IsTakenOver(t *testing.T) {
	lane.KafkaJars(t, "0.10.2.2")
	zk := zktest.Real(t)
	nodes := connect(t, zk.Addr()) // a Java of today lacks what Kafka 0.10 makes cluster ids with
	require.NoError(t, nodes.CreateRecursive(lane.Patience(t), zkstate.ClusterIDPath, zkstate.EncodeClusterID("aaaaaaaaaaaaaaaaaaaaaa")))
	nodes.Close()
	c := cluster.StartProgram(t, cluster.Kafka("0.10.2.2"), zk.Addr(), 1, map[string]string{"zookeeper.session.timeout.ms": "6000", "auto.create.topics.enable": "true"}, func(int) map[string]string { return nil })
	b := c.Brokers[0]
	const topic = "aged"
	want, n := "", 0
	write := func(name string, version sarama.KafkaVersion, codecs []string) {
		saramaAge(version)(t, c.Bootstrap(), topic, codecs)
		for _, codec := range codecs {
			for i := range sentPerAge {
				want += fmt.Sprintf("%s-%s-%d\tvalue %d\n", name, codec, i, i)
				n++
			}
		}
	}
	write("sarama 0.9", sarama.V0_9_0_1, []string{"none", "gzip", "snappy"})
	write("sarama 0.10", sarama.V0_10_2_0, oldCodecs)
	b.Stop(t)
	b.Become(cluster.Barnabas)
	for range 2 {
		b.Start(t)
		b.WaitReady(t)
		requireRead(t, want, saramaRead(sarama.V0_10_2_0)(t, c.Bootstrap(), topic, n))
		requireRead(t, want, saramaRead(sarama.V2_1_0_0)(t, c.Bootstrap(), topic, n))
		write("sarama 0.10", sarama.V0_10_2_0, oldCodecs)
		write("sarama", sarama.V2_1_0_0, oldCodecs)
		requireRead(t, want, saramaRead(sarama.V0_10_2_0)(t, c.Bootstrap(), topic, n))
		requireRead(t, want, saramaRead(sarama.V2_1_0_0)(t, c.Bootstrap(), topic, n))
		b.Kill(t)
	}
}
