package commitlog

// The same log, cleaned by Apache Kafka 3.9.1 and by us, must be the same log afterwards: batches, records, producers,
// delete horizons. Several rounds, each on what the other one left in the round before, so that tombstones and markers get their
// horizon and go.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
	"barnabas/integration/lane"
)

// keyedLoad appends to a log what a few producers of a compacted topic might send.
type keyedLoad struct {
	rng    *rand.Rand
	next   map[int64]int32
	txns   map[int64]bool
	keys   int
	values int
}

func (k *keyedLoad) batch(t testing.TB, at int64) (record.Batch, Origin) {
	pid := int64(k.rng.IntN(7))
	if pid >= 4 && k.txns[pid] && k.rng.IntN(3) == 0 {
		k.txns[pid] = false
		return record.NewEndTxnBatch(record.EndTxnMarker{Type: record.ControlType(k.rng.IntN(2))}, pid, 0, at), Coordinator
	}
	o := record.BuilderOptions{Codec: record.Codec(k.rng.IntN(5))}
	if pid > 0 {
		o.Producer = &record.Producer{ID: pid, BaseSequence: k.next[pid], Transactional: pid >= 4}
		k.txns[pid] = pid >= 4
	}
	b := record.NewBuilder(o)
	n := 1 + k.rng.IntN(5)
	for i := range n {
		key := fmt.Appendf(nil, "key-%d", k.rng.IntN(k.keys))
		var value []byte
		if k.rng.IntN(6) > 0 {
			value = fmt.Appendf(nil, "%d:%s", k.rng.Int(), strings.Repeat("v", k.rng.IntN(k.values)))
		}
		var headers []record.Header
		if k.rng.IntN(8) == 0 {
			headers = append(headers, record.Header{Key: "h", Value: []byte("x")}, record.Header{Key: "none"})
		}
		b.Append(at+int64(i), key, value, headers...)
	}
	if pid > 0 {
		k.next[pid] += int32(n)
	}
	batch, err := b.Build()
	require.NoError(t, err)
	return batch, Client
}

// allEntries reads a log from its start to its end.
func allEntries(t testing.TB, l *Log) []record.Entry {
	var out []record.Entry
	for from := l.StartOffset(); from < l.EndOffset(); {
		r, err := l.Read(from, ReadOptions{MaxBytes: 1 << 20, MinOneBatch: true, UpTo: l.EndOffset()})
		require.NoError(t, err)
		data, err := r.Range.ReadAll()
		require.NoError(t, err)
		r.Range.Release()
		if len(data) == 0 {
			return out // compaction has left nothing before the end
		}
		for len(data) > 0 {
			e, rest, err := record.NextEntry(data)
			require.NoError(t, err)
			require.NoError(t, checkEntry(e))
			out, data, from = append(out, e), rest, e.LastOffset()+1
		}
	}
	return out
}

// allBatches is allEntries of format v2.
func allBatches(t testing.TB, l *Log) []record.Batch {
	var out []record.Batch
	for _, e := range allEntries(t, l) {
		if b, ok := e.Batch(); ok {
			out = append(out, b)
		}
	}
	return out
}

// described is all that must agree of what a log holds.
func described(t *testing.T, l *Log) []string {
	var out []string
	for _, b := range allBatches(t, l) {
		horizon := ""
		if b.HasDeleteHorizon() {
			horizon = fmt.Sprint(" horizon ", b.BaseTimestamp())
		}
		out = append(out, fmt.Sprintf("%d-%d epoch %d attributes %x newest %d producer %d/%d sequence %d-%d%s", b.BaseOffset(), b.LastOffset(),
			b.PartitionLeaderEpoch(), b.Attributes(), b.MaxTimestamp(), b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), b.LastSequence(), horizon))
		for r, err := range b.Records(record.Limits{}) {
			require.NoError(t, err)
			out = append(out, fmt.Sprintf("  %d %d %q %q %v %v", r.Offset, r.Timestamp, r.Key, r.Value, r.Value == nil, r.Headers))
		}
	}
	return out
}

func TestKafkaCleansALogToTheSameRecords(t *testing.T) {
	java, jars := lane.Java(t), lane.KafkaJars(t, "3.9.1")
	classes := compileJudge(t, java, jars)
	ours, theirs := filepath.Join(t.TempDir(), "ours"), filepath.Join(t.TempDir(), "theirs")
	clk := &clock{at: time.Now()}
	c := compacted()
	c.SegmentBytes, c.FileDeleteDelayMs, c.DeleteRetentionMs = 6000, 0, 60_000
	load := &keyedLoad{rng: rand.New(rand.NewPCG(5, 6)), next: map[int64]int32{}, txns: map[int64]bool{}, keys: 60, values: 120}
	clean := int64(0)
	for round := range 4 {
		type sent struct {
			data   []byte
			origin Origin
		}
		var batches []sent
		for i := range 250 {
			at := clk.at.UnixMilli() - 1000
			c.LogAppendTime = round == 2 && i > 200
			b, origin := load.batch(t, at)
			batches = append(batches, sent{b, origin})
		}
		for _, dir := range []string{ours, theirs} {
			m := openManager(t, vfs.OS, c, clk, dir)
			l := m.log()
			for _, b := range batches {
				_, err := l.AppendAsLeader(append([]byte(nil), b.data...), 0, AppendOptions{Origin: b.origin})
				require.NoError(t, err)
			}
			l.SetHighWatermark(l.EndOffset())
			if dir == theirs {
				require.NoError(t, m.Close())
				continue
			}
			l.cleaned.Store(clean)
			require.True(t, m.cleanOnce())
			require.NoError(t, l.CleanerError())
			clk.advance(time.Millisecond)
			m.removeDue(clk.at)
			clk.advance(-time.Millisecond)
			require.NoError(t, m.Close())
		}
		clean, _ = kafkaCleans(t, java, jars, classes, filepath.Join(theirs, "topic-0"), clk.at.UnixMilli(), clean, c, 1<<20)

		opened := openManager(t, vfs.OS, c, clk, ours)
		have := described(t, opened.log())
		segments := opened.log().Segments()
		require.NoError(t, opened.Close())
		opened = openManager(t, vfs.OS, c, clk, theirs)
		want := described(t, opened.log())
		require.Equal(t, opened.log().Segments(), segments)
		require.NoError(t, opened.Close())
		require.Equal(t, want, have, "round %d", round)
		clk.advance(2 * time.Minute)
		all := strings.Join(have, "\n")
		require.Contains(t, all, "horizon")
		ours, theirs = theirs, ours // each goes on with what the other has left
	}
	problems, err := Verify(vfs.OS, filepath.Join(ours, "topic-0"))
	require.NoError(t, err)
	require.Empty(t, problems)

	// Kafka's own tool reads what we have left.
	var names []string
	for _, suffix := range []string{logSuffix, indexSuffix, timeSuffix, txnSuffix, snapshotSuffix} {
		found, err := filepath.Glob(filepath.Join(ours, "topic-0", "*"+suffix))
		require.NoError(t, err)
		names = append(names, found...)
	}
	dump := exec.Command(java, "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(jars, "*"), "kafka.tools.DumpLogSegments", "--files", strings.Join(names, ","))
	dump.Stderr = os.Stderr
	text, err := dump.Output()
	require.NoError(t, err)
	for _, bad := range []string{"isvalid: false", "invalid bytes", "Mismatch", "out of order"} {
		require.NotContains(t, string(text), bad)
	}
}
