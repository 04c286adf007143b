package broker

import (
	"strconv"
	"strings"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
	"barnabas/config"
)

// logConfig is the effective configuration of a topic's logs: the topic's own settings over the broker's. Both were checked when they were accepted; a value in ZooKeeper that
// is no longer legal counts as absent, as a broker must come up whatever stands there.
func logConfig(broker *config.Values, topic map[string]string) commitlog.Config {
	get := func(name string) string {
		if value, ok := topic[name]; ok && config.Topic.Lookup(name).Check(value) == nil {
			return strings.TrimSpace(value)
		}
		value, _ := broker.TopicDefault(name)
		return value
	}
	long := func(name string) int64 {
		n, _ := strconv.ParseInt(get(name), 10, 64)
		return n
	}
	truth := func(name string) bool { return strings.EqualFold(get(name), "true") }
	ratio, _ := config.ParseDouble(get("min.cleanable.dirty.ratio"))

	c := commitlog.Config{
		SegmentBytes:           int32(long("segment.bytes")),
		SegmentMs:              long("segment.ms"),
		SegmentJitterMs:        long("segment.jitter.ms"),
		SegmentIndexBytes:      int32(long("segment.index.bytes")),
		IndexInterval:          int32(long("index.interval.bytes")),
		RetentionMs:            long("retention.ms"),
		RetentionBytes:         long("retention.bytes"),
		FileDeleteDelayMs:      long("file.delete.delay.ms"),
		FlushMessages:          long("flush.messages"),
		FlushMs:                long("flush.ms"),
		MaxMessageBytes:        int32(long("max.message.bytes")),
		Preallocate:            truth("preallocate"),
		MinCleanableDirtyRatio: ratio,
		DeleteRetentionMs:      long("delete.retention.ms"),
		MinCompactionLagMs:     long("min.compaction.lag.ms"),
		MaxCompactionLagMs:     long("max.compaction.lag.ms"),
		Format:                 messageFormat(get("message.format.version"), broker.ProtocolVersion("inter.broker.protocol.version")),
		DownConversion:         truth("message.downconversion.enable"),
		Compression:            compression(get, long),
		LogAppendTime:          get("message.timestamp.type") == "LogAppendTime",
		UncleanElection:        truth("unclean.leader.election.enable"),
		MinInsync:              int32(long("min.insync.replicas")),
		LeaderThrottle:         get("leader.replication.throttled.replicas"),
		FollowerThrottle:       get("follower.replication.throttled.replicas"),
	}
	for _, policy := range config.SplitList(get("cleanup.policy")) {
		c.CleanupDelete = c.CleanupDelete || policy == "delete"
		c.CleanupCompact = c.CleanupCompact || policy == "compact"
	}
	// The older key limits both directions; the newer ones come first where they are set (KIP-937).
	difference := long("message.timestamp.difference.max.ms")
	limit := func(name string) int64 {
		if n := long(name); get(name) != *config.Topic.Lookup(name).Default {
			return n
		}
		return difference
	}
	c.TimestampBefore, c.TimestampAfter = limit("message.timestamp.before.max.ms"), limit("message.timestamp.after.max.ms")
	return c
}

// messageFormat is the format that message.format.version stands for. Brokers of 3.0 and later write batches whatever it
// says, and a format that the brokers' protocol does not know yet is not honoured either (KIP-724).
func messageFormat(version string, ibp config.ProtocolVersion) commitlog.Format {
	v, err := config.ParseProtocolVersion(version)
	switch {
	case err != nil || ibp >= config.V3_0IV1 || v > ibp || v >= config.V0_11_0IV0:
		return commitlog.FormatV2
	case v >= config.V0_10_0IV0:
		return commitlog.FormatV1
	}
	return commitlog.FormatV0
}

// cleanerConfig is how the broker compacts; without log.cleaner.enable it does not.
func cleanerConfig(v *config.Values) commitlog.CleanerConfig {
	c := commitlog.CleanerConfig{
		Threads:           int(v.Int("log.cleaner.threads")),
		DedupeBytes:       v.Int("log.cleaner.dedupe.buffer.size"),
		LoadFactor:        v.Float("log.cleaner.io.buffer.load.factor"),
		BufferBytes:       v.Int("log.cleaner.io.buffer.size"),
		MaxBytesPerSecond: v.Float("log.cleaner.io.max.bytes.per.second"),
		Backoff:           v.Millis("log.cleaner.backoff.ms"),
	}
	if !v.Bool("log.cleaner.enable") {
		c.Threads = 0
	}
	return c
}

func compression(get func(string) string, long func(string) int64) commitlog.Compression {
	switch get("compression.type") {
	case "uncompressed":
		return commitlog.Compression{Codec: record.None}
	case "gzip":
		return commitlog.Compression{Codec: record.Gzip, Level: int(long("compression.gzip.level"))}
	case "snappy":
		return commitlog.Compression{Codec: record.Snappy}
	case "lz4":
		return commitlog.Compression{Codec: record.LZ4, Level: int(long("compression.lz4.level"))}
	case "zstd":
		return commitlog.Compression{Codec: record.Zstd, Level: int(long("compression.zstd.level"))}
	default:
		return commitlog.Compression{Producer: true}
	}
}
