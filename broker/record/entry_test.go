package record

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A log that grew through the ages: a message of format 0, a wrapper of format 0, one of format 1, a batch.
func TestALogOfAllFormatsIsReadEntryByEntry(t *testing.T) {
	add := func(log []byte, magic int8, c Codec, offsets ...int64) []byte {
		m := NewMessageBuilder(log, nil, MessageOptions{Magic: magic, Codec: c})
		for _, o := range offsets {
			m.Append(&Record{Offset: o, Timestamp: 10 * o, Key: []byte{byte(o)}, Value: []byte("v")})
		}
		log, err := m.Build()
		require.NoError(t, err)
		return log
	}
	log := add(nil, 0, None, 3)
	log = add(log, 0, Gzip, 5, 6)
	log = add(log, 1, Snappy, 10, 12, 13)
	b := NewBuilder(BuilderOptions{BaseOffset: 20})
	b.Append(200, []byte{20}, []byte("v"))
	b.Append(210, []byte{21}, []byte("v"))
	batch, err := b.Build()
	require.NoError(t, err)
	log = append(log, batch...)

	var seen, last []int64
	for rest := log; ; {
		var e Entry
		if e, rest, err = NextEntry(rest); err == io.EOF {
			break
		}
		require.NoError(t, err)
		assert.False(t, e.IsControl())
		last = append(last, e.LastOffset())
		for r, err := range e.Records(Limits{}) {
			require.NoError(t, err)
			assert.Equal(t, []byte{byte(r.Offset)}, r.Key)
			if r.Offset >= 10 {
				assert.Equal(t, 10*r.Offset, r.Timestamp)
			}
			seen = append(seen, r.Offset)
		}
	}
	assert.Equal(t, []int64{3, 5, 6, 10, 12, 13, 20, 21}, seen)
	assert.Equal(t, []int64{3, 6, 13, 21}, last)
}

func FuzzEntry(f *testing.F) {
	f.Add(AppendMessage(nil, 0, None, false, 7, 0, []byte("k"), nil))
	f.Add(AppendMessage(nil, 1, Gzip, false, 7, 1, nil, []byte("not gzip")))
	b := NewBuilder(BuilderOptions{})
	b.Append(1, nil, []byte("v"))
	batch, err := b.Build()
	require.NoError(f, err)
	f.Add([]byte(batch))
	f.Fuzz(func(t *testing.T, buf []byte) {
		for {
			e, rest, err := NextEntry(buf)
			if err != nil {
				return
			}
			require.Less(t, len(rest), len(buf))
			e.LastOffset()
			for _, err := range e.Records(Limits{MaxDecompressed: 1 << 16}) {
				if err != nil {
					break
				}
			}
			buf = rest
		}
	})
}
