package record

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func retained(t testing.TB, o BuilderOptions) Batch {
	b := NewBuilder(o)
	b.Append(1000, []byte("a"), []byte("1"))
	b.Append(3000, []byte("b"), nil, Header{Key: "h", Value: []byte("x")})
	b.Append(2000, nil, []byte("3"))
	batch, err := b.Build()
	require.NoError(t, err)
	return batch
}

// those is a choice of records by themselves.
func those(want func(Keyed) bool) func([]Keyed, []bool) {
	return func(run []Keyed, keep []bool) {
		for i, k := range run {
			keep[i] = want(k)
		}
	}
}

func recordsOf(t testing.TB, b Batch) []Record {
	var out []Record
	for r, err := range b.Records(Limits{}) {
		require.NoError(t, err)
		r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
		r.Headers = append([]Header(nil), r.Headers...)
		out = append(out, r)
	}
	return out
}

func TestWhatIsRetainedKeepsItsPlaceAndItsBatch(t *testing.T) {
	at := int64(77)
	for _, appendTime := range []*int64{nil, &at} {
		for _, codec := range []Codec{None, Gzip, Snappy, LZ4, Zstd} {
			o := BuilderOptions{Codec: codec, BaseOffset: 40, AppendTime: appendTime, Producer: &Producer{ID: 5, Epoch: 2, BaseSequence: 9, Transactional: true}}
			b := retained(t, o)
			all := recordsOf(t, b)
			var keeper Retainer
			left, r, err := keeper.Retain(b, those(func(k Keyed) bool { return k.Offset != 41 }))
			require.NoError(t, err)
			require.Equal(t, Retained{Read: 3, Kept: 2}, r)
			require.NoError(t, left.CheckCRC())
			require.Equal(t, []Record{all[0], all[2]}, recordsOf(t, left))
			require.Equal(t, b.Attributes(), left.Attributes())
			require.Equal(t, []int64{40, 42}, []int64{left.BaseOffset(), left.LastOffset()})
			require.Equal(t, []int32{9, 11}, []int32{left.BaseSequence(), left.LastSequence()})
			if appendTime == nil {
				require.Equal(t, int64(2000), left.MaxTimestamp())
			} else {
				require.Equal(t, at, left.MaxTimestamp())
			}
			same, r, err := keeper.Retain(b, those(func(Keyed) bool { return true }))
			require.NoError(t, err)
			require.True(t, r.Tombstones)
			require.Equal(t, b, same)
			none, _, err := keeper.Retain(b, those(func(Keyed) bool { return false }))
			require.NoError(t, err)
			require.Nil(t, none)

			late, err := left.WithDeleteHorizon(1<<40, Limits{})
			require.NoError(t, err)
			require.NoError(t, late.CheckCRC())
			require.True(t, late.HasDeleteHorizon())
			require.Equal(t, int64(1)<<40, late.BaseTimestamp())
			require.Equal(t, recordsOf(t, left), recordsOf(t, late))
			require.Equal(t, []int64{40, 42}, []int64{late.BaseOffset(), late.LastOffset()})
			require.Equal(t, left.MaxTimestamp(), late.MaxTimestamp())
			again, _, err := keeper.Retain(late, those(func(k Keyed) bool { return k.Offset == 40 }))
			require.NoError(t, err)
			require.True(t, again.HasDeleteHorizon())
			require.Equal(t, all[0], recordsOf(t, again)[0])
		}
	}
}

// A batch of many records is handed over in several runs, and one that is too large to be decompressed at once record by record.
func TestManyRecordsAreRetainedRunByRun(t *testing.T) {
	for _, size := range []int{10, 20_000} {
		for _, codec := range []Codec{None, Gzip, LZ4} {
			build := NewBuilder(BuilderOptions{Codec: codec})
			for i := range 3*runLength + 7 {
				build.Append(int64(i), fmt.Appendf(nil, "key-%d", i), bytes.Repeat([]byte{byte(i)}, size))
			}
			b, err := build.Build()
			require.NoError(t, err)
			var want []Record
			for _, r := range recordsOf(t, b) {
				if r.Offset%3 == 0 {
					want = append(want, r)
				}
			}
			var keeper Retainer
			left, r, err := keeper.Retain(b, those(func(k Keyed) bool {
				require.Equal(t, fmt.Sprintf("key-%d", k.Offset), string(k.Key))
				return k.Offset%3 == 0
			}))
			require.NoError(t, err)
			require.Equal(t, Retained{Read: 3*runLength + 7, Kept: len(want)}, r)
			require.Equal(t, want, recordsOf(t, left))
		}
	}
}

func FuzzRetain(f *testing.F) {
	for _, codec := range []Codec{None, Gzip, Snappy, LZ4, Zstd} {
		f.Add([]byte(retained(f, BuilderOptions{Codec: codec})), byte(5))
	}
	f.Fuzz(func(t *testing.T, data []byte, mask byte) {
		b, _, err := Next(data)
		if err != nil {
			return
		}
		keeper := Retainer{Limits: Limits{MaxDecompressed: 1 << 20}}
		left, r, err := keeper.Retain(b, those(func(k Keyed) bool { return mask>>(uint64(k.Offset)%8)&1 == 1 }))
		if err != nil || left == nil || r.Kept == r.Read {
			return
		}
		n := 0
		for _, err := range left.Records(keeper.Limits) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, r.Kept, n)
		require.NoError(t, left.CheckCRC())
	})
}
