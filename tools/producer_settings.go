package tools

import (
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var producerCodecs = map[string]kgo.CompressionCodec{"": kgo.NoCompression(), "none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}

// producerOptions turns the settings of a Java producer into those of ours; idempotent is the original's default for enable.idempotence.
func producerOptions(settings map[string]string, idempotent bool) ([]kgo.Opt, error) {
	var failed error
	number := func(name string, def int64) int64 {
		text, given := settings[name]
		if !given {
			return def
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			failed = &badArgument{fmt.Sprintf("Invalid value %s for configuration %s: Not a number of type INT", text, name)}
		}
		return n
	}
	const largestBatch = 1 << 30
	opts := []kgo.Opt{
		kgo.AllowAutoTopicCreation(),
		kgo.ProducerLinger(time.Duration(number("linger.ms", 0)) * time.Millisecond),
		// The original sends a record that is larger than its batch size in a batch of its own; ours has one limit for both.
		kgo.ProducerBatchMaxBytes(int32(min(max(number("batch.size", 16384), number("max.request.size", 1<<20)), largestBatch))),
		kgo.MaxBufferedBytes(int(number("buffer.memory", 32<<20))),
		kgo.MaxBufferedRecords(1 << 20),
		kgo.RecordDeliveryTimeout(time.Duration(number("delivery.timeout.ms", 120_000)) * time.Millisecond),
		kgo.ProduceRequestTimeout(time.Duration(number("request.timeout.ms", 30_000)) * time.Millisecond),
	}
	if n := number("retries", -1); n >= 0 {
		opts = append(opts, kgo.RecordRetries(int(n)))
	}
	codec, known := producerCodecs[settings["compression.type"]]
	if !known {
		return nil, &badArgument{"Unknown compression type: " + settings["compression.type"]}
	}
	opts = append(opts, kgo.ProducerBatchCompression(codec))
	switch text := settings["enable.idempotence"]; text {
	case "true":
		idempotent = true
	case "false":
		idempotent = false
	}
	switch acks := settings["acks"]; acks {
	case "0":
		opts, idempotent = append(opts, kgo.RequiredAcks(kgo.NoAck())), false
	case "1":
		opts, idempotent = append(opts, kgo.RequiredAcks(kgo.LeaderAck())), false
	case "", "-1", "all":
	default:
		return nil, &badArgument{"Invalid value " + acks + " for configuration acks: String must be one of: all, -1, 0, 1"}
	}
	if !idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(int(max(number("max.in.flight.requests.per.connection", 5), 1))))
	}
	return opts, failed
}
