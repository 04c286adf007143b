package commitlog

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
	"barnabas/integration/lane"
)

// TestKafkasDumpToolReadsWhatWeWrite gives every file of a log of ours, closed and crashed, to kafka.tools.DumpLogSegments
// of Apache Kafka 3.9.1, and compares what it says of each batch with what we wrote.
func TestKafkasDumpToolReadsWhatWeWrite(t *testing.T) {
	java, lib := lane.Java(t), lane.KafkaJars(t, "3.9.1")
	dir := t.TempDir()
	c := smallConfig()
	c.IndexInterval = 512
	m := openManager(t, vfs.OS, c, newClock(), dir)
	l := m.log()
	var want []string
	note := func(info AppendInfo, codec record.Codec, txn, control bool) {
		want = append(want, fmt.Sprintf("%d-%d %d %s %v %v", info.FirstOffset, info.LastOffset, info.Count, codec, txn, control))
	}
	seq := int32(0)
	for i := range 60 {
		codec := record.Codec(i % 5)
		note(produce(t, l, batchSpec{count: 1 + i%7, size: 150, ts: 1_700_000_000_000 + int64(i), codec: codec}), codec, false, false)
		info := produce(t, l, batchSpec{count: 2, size: 20, ts: 1_700_000_000_000, codec: codec, pid: 5, seq: seq, txn: true})
		seq += 2
		note(info, codec, true, false)
		if i%10 == 9 {
			b := record.NewEndTxnBatch(record.EndTxnMarker{Type: record.ControlType(i / 10 % 2)}, 5, 0, 1_700_000_000_001)
			info, err := l.AppendAsLeader(b, 0, AppendOptions{Origin: Coordinator})
			require.NoError(t, err)
			note(info, record.None, true, true)
		}
	}
	require.NoError(t, l.AssignEpochStart(3, l.EndOffset()))
	require.Greater(t, l.Segments(), 1)
	require.NoError(t, m.Close())

	var logs, others []string
	for _, suffix := range []string{indexSuffix, timeSuffix, snapshotSuffix, txnSuffix} {
		found, err := filepath.Glob(filepath.Join(dir, "topic-0", "*"+suffix))
		require.NoError(t, err)
		require.NotEmpty(t, found, suffix)
		others = append(others, found...)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "topic-0", "*"+logSuffix))
	require.NoError(t, err)
	dump := func(args ...string) string {
		out, err := exec.Command(java, append([]string{"-cp", filepath.Join(lib, "*"), "kafka.tools.DumpLogSegments"}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	text := dump("--files", strings.Join(logs, ","))
	var got []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "baseOffset: ") {
			continue
		}
		require.Contains(t, line, "isvalid: true")
		f := map[string]string{}
		words := strings.Fields(line)
		for i := 0; i+1 < len(words); i += 2 {
			f[words[i]] = words[i+1]
		}
		got = append(got, fmt.Sprintf("%s-%s %s %s %s %s", f["baseOffset:"], f["lastOffset:"], f["count:"], f["compresscodec:"],
			f["isTransactional:"], f["isControl:"]))
	}
	require.Equal(t, want, got)

	text = dump("--index-sanity-check", "--files", strings.Join(others, ","))
	for _, bad := range []string{"Mismatch", "not found", "Exception", "out of order"} {
		require.NotContains(t, text, bad)
	}
	require.Contains(t, text, "producerId: 5 producerEpoch: 0")
	require.Contains(t, text, "passed sanity check")
}
