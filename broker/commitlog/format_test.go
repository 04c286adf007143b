package commitlog

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// examples are the indented blocks of FORMAT.md, by the heading above them.
func examples(t *testing.T) map[string]string {
	data, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	out := map[string]string{}
	heading := ""
	for _, line := range strings.Split(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "## "); ok {
			heading = rest
		}
		if rest, ok := strings.CutPrefix(line, "    "); ok && !strings.HasPrefix(rest, " ") {
			out[heading] += rest + "\n"
		}
	}
	return out
}

func TestTheExamplesOfTheFormatPageDecodeToWhatItSays(t *testing.T) {
	all := examples(t)
	bytesOf := func(heading string) []byte {
		data, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "").Replace(all[heading]))
		require.NoError(t, err)
		require.NotEmpty(t, data, heading)
		return data
	}
	index := bytesOf("BASE.index")
	offset, pos := offsetEntry(index, 388)
	require.Equal(t, []int64{437, 4165}, []int64{offset, pos})
	offset, pos = offsetEntry(index[offsetEntryBytes:], 388)
	require.Equal(t, []int64{485, 8265}, []int64{offset, pos})
	times := bytesOf("BASE.timeindex")
	require.Len(t, times, 3*timeEntryBytes)
	ts, offset := timeEntry(times[2*timeEntryBytes:], 388)
	require.Equal(t, []int64{0x1a2295c24eb, 492}, []int64{ts, offset})
	aborted, err := parseAborted("page", bytesOf("BASE.txnindex"), 388)
	require.NoError(t, err)
	require.Equal(t, []abortedTx{{1, 410, 450, 451}}, aborted)
	snapshot, err := parseSnapshot("page", bytesOf("OFFSET.snapshot"))
	require.NoError(t, err)
	require.Len(t, snapshot, 1)
	last, _ := snapshot[0].last()
	require.Equal(t, []int64{1, 0, 189, 193, 164}, []int64{snapshot[0].id, int64(snapshot[0].epoch), int64(last.lastSeq), last.lastOffset, snapshot[0].txnStart})
	epochs, err := parseEpochs([]byte(all["leader-epoch-checkpoint"]))
	require.NoError(t, err)
	require.Equal(t, epochList{{0, 0}, {3, 17}}, epochs)
	offsets, err := parseOffsetCheckpoint([]byte(all["The offset checkpoints"]))
	require.NoError(t, err)
	require.Equal(t, map[TopicPartition]int64{{"compacted", 0}: 1200, {"txn", 0}: 493}, offsets)
	id, err := parsePartitionMetadata([]byte(all["partition.metadata"]))
	require.NoError(t, err)
	require.Equal(t, "AfCbXWjdQMKqwpP2LxO3OQ", id.String())
}
