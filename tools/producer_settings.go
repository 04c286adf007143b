package tools

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var producerCodecs = map[string]kgo.CompressionCodec{"": kgo.NoCompression(), "none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}

// requiredAcks are the values of acks; only all of them go with idempotence.
var requiredAcks = []named[kgo.Acks]{{"all", kgo.AllISRAcks()}, {"-1", kgo.AllISRAcks()}, {"0", kgo.NoAck()}, {"1", kgo.LeaderAck()}}

// producerOptions turns the settings of a Java producer into those of ours; idempotent is the original's default for enable.idempotence.
func producerOptions(settings map[string]string, idempotent bool) ([]kgo.Opt, error) {
	s := &clientSettings{of: settings}
	opts := []kgo.Opt{
		kgo.AllowAutoTopicCreation(),
		kgo.ProducerLinger(s.millis("linger.ms", 0)),
		kgo.ProducerBatchMaxBytes(batchLimit(s)),
		kgo.MaxBufferedBytes(int(s.number("buffer.memory", 32<<20))),
		kgo.MaxBufferedRecords(1 << 20),
		kgo.RecordDeliveryTimeout(max(s.millis("delivery.timeout.ms", 120_000), time.Second)), // the client takes no less
		kgo.ProduceRequestTimeout(s.millis("request.timeout.ms", 30_000)),
		kgo.RequiredAcks(choice(s, "acks", "all", requiredAcks)),
	}
	if _, given := settings["retries"]; given {
		opts = append(opts, kgo.RecordRetries(int(s.number("retries", 0))))
	}
	codec, known := producerCodecs[settings["compression.type"]]
	if !known {
		return nil, &badArgument{"Unknown compression type: " + settings["compression.type"]}
	}
	opts = append(opts, kgo.ProducerBatchCompression(codec))
	switch settings["enable.idempotence"] {
	case "true":
		idempotent = true
	case "false":
		idempotent = false
	}
	if acks := settings["acks"]; !idempotent || acks == "0" || acks == "1" {
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(int(max(s.number("max.in.flight.requests.per.connection", 5), 1))))
	}
	return opts, s.fault
}

// batchLimit is how large a batch may become, in bytes. The original sends a record that is larger than its batch size in a batch of its own; ours has one limit for both.
func batchLimit(s *clientSettings) int32 {
	const largest = 1 << 30
	return int32(min(max(s.number("batch.size", 16384), s.number("max.request.size", 1<<20)), largest))
}
