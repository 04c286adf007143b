package dumplog

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
)

func TestBatchesOfEveryFormatAreRead(t *testing.T) {
	inDataDir(t, "2.8.2")
	for file, want := range map[string]struct {
		magic   int8
		records int
	}{"fmt-v0-gzip-0": {0, 500}, "fmt-v1-lz4-0": {1, 500}, "fmt-v2-zstd-0": {2, 500}} {
		records, next := 0, int64(0)
		rest, err := Batches(filepath.Join("clean", file, "00000000000000000000.log"), func(b Batch) error {
			assert.Equal(t, want.magic, b.Magic)
			assert.True(t, b.Valid)
			assert.Equal(t, next, b.BaseOffset, file)
			next = b.LastOffset + 1
			return b.Records(func(record.Record) error { records++; return nil })
		})
		require.NoError(t, err)
		assert.Zero(t, rest)
		assert.Equal(t, want.records, records, file)
	}
	_, err := Batches("clean/nope.log", nil)
	assert.Error(t, err)
}

func FuzzBatches(f *testing.F) {
	whole := record.NewBuilder(record.BuilderOptions{Codec: record.Gzip})
	whole.Append(1, []byte("k"), []byte("value"), record.Header{Key: "h"})
	batch, err := whole.Build()
	require.NoError(f, err)
	f.Add([]byte(batch))
	f.Add([]byte(slices.Concat(batch, batch[:30])))
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(t.TempDir(), "0.log")
		require.NoError(t, os.WriteFile(name, data, 0o600))
		read := int64(0)
		rest, err := Batches(name, func(b Batch) error {
			read += b.Size
			_ = b.Records(func(record.Record) error { return nil })
			return nil
		})
		if err == nil {
			require.Equal(t, int64(len(data)), read+rest)
		}
	})
}
