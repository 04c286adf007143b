package record

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
)

// judge asks the validator of Apache Kafka 3.9 about batches: a line for each, "ok <max timestamp>" or
// "<error code>|<message>|<index>:<message>..".
const judge = `
import java.io.*;
import java.nio.ByteBuffer;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.*;
import org.apache.kafka.common.requests.ProduceResponse.RecordError;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.*;

public class Judge {
  static final LogValidator.MetricsRecorder METRICS = new LogValidator.MetricsRecorder() {
    public void recordInvalidMagic() {}
    public void recordInvalidOffset() {}
    public void recordInvalidSequence() {}
    public void recordInvalidChecksums() {}
    public void recordNoKeyCompactedTopic() {}
  };
  public static void main(String[] args) throws Exception {
    DataInputStream in = new DataInputStream(new FileInputStream(args[0]));
    while (in.available() > 0) {
      boolean compacted = in.readBoolean(), createTime = in.readBoolean(), coordinator = in.readBoolean();
      long now = in.readLong(), before = in.readLong(), after = in.readLong();
      byte[] batch = new byte[in.readInt()];
      in.readFully(batch);
      Time time = new Time() {
        public long milliseconds() { return now; }
        public long nanoseconds() { return now * 1000000; }
        public void sleep(long ms) {}
        public void waitObject(Object o, Supplier<Boolean> c, long d) {}
      };
      try {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(batch));
        CompressionType type = records.batches().iterator().next().compressionType();
        LogValidator.ValidationResult r = new LogValidator(records, new TopicPartition("t", 3), time, type, Compression.of(type).build(), compacted, (byte) 2,
          createTime ? TimestampType.CREATE_TIME : TimestampType.LOG_APPEND_TIME, before, after, 0,
          coordinator ? AppendOrigin.COORDINATOR : AppendOrigin.CLIENT, MetadataVersion.LATEST_PRODUCTION)
          .validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(0), METRICS, BufferSupplier.NO_CACHING);
        System.out.println("ok " + r.maxTimestampMs);
      } catch (RecordValidationException e) {
        StringBuilder s = new StringBuilder(Errors.forException(e.invalidException()) + "|" + e.invalidException().getMessage() + "|");
        for (RecordError r : e.recordErrors()) s.append(r.batchIndex).append(":").append(r.message).append(";");
        System.out.println(s);
      } catch (Throwable e) {
        System.out.println(Errors.forException(e) + "|" + e.getMessage() + "|");
      }
    }
  }
}`

// ask sends batches with their rules to the judge and returns its lines.
func ask(t *testing.T, list []refusal) []string {
	t.Helper()
	java, jars := lane.Java(t), lane.KafkaJars(t, "3.9.1")
	dir := t.TempDir()
	var in bytes.Buffer
	for _, c := range list {
		for _, flag := range []bool{c.rules.RequireKey, c.rules.CheckTimestamps, c.rules.AllowControl} {
			in.WriteByte(map[bool]byte{true: 1}[flag])
		}
		for _, v := range []int64{c.rules.Now, c.rules.BeforeMax, c.rules.AfterMax} {
			in.Write(binary.BigEndian.AppendUint64(nil, uint64(v)))
		}
		in.Write(binary.BigEndian.AppendUint32(nil, uint32(len(c.batch))))
		in.Write(c.batch)
	}
	source, input := filepath.Join(dir, "Judge.java"), filepath.Join(dir, "batches")
	require.NoError(t, os.WriteFile(source, []byte(judge), 0o644))
	require.NoError(t, os.WriteFile(input, in.Bytes(), 0o644))
	cmd := exec.Command(java, "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(jars, "*"), source, input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	var lines []string
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		lines = append(lines, s.Text())
	}
	require.Len(t, lines, len(list))
	return lines
}

// verdict is our answer in the judge's words.
func verdict(b Batch, r Rules) string {
	res, err := Validate(b, r)
	if err == nil {
		if !r.CheckTimestamps {
			res.MaxTimestamp = r.Now
		}
		return fmt.Sprintf("ok %d", res.MaxTimestamp)
	}
	var inv *Invalid
	if !errors.As(err, &inv) {
		return err.Error()
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s|%s|", inv.Err.Message, inv.Message)
	for _, e := range inv.Records {
		fmt.Fprintf(&s, "%d:%s;", e.Index, e.Message)
	}
	return s.String()
}

// The tables of this package's tests, judged by the original. What differs on purpose: unknown codecs and bytes that do
// not decompress, which are a client's fault and no UNKNOWN_SERVER_ERROR; gaps between offsets; the words for records that
// cannot be read.
func TestKafkasOwnValidatorJudgesAlike(t *testing.T) {
	var list []refusal
	for _, c := range codecs {
		for _, r := range refusals(t, c) {
			switch r.what {
			case "unknown codec", "gap", "base offset", "too few records":
			default:
				list = append(list, r)
			}
		}
		markerless := []refusal{
			{what: "good", batch: good(t, c), rules: create},
			{what: "good, compacted", batch: good(t, c), rules: compacted},
			{what: "no times", batch: build(t, BuilderOptions{Codec: c}, kv(NoTimestamp), kv(NoTimestamp)), rules: create},
			{what: "time before the epoch", batch: build(t, BuilderOptions{Codec: c}, kv(-5)), rules: Rules{Partition: "t-3", CheckTimestamps: true, Now: now, BeforeMax: 1 << 62, AfterMax: 500}},
			{what: "bounds overflow", batch: build(t, BuilderOptions{Codec: c}, kv(1<<62), kv(3)), rules: Rules{Partition: "t-3", CheckTimestamps: true, Now: now, BeforeMax: 1<<63 - 1, AfterMax: 1<<63 - 1}},
			{what: "append time in a topic of create time", batch: build(t, BuilderOptions{Codec: c, AppendTime: &logTime}, kv(1)), rules: create},
			{what: "append time topic", batch: good(t, c), rules: appendTime},
			{what: "producer", batch: build(t, BuilderOptions{Codec: c, Producer: &Producer{ID: 5, Transactional: true}}, kv(now)), rules: create},
			{what: "max timestamp wrong", batch: with(good(t, c), offMaxTimestamp+7, 9), rules: create},
			{what: "marker", batch: NewEndTxnBatch(EndTxnMarker{Type: Commit}, 7, 1, now), rules: fromCoordinator},
			{what: "marker of a client", batch: NewEndTxnBatch(EndTxnMarker{Type: Commit}, 7, 1, now), rules: create},
			{what: "large", batch: bomb(t, c, 200_000, 2), rules: appendTime},
		}
		list = append(list, markerless...)
	}
	for i, line := range ask(t, list) {
		require.Equal(t, line, verdict(list[i].batch, list[i].rules), "%s, %s", list[i].what, list[i].batch.Codec())
	}
}

// Broken records: the same are refused, with the same code.
func TestKafkasOwnValidatorRefusesTheSameBrokenRecords(t *testing.T) {
	var list []refusal
	for name, raw := range brokenRecords() {
		list = append(list, refusal{what: name, batch: batchOfRaw(t, None, 1, raw), rules: appendTime})
	}
	for i, line := range ask(t, list) {
		got := verdict(list[i].batch, list[i].rules)
		require.False(t, strings.HasPrefix(line, "ok") || strings.HasPrefix(got, "ok"), "%s: %q, %q", list[i].what, line, got)
	}
}
