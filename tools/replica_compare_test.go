package tools

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/admin/plan"
	"barnabas/broker/record"
)

// batchOf is a batch of n records from an offset on.
func batchOf(t *testing.T, offset int64, n int, value string) []byte {
	t.Helper()
	b := record.NewBuilder(record.BuilderOptions{BaseOffset: offset})
	for range n {
		b.Append(1, nil, []byte(value))
	}
	batch, err := b.Build()
	require.NoError(t, err)
	return batch
}

func TestReplicasAreComparedBatchByBatch(t *testing.T) {
	p := plan.Partition{Topic: "t", ID: 3}
	ab := append(batchOf(t, 5, 2, "a"), batchOf(t, 7, 1, "b")...)
	ax := append(batchOf(t, 5, 2, "a"), batchOf(t, 7, 1, "x")...)
	longer := batchOf(t, 5, 3, "a")
	for name, c := range map[string]struct {
		held        []replicaPiece
		next        int64
		differences string
		fatal       bool
	}{
		"the same":                         {held: []replicaPiece{{1, 8, 0, ab}, {2, 8, 0, ab}}, next: 8},
		"only below the high watermark":    {held: []replicaPiece{{1, 8, 0, ab}, {2, 7, 0, ab}}, next: 7},
		"one is behind":                    {held: []replicaPiece{{1, 8, 0, ab}, {2, 8, 0, batchOf(t, 5, 2, "a")}}, next: 7},
		"one did not answer":               {held: []replicaPiece{{1, 8, 0, ab}, {replica: 2}}, next: 5},
		"a batch is cut off":               {held: []replicaPiece{{1, 8, 0, ab}, {2, 8, 0, ab[:len(ab)-1]}}, next: 7},
		"the beginning was deleted":        {held: []replicaPiece{{1, 8, 7, nil}, {2, 8, 6, ab}}, next: 7},
		"another record":                   {held: []replicaPiece{{1, 8, 0, ab}, {2, 8, 0, ax}}, next: 8, differences: "partition t-3 has unmatched checksum at offset 7; replica 1's checksum "},
		"another number of records":        {held: []replicaPiece{{1, 9, 0, ab}, {2, 9, 0, longer}}, next: 5, differences: "partition t-3: replica 1's offset 6 doesn't match replica 2's offset 7", fatal: true},
		"a partition with a lone replica":  {held: []replicaPiece{{1, 8, 0, ab}}, next: 8},
		"what is there is no batch at all": {held: []replicaPiece{{1, 8, 0, []byte("nonsense, and more of it than a batch's head has")}, {2, 8, 0, ab}}, next: 5},
	} {
		t.Run(name, func(t *testing.T) {
			next, differences, fatal := compareHeld(p, 5, c.held)
			assert.Equal(t, c.next, next)
			assert.Equal(t, c.fatal, fatal)
			if c.differences == "" {
				assert.Empty(t, differences)
			} else {
				require.Len(t, differences, 1)
				assert.Contains(t, differences[0], c.differences)
			}
		})
	}
}

func TestLatenciesAreSummedUp(t *testing.T) {
	assert.Equal(t, "Avg latency: 2.5000 ms\n\nPercentiles: 50th = 3, 99th = 4, 99.9th = 4\n",
		latencyLines([]time.Duration{4 * time.Millisecond, time.Millisecond, 3 * time.Millisecond, 2 * time.Millisecond}))
}
