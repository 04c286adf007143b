package txn

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
)

// kafkasRecords are the batches of __transaction_state in a data directory that
// Apache Kafka wrote.
func kafkasRecords(t *testing.T, version string) (batches []record.Batch) {
	f, err := os.Open("../commitlog/testdata/kafka/" + version + "-clean.tar.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return batches
		}
		require.NoError(t, err)
		if !strings.Contains(h.Name, "/__transaction_state-") || !strings.HasSuffix(h.Name, ".log") {
			continue
		}
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		for len(data) > 0 {
			b, rest, err := record.Next(data)
			require.NoError(t, err)
			batches = append(batches, b)
			data = rest
		}
	}
}

func TestRecordsOfKafkaAreReadAndWrittenTheSame(t *testing.T) {
	for _, version := range []string{"2.8.2", "3.9.1"} {
		seen := map[State]int{}
		l := NewLoader(record.Limits{})
		for _, b := range kafkasRecords(t, version) {
			l.Add(record.Entry(b))
			for r, err := range b.Records(record.Limits{}) {
				require.NoError(t, err)
				id, err := readKey(r.Key)
				require.NoError(t, err)
				assert.Equal(t, r.Key, recordKey(id))
				if r.Value == nil {
					continue
				}
				s, err := readValue(r.Value)
				require.NoError(t, err)
				assert.Equal(t, r.Value, recordValue(&s), "%s: %+v", id, s)
				seen[s.state]++
			}
		}
		require.NoError(t, l.First)
		for _, s := range []State{Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort} {
			assert.NotZero(t, seen[s], "%s: %s", version, s)
		}
		core := NewCore(CoreConfig{}, 0)
		core.Loaded(0, l)
		assert.NotZero(t, len(core.ids))
	}
}

func FuzzRecordsOfTheTransactionTopic(f *testing.F) {
	s := status{producer: Producer{1, 2}, state: Ongoing, partitions: []TopicPartition{{"a", 0}, {"a", 1}, {"b", 0}}}
	f.Add(recordKey("id"), recordValue(&s))
	f.Add([]byte{0, 1}, []byte{0, 1, 0})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if id, err := readKey(key); err == nil {
			again, err := readKey(recordKey(id))
			require.NoError(t, err)
			require.Equal(t, id, again)
		}
		if s, err := readValue(value); err == nil {
			again, err := readValue(recordValue(&s))
			require.NoError(t, err)
			require.Equal(t, s, again)
		}
	})
}
