package dumplog

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
	"barnabas/integration/lane"
)

// ourSegment is a log file with everything that we can write: batches of every codec, with and without producer, headers,
// nulls and large values, markers, emptied batches, log append time, delete horizons, and messages of both old formats.
func ourSegment(t *testing.T, legacy bool) []byte {
	t.Helper()
	var out []byte
	next := int64(0)
	add := func(o record.BuilderOptions, empty bool) {
		epoch := int32(3)
		o.BaseOffset, o.LeaderEpoch = next, &epoch
		w := record.NewBuilder(o)
		w.Append(1_700_000_000_000, []byte("key"), []byte("value"), record.Header{Key: "a", Value: []byte("b")}, record.Header{Key: "null"})
		w.Append(1_700_000_000_007, nil, nil)
		w.Append(1_600_000_000_000, []byte{}, []byte(strings.Repeat("a large value ", 10_000)))
		w.SetLastOffset(next + 5)
		b, err := w.Build()
		require.NoError(t, err)
		if empty {
			b = b.WithoutRecords()
		}
		out, next = append(out, b...), b.NextOffset()
	}
	horizon, now := int64(1_800_000_000_000), int64(1_700_000_001_234)
	for c := record.None; c <= record.Zstd; c++ {
		add(record.BuilderOptions{Codec: c}, false)
		add(record.BuilderOptions{Codec: c, AppendTime: &now, Producer: &record.Producer{ID: 9, Epoch: 2, BaseSequence: 1<<31 - 2}}, false)
		add(record.BuilderOptions{Codec: c, DeleteHorizon: &horizon, Producer: &record.Producer{ID: 9, Epoch: 2, BaseSequence: 4, Transactional: true}}, false)
		add(record.BuilderOptions{Codec: c, Producer: &record.Producer{ID: 10, BaseSequence: 4}}, true)
	}
	for _, m := range []record.EndTxnMarker{{Type: record.Abort, CoordinatorEpoch: 1}, {Type: record.Commit, CoordinatorEpoch: 7}} {
		b := record.NewEndTxnBatch(m, 9, 2, now)
		b.SetBaseOffset(next)
		out, next = append(out, b...), next+1
	}
	if !legacy {
		return out
	}
	for _, magic := range []int8{0, 1} {
		for _, c := range []record.Codec{record.None, record.Gzip, record.Snappy} {
			var set []byte
			for i := range int64(3) {
				offset := next + i
				if magic == 1 && c != record.None {
					offset = i
				}
				set = record.AppendMessage(set, magic, record.None, false, offset, 5, []byte("k"), []byte("old value"))
			}
			next += 3
			if c != record.None {
				packed, err := record.Compress(c, record.DefaultLevel, nil, set)
				require.NoError(t, err)
				set = record.AppendMessage(nil, magic, c, false, next-1, 7, nil, packed)
			}
			out = append(out, set...)
		}
	}
	return out
}

// The originals read what we write, and print of it what we print.
func TestKafkaReadsWhatWeWrite(t *testing.T) {
	java := lane.Java(t)
	for _, tool := range []string{"2.8.2", "3.9.1"} {
		t.Run(tool, func(t *testing.T) {
			jars := lane.KafkaJars(t, tool)
			dir := t.TempDir()
			name := filepath.Join(dir, "00000000000000000000.log")
			require.NoError(t, os.WriteFile(name, ourSegment(t, true), 0o644))
			cmd := exec.Command(java, "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8", "-cp", filepath.Join(jars, "*"),
				"kafka.tools.DumpLogSegments", "--files", name, "--print-data-log")
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			require.NoError(t, cmd.Run(), "%s", &stderr)

			got, _, code := run(t, tool, "--files", name, "--print-data-log")
			require.Zero(t, code)
			requireSameText(t, stdout.String(), got)
			require.NotContains(t, got, "isvalid: false")
			require.Greater(t, strings.Count(got, "\n| offset"), 60)
		})
	}
}

func FuzzFiles(f *testing.F) {
	log := []byte(nil)
	for i := range 3 {
		w := record.NewBuilder(record.BuilderOptions{BaseOffset: int64(i), Codec: record.Codec(i)})
		w.Append(5, []byte("k"), []byte("v"))
		b, err := w.Build()
		if err != nil {
			f.Fatal(err)
		}
		log = append(log, b...)
	}
	f.Add(uint8(0), log, "--print-data-log")
	f.Add(uint8(0), log, "--offsets-decoder")
	f.Add(uint8(0), log, "--transaction-log-decoder")
	f.Add(uint8(1), []byte{0, 0, 0, 1, 0, 0, 0, 70}, "--verify-index-only")
	f.Add(uint8(2), []byte{0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1}, "--index-sanity-check")
	f.Add(uint8(3), []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0}, "--deep-iteration")
	f.Add(uint8(4), make([]byte, 34), "--deep-iteration")
	suffixes := []string{".log", ".index", ".timeindex", ".snapshot", ".txnindex"}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte, flag string) {
		dir := t.TempDir()
		for i, suffix := range suffixes {
			content := log
			if i == int(kind)%len(suffixes) {
				content = data
			} else if i > 0 {
				content = nil
			}
			if err := os.WriteFile(filepath.Join(dir, "00000000000000000000"+suffix), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var out, errs bytes.Buffer
		Run([]string{"--files", filepath.Join(dir, "00000000000000000000"+suffixes[int(kind)%len(suffixes)]), flag}, &out, &errs)
	})
}
