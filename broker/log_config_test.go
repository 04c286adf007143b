package broker

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
	"barnabas/config"
)

func values(t *testing.T, set map[string]string) *config.Values {
	t.Helper()
	v, err := config.New(set)
	require.NoError(t, err)
	return v
}

func TestALogWithoutAnySettingIsAsKafkaWouldHaveIt(t *testing.T) {
	assert.Equal(t, commitlog.DefaultConfig(), logConfig(values(t, nil), nil))
}

func TestATopicsOwnSettingsComeBeforeTheBrokers(t *testing.T) {
	v := values(t, map[string]string{"log.retention.hours": "1", "log.segment.bytes": "1000000", "min.insync.replicas": "2", "log.cleanup.policy": "compact"})
	c := logConfig(v, map[string]string{"retention.ms": "-1", "cleanup.policy": "compact,delete", "compression.type": "zstd", "compression.zstd.level": "7", "message.timestamp.type": "LogAppendTime"})
	assert.EqualValues(t, -1, c.RetentionMs)
	assert.EqualValues(t, 1_000_000, c.SegmentBytes)
	assert.EqualValues(t, 2, c.MinInsync)
	assert.True(t, c.CleanupCompact && c.CleanupDelete && c.LogAppendTime)
	assert.Equal(t, commitlog.Compression{Codec: record.Zstd, Level: 7}, c.Compression)
	assert.EqualValues(t, 3_600_000, logConfig(v, nil).RetentionMs)
}

func TestAnIllegalSettingInZooKeeperCountsAsAbsent(t *testing.T) {
	c := logConfig(values(t, nil), map[string]string{"segment.bytes": "many", "retention.ms": "-7", "min.insync.replicas": "3"})
	assert.Equal(t, commitlog.DefaultConfig().SegmentBytes, c.SegmentBytes)
	assert.Equal(t, commitlog.DefaultConfig().RetentionMs, c.RetentionMs)
	assert.EqualValues(t, 3, c.MinInsync)
}

// KIP-937: the old limit holds both ways, unless a newer one says otherwise.
func TestTimestampLimitsOldAndNew(t *testing.T) {
	c := logConfig(values(t, nil), map[string]string{"message.timestamp.difference.max.ms": "1000"})
	assert.Equal(t, []int64{1000, 1000}, []int64{c.TimestampBefore, c.TimestampAfter})
	c = logConfig(values(t, nil), map[string]string{"message.timestamp.difference.max.ms": "1000", "message.timestamp.after.max.ms": "5"})
	assert.Equal(t, []int64{1000, 5}, []int64{c.TimestampBefore, c.TimestampAfter})
	c = logConfig(values(t, nil), nil)
	assert.Equal(t, []int64{math.MaxInt64, math.MaxInt64}, []int64{c.TimestampBefore, c.TimestampAfter})
}

func TestDynamicSettingsOfBrokersLieOverTheFile(t *testing.T) {
	v, err := layered(values(t, map[string]string{"log.segment.bytes": "1000000", "broker.id": "1"}),
		map[string]string{"log.segment.bytes": "2000000", "log.retention.ms": "5", "broker.id": "9"}, map[string]string{"log.retention.ms": "6", "message.max.bytes": "none"})
	require.NoError(t, err)
	assert.EqualValues(t, 2_000_000, v.Int("log.segment.bytes"))
	assert.EqualValues(t, 6, v.Int("log.retention.ms"), "this broker's own layer is above that of all")
	assert.EqualValues(t, 1, v.Int("broker.id"), "a read-only key stays as the file has it")
	assert.EqualValues(t, 1048588, v.Int("message.max.bytes"), "what the table refuses is left out")
}

// KIP-724: brokers of 3.0 and later write batches whatever the setting says.
func TestTheMessageFormatIsHonouredBelowProtocolVersion30(t *testing.T) {
	for _, c := range []struct {
		ibp, broker, topic string
		want               commitlog.Format
	}{
		{"3.9", "0.9.0", "0.10.2", commitlog.FormatV2},
		{"3.0", "0.9.0", "", commitlog.FormatV2},
		{"2.8", "2.8", "", commitlog.FormatV2},
		{"2.8", "0.10.2", "", commitlog.FormatV1},
		{"2.8", "0.10.0", "0.9.0", commitlog.FormatV0},
		{"2.8", "0.8.2", "0.11.0", commitlog.FormatV2},
		{"2.4", "0.9.0", "2.8", commitlog.FormatV2}, // newer than the brokers speak: not honoured
	} {
		topic := map[string]string{}
		if c.topic != "" {
			topic["message.format.version"] = c.topic
		}
		v := values(t, map[string]string{"inter.broker.protocol.version": c.ibp, "log.message.format.version": c.broker})
		assert.Equal(t, c.want, logConfig(v, topic).Format, "%+v", c)
	}
	assert.False(t, logConfig(values(t, nil), map[string]string{"message.downconversion.enable": "false"}).DownConversion)
}
