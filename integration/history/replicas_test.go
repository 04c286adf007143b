package history

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
)

func logOf(t *testing.T, epoch int32, values ...string) []byte {
	t.Helper()
	var log []byte
	for i, v := range values {
		builder := record.NewBuilder(record.BuilderOptions{})
		builder.Append(int64(i), nil, []byte(v))
		batch, err := builder.Build()
		require.NoError(t, err)
		record.Batch(batch).SetBaseOffset(int64(i))
		record.Batch(batch).SetPartitionLeaderEpoch(epoch)
		log = append(log, batch...)
	}
	return log
}

func replica(t *testing.T, segments map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a-0"), 0o700))
	for name, data := range segments {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a-0", name), data, 0o600))
	}
	return dir
}

func TestReplicasThatDifferAreFound(t *testing.T) {
	whole := logOf(t, 1, "x", "y", "z")
	one := len(whole) / 3
	reference := replica(t, map[string][]byte{"00000000000000000000.log": whole})
	for _, c := range []struct {
		name     string
		segments map[string][]byte
		want     string
	}{
		{"equal", map[string][]byte{"00000000000000000000.log": whole}, ""},
		{"equal in other segments", map[string][]byte{"00000000000000000000.log": whole[:one], "00000000000000000001.log": whole[one:]}, ""},
		{"shorter", map[string][]byte{"00000000000000000000.log": whole[:2*one]}, "the second ends where the first has offset 2"},
		{"longer", map[string][]byte{"00000000000000000000.log": logOf(t, 1, "x", "y", "z", "!")}, "the first ends where the second has offset 3"},
		{"another record", map[string][]byte{"00000000000000000000.log": logOf(t, 1, "x", "Y", "z")}, "offsets 1 to 1"},
		{"another leader epoch", map[string][]byte{"00000000000000000000.log": append(append([]byte(nil), whole[:2*one]...), logOf(t, 2, "x", "y", "z")[2*one:]...)}, "offsets 2 to 2 of epoch 1, and 2 to 2 of epoch 2"},
		{"half a batch at the end", map[string][]byte{"00000000000000000000.log": append(append([]byte(nil), whole...), 0, 0)}, "what follows the last whole batch"},
		{"no segment", nil, "0 segments"},
	} {
		t.Run(c.name, func(t *testing.T) {
			faults := CompareReplicas([]string{reference, replica(t, c.segments)}, "a-0")
			if c.want == "" {
				require.Empty(t, faults)
				return
			}
			require.Len(t, faults, 1)
			require.Contains(t, faults[0], c.want)
		})
	}
}
