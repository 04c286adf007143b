package commitlog

import (
	"math"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// Config holds the settings of one log: the topic's own where it has them, else the broker's defaults. Names follow
// Kafka's topic configuration keys.
type Config struct {
	SegmentBytes      int32 // segment.bytes
	SegmentMs         int64 // segment.ms
	SegmentJitterMs   int64 // segment.jitter.ms
	SegmentIndexBytes int32 // segment.index.bytes
	IndexInterval     int32 // index.interval.bytes
	RetentionMs       int64 // retention.ms; negative: without limit
	RetentionBytes    int64 // retention.bytes; negative: without limit
	FileDeleteDelayMs int64 // file.delete.delay.ms
	FlushMessages     int64 // flush.messages
	FlushMs           int64 // flush.ms
	MaxMessageBytes   int32 // max.message.bytes, for one batch
	Preallocate       bool  // preallocate

	CleanupDelete  bool // cleanup.policy holds delete
	CleanupCompact bool // cleanup.policy holds compact

	MinCleanableDirtyRatio float64 // min.cleanable.dirty.ratio
	DeleteRetentionMs      int64   // delete.retention.ms
	MinCompactionLagMs     int64   // min.compaction.lag.ms
	MaxCompactionLagMs     int64   // max.compaction.lag.ms

	Format           Format // message.format.version, as far as inter.broker.protocol.version honours it
	DownConversion   bool   // message.downconversion.enable
	Compression      Compression
	LogAppendTime    bool  // message.timestamp.type=LogAppendTime
	TimestampBefore  int64 // message.timestamp.before.max.ms
	TimestampAfter   int64 // message.timestamp.after.max.ms
	UncleanElection  bool  // unclean.leader.election.enable, passed through
	MinInsync        int32 // min.insync.replicas, passed through
	LeaderThrottle   string
	FollowerThrottle string
}

// Format is the format in which a log keeps what is appended to it: the version of batches, or of messages before them.
type Format int8

// The formats. The zero value is the present one, and the only one from inter.broker.protocol.version 3.0 on (KIP-724).
const (
	FormatV2 Format = iota // Kafka 0.11
	FormatV0               // Kafka 0.8
	FormatV1               // Kafka 0.10
)

// Magic is the number that entries of the format carry.
func (f Format) Magic() int8 {
	switch f {
	case FormatV0:
		return 0
	case FormatV1:
		return 1
	}
	return 2
}

// Compression is the topic's compression.type with the level of its codec.
type Compression struct {
	Producer bool // compression.type=producer: a batch stays as the client sent it
	Codec    record.Codec
	Level    int
}

// DefaultConfig returns the settings of a Kafka 3.9 broker without any configuration.
func DefaultConfig() Config {
	return Config{
		SegmentBytes:           1 << 30,
		SegmentMs:              7 * 24 * 3600 * 1000,
		SegmentIndexBytes:      10 << 20,
		IndexInterval:          4096,
		RetentionMs:            7 * 24 * 3600 * 1000,
		RetentionBytes:         -1,
		FileDeleteDelayMs:      60000,
		FlushMessages:          math.MaxInt64,
		FlushMs:                math.MaxInt64,
		MaxMessageBytes:        1048588,
		CleanupDelete:          true,
		DownConversion:         true,
		MinCleanableDirtyRatio: 0.5,
		DeleteRetentionMs:      24 * 3600 * 1000,
		MaxCompactionLagMs:     math.MaxInt64,
		Compression:            Compression{Producer: true},
		TimestampBefore:        math.MaxInt64,
		TimestampAfter:         math.MaxInt64,
		MinInsync:              1,
	}
}

// ManagerConfig is what a Manager needs to know. Dirs, FS, Log and Now have to be set; zero durations take the
// defaults of Kafka 3.9.
type ManagerConfig struct {
	Dirs        []string
	FS          vfs.FS
	Default     Config
	TopicConfig func(topic string) Config // nil: Default for all

	RecoveryThreadsPerDir         int           // num.recovery.threads.per.data.dir
	RetentionCheck                time.Duration // log.retention.check.interval.ms
	FlushCheck                    time.Duration // log.flush.scheduler.interval.ms
	CheckpointInterval            time.Duration // log.flush.offset.checkpoint.interval.ms; recovery points
	StartOffsetCheckpointInterval time.Duration // log.flush.start.offset.checkpoint.interval.ms
	HighWatermarkInterval         time.Duration // replica.high.watermark.checkpoint.interval.ms
	ProducerIDExpiration          time.Duration // producer.id.expiration.ms
	ProducerIDCheck               time.Duration // producer.id.expiration.check.interval.ms

	MaxTransactionTimeout time.Duration // transaction.max.timeout.ms: a sooner end of an open transaction is not late
	MaxDecompressed       int           // bytes that one compressed batch may grow to
	Cleaner               CleanerConfig // log compaction
	BrokerEpoch           func() int64  // written into the marker of a clean shutdown; nil: -1

	Now          func() time.Time
	Log          *logrus.Entry
	OnDirFailure func(dir string, err error) // called once for each directory that fails
	OnLocked     func([]DirInfo)             // called by Open before it reads anything: from now on no other process uses the directories; nil: nobody cares
}
