package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func ack(producer uint32, number uint64, partition int32, offset int64) Ack {
	return Ack{Name{producer, number}, partition, offset}
}

func log(names ...Name) []Read {
	var reads []Read
	for i, n := range names {
		reads = append(reads, Read{n, int64(i)})
	}
	return reads
}

// A judge that finds no fault in a good history is worth as much as the faults that it finds in bad ones.
func TestBadHistoriesAreFound(t *testing.T) {
	a1, a2, a3, b1 := Name{1, 1}, Name{1, 2}, Name{1, 3}, Name{2, 1}
	for _, c := range []struct {
		name  string
		acks  []Ack
		logs  map[int32][]Read
		loose bool
		want  string // part of the only fault; empty: none
	}{
		{"good", []Ack{ack(1, 1, 0, 0), ack(1, 2, 0, 2), ack(2, 1, 0, 1)}, map[int32][]Read{0: log(a1, b1, a2)}, false, ""},
		{"a record that was not acknowledged may be there", []Ack{ack(1, 1, 0, 0)}, map[int32][]Read{0: log(a1, a2)}, false, ""},
		{"or not", []Ack{ack(1, 1, 0, 0), ack(1, 3, 0, 1)}, map[int32][]Read{0: log(a1, a3)}, false, ""},
		{"two producers in any order", []Ack{ack(2, 1, 0, 0), ack(1, 1, 0, 1)}, map[int32][]Read{0: log(b1, a1)}, false, ""},
		{"the log ends before an acknowledged record", []Ack{ack(1, 1, 0, 0), ack(1, 2, 0, 1)}, map[int32][]Read{0: log(a1)}, false, "lost: record 2"},
		{"the partition is empty", []Ack{ack(1, 1, 3, 0)}, map[int32][]Read{}, false, "partition 3: lost"},
		{"another record is at its offset", []Ack{ack(1, 1, 0, 0), ack(1, 2, 0, 1)}, map[int32][]Read{0: log(a1, b1)}, false, "where record 1 of producer 2 is"},
		{"it is at its offset, but in another partition", []Ack{ack(1, 1, 0, 0)}, map[int32][]Read{1: log(a1)}, false, "partition 0: lost"},
		{"nowhere, and no offset was told", []Ack{ack(1, 1, 0, -1)}, map[int32][]Read{0: log(a2)}, false, "is nowhere"},
		{"somewhere, and no offset was told", []Ack{ack(1, 2, 0, -1)}, map[int32][]Read{0: log(a2)}, false, ""},
		{"twice", []Ack{ack(1, 1, 0, 0)}, map[int32][]Read{0: log(a1, b1, a1)}, false, "doubled: record 1 of producer 1 is there again at offset 2"},
		{"twice, in two partitions", nil, map[int32][]Read{0: log(a1), 1: log(a1)}, false, "partition 1: doubled"},
		{"twice, by a producer who was not promised better", []Ack{ack(1, 1, 0, 0)}, map[int32][]Read{0: log(a1, b1, a1)}, true, ""},
		{"out of order", []Ack{ack(1, 2, 0, 0), ack(1, 1, 0, 1)}, map[int32][]Read{0: log(a2, a1)}, false, "order: record 1 of producer 1 at offset 1 comes after its record 2"},
		{"a gap between offsets", nil, map[int32][]Read{0: {{a1, 0}, {a2, 2}}}, false, "gap: offset 0 is followed by 2"},
		{"an offset read twice", nil, map[int32][]Read{0: {{a1, 0}, {a2, 0}}}, false, "gap: offset 0 is followed by 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			faults := Judge(c.acks, c.logs, Promise{Idempotent: !c.loose})
			if c.want == "" {
				require.Empty(t, faults)
				return
			}
			require.Len(t, faults, 1, "%v", faults)
			require.Contains(t, faults[0], c.want)
		})
	}
}

func TestAThousandFaultsAreTenLines(t *testing.T) {
	var acks []Ack
	for i := range 1000 {
		acks = append(acks, ack(1, uint64(i+1), 0, int64(i)))
	}
	faults := Judge(acks, nil, Promise{Idempotent: true})
	require.Len(t, faults, faultsShown+1)
	require.Contains(t, faults[faultsShown], "995 more")
}
