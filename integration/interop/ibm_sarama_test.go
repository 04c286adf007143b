package interop

import (
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
)

// The two homes of sarama are one library at different ages, and both are in use.

func ibmSaramaConfig(codec string) *sarama.Config {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_8_0_0
	cfg.Producer.Return.Successes = true
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	cfg.Producer.Compression = map[string]sarama.CompressionCodec{"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD}[codec]
	cfg.Net.MaxOpenRequests = 1
	cfg.Metadata.Retry.Max = 100 // the topic is made by being looked at, which may take longer than three looks on a busy machine
	return cfg
}

func ibmSaramaProduce(t *testing.T, bootstrap, topic, codec string, n int) {
	p, err := sarama.NewAsyncProducer(strings.Split(bootstrap, ","), ibmSaramaConfig(codec))
	require.NoError(t, err)
	go func() {
		for i := range n {
			p.Input() <- &sarama.ProducerMessage{Topic: topic, Key: sarama.ByteEncoder(keyOf(i)), Value: sarama.ByteEncoder(valueOf(i))}
		}
	}()
	for range n {
		select {
		case <-p.Successes():
		case err := <-p.Errors():
			t.Fatal(err)
		case <-time.After(patience):
			t.Fatal("no answer for a minute")
		}
	}
	require.NoError(t, p.Close())
}

func ibmSaramaConsume(t *testing.T, bootstrap, topic string, n int) {
	c, err := sarama.NewConsumer(strings.Split(bootstrap, ","), ibmSaramaConfig("none"))
	require.NoError(t, err)
	defer c.Close()
	pc, err := c.ConsumePartition(topic, 0, sarama.OffsetOldest)
	require.NoError(t, err)
	defer pc.Close()
	seen := checker{topic: topic}
	for seen.next < n {
		select {
		case m := <-pc.Messages():
			require.NoError(t, seen.saw(m.Key, m.Value))
		case <-time.After(patience):
			t.Fatalf("nothing for a minute after %d records", seen.next)
		}
	}
}
