package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wrote is a transaction of producer 1 with one record per partition, numbered from first.
func wrote(fate Fate, first uint64, partitions ...int32) Transaction {
	t := Transaction{ID: "x", Fate: fate}
	for i, p := range partitions {
		t.Records = append(t.Records, Placed{Name{1, first + uint64(i)}, p})
	}
	return t
}

func reads(numbers ...uint64) (list []Read) {
	for i, n := range numbers {
		list = append(list, Read{Name{1, n}, int64(2 * i)}) // markers stand between
	}
	return list
}

func TestBadTransactionsAreFound(t *testing.T) {
	for _, c := range []struct {
		name string
		txns []Transaction
		logs map[int32][]Read
		want string
	}{
		{"committed and whole", []Transaction{wrote(Done, 1, 0, 1), wrote(Done, 3, 0)}, map[int32][]Read{0: reads(1, 3), 1: reads(2)}, ""},
		{"aborted and not there", []Transaction{wrote(Refused, 1, 0, 1), wrote(Done, 3, 0)}, map[int32][]Read{0: reads(3)}, ""},
		{"nobody knows, all there", []Transaction{wrote(Unknown, 1, 0, 1)}, map[int32][]Read{0: reads(1), 1: reads(2)}, ""},
		{"nobody knows, none there", []Transaction{wrote(Unknown, 1, 0, 1)}, nil, ""},
		{"nobody knows, torn", []Transaction{wrote(Unknown, 1, 0, 1)}, map[int32][]Read{0: reads(1)}, "transactions of x: torn: 1 of 2 records"},
		{"committed, torn", []Transaction{wrote(Done, 1, 0, 0, 1)}, map[int32][]Read{0: reads(1), 1: reads(3)}, "torn: 2 of 3 records"},
		{"committed, lost", []Transaction{wrote(Done, 1, 0, 1)}, nil, "lost: none of 2 records is there"},
		{"aborted, there", []Transaction{wrote(Refused, 1, 0, 1)}, map[int32][]Read{1: reads(2)}, "partition 1: aborted: record 2"},
		{"twice", []Transaction{wrote(Done, 1, 0)}, map[int32][]Read{0: reads(1, 1)}, "partition 0: doubled: record 1"},
		{"out of order", []Transaction{wrote(Done, 1, 0), wrote(Done, 2, 0)}, map[int32][]Read{0: reads(2, 1)}, "partition 0: order: record 1 of producer 1 at offset 2 comes after its record 2"},
		{"nobody sent it", nil, map[int32][]Read{0: reads(9)}, "foreign: record 9"},
		{"a second copy in another partition", []Transaction{wrote(Done, 1, 0)}, map[int32][]Read{0: reads(1), 1: reads(1)}, "partition 1: foreign"},
	} {
		t.Run(c.name, func(t *testing.T) { requireFaults(t, JudgeTransactions(c.txns, c.logs), c.want) })
	}
}

func TestBadCopiesAreFound(t *testing.T) {
	in := map[int32][]Read{0: reads(1, 2, 3)}
	for _, c := range []struct {
		name string
		out  map[int32][]Read
		want string
	}{
		{"good", map[int32][]Read{0: reads(1, 2, 3)}, ""},
		{"the last is missing", map[int32][]Read{0: reads(1, 2)}, "partition 0: not copied: offset 4"},
		{"one is skipped", map[int32][]Read{0: reads(1, 3)}, "not copied: offset 2"},
		{"twice", map[int32][]Read{0: reads(1, 2, 2, 3)}, "doubled: offset 2 is copied again at offset 4"},
		{"order", map[int32][]Read{0: reads(1, 3, 2)}, "order: the copy of offset 2, at offset 4, comes after that of 4"},
		{"foreign", map[int32][]Read{0: reads(1, 2, 3, 8)}, "foreign: the copy at offset 6 is of record 8"},
		{"a partition that has no counterpart", map[int32][]Read{0: reads(1, 2, 3), 1: reads(1)}, "partition 1: foreign"},
	} {
		t.Run(c.name, func(t *testing.T) { requireFaults(t, JudgeCopies(in, c.out), c.want) })
	}
}

func TestATransactionThatNobodyEndsIsFound(t *testing.T) {
	sample := func(atMs int, stable, end int64) Progress {
		return Progress{Place{"t", 0}, stable, end, time.Duration(atMs) * time.Millisecond}
	}
	for _, c := range []struct {
		name    string
		samples []Progress
		want    string
	}{
		{"idle", []Progress{sample(0, 5, 5), sample(1000, 5, 5)}, ""},
		{"short transactions, one after the other", []Progress{sample(0, 5, 6), sample(90, 5, 7), sample(150, 8, 9), sample(240, 8, 9), sample(300, 9, 9)}, ""},
		{"open for as long as allowed", []Progress{sample(0, 5, 6), sample(100, 5, 9), sample(101, 9, 9)}, ""},
		{"opened after a rest", []Progress{sample(0, 5, 5), sample(1000, 5, 6), sample(1050, 5, 7)}, ""},
		{"stuck, while others write", []Progress{sample(0, 5, 6), sample(100, 5, 9), sample(101, 5, 12), sample(500, 5, 20)}, "t-0: stuck: the last stable offset is 5 since 0s, the end 12"},
	} {
		t.Run(c.name, func(t *testing.T) { requireFaults(t, JudgeProgress(c.samples, 100*time.Millisecond), c.want) })
	}
}

func TestZombiesAreFound(t *testing.T) {
	epoch := func(e int16, s Span) Epoch { return Epoch{"x", 7, e, s} }
	end := func(e int16, fate Fate, s Span) Act { return Act{"EndTxn", "x", 7, e, fate, s} }
	for _, c := range []struct {
		name   string
		epochs []Epoch
		act    Act
		want   string
	}{
		{"of the present epoch", []Epoch{epoch(0, at(0, 1)), epoch(1, at(2, 3))}, end(1, Done, at(4, 5)), ""},
		{"sent before it was fenced", []Epoch{epoch(0, at(0, 1)), epoch(1, at(2, 5))}, end(0, Done, at(4, 9)), ""},
		{"refused", []Epoch{epoch(0, at(0, 1)), epoch(1, at(2, 3))}, end(0, Refused, at(4, 5)), ""},
		{"another id", []Epoch{epoch(0, at(0, 1)), {"y", 7, 1, at(2, 3)}}, end(0, Done, at(4, 5)), ""},
		{"of an earlier epoch", []Epoch{epoch(0, at(0, 1)), epoch(1, at(2, 3))}, end(0, Done, at(4, 5)), "transactions of x: zombie: EndTxn of producer 7 in epoch 0 was taken after producer 7 had epoch 1"},
		{"of an earlier producer", []Epoch{epoch(9, at(0, 1)), {"x", 8, 0, at(2, 3)}}, end(9, Done, at(4, 5)), "after producer 8 had epoch 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			faults := JudgeFences(c.epochs, []Act{c.act})
			requireFaults(t, faults, c.want)
		})
	}
	require.Empty(t, JudgeFences(nil, []Act{end(0, Done, at(0, 1))}), "nothing is known of an epoch that was given before the history began")
}
