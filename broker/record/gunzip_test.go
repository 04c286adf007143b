package record

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

// What Java 17's GZIPInputStream, by which Kafka 3.9 reads, makes of gzip members: how much it restores, -1 if it fails.
func TestGzipMembersAreTakenAsJavaTakesThem(t *testing.T) {
	src := sample(1000)
	g, empty := gzipOf(t, 6, src), gzipOf(t, 6, nil)
	head := func(flags byte, more string) []byte {
		h := bytes.Clone(g[:gzipHead])
		h[3] = flags
		return append(append(h, more...), g[gzipHead:]...)
	}
	summed := head(gzipHeadSum, "")[:gzipHead]
	summed = append(binary.LittleEndian.AppendUint16(summed, uint16(crc32.ChecksumIEEE(summed))), g[gzipHead:]...)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	zeros := make([]byte, 40)

	for name, c := range map[string]struct {
		packed []byte
		want   int
	}{
		"one":                          {g, 1000},
		"two":                          {join(g, g), 2000},
		"an empty one before":          {join(empty, g), 1000},
		"an empty one behind":          {join(g, empty), 1000},
		"zeros behind":                 {join(g, zeros), 1000},
		"a zero behind":                {join(g, zeros[:1]), 1000},
		"zeros between":                {join(g, zeros, g), 1000},
		"zeros behind two":             {join(g, g, zeros), 2000},
		"only half a magic behind":     {join(g, bytes.Repeat(g[:1], 40)), 1000},
		"only a head behind":           {join(g, g[:gzipHead]), 1000},
		"a head and eight bytes":       {join(g, g[:gzipHead+gzipTail]), 1000},
		"a head and nine bytes":        {join(g, g[:gzipHead+gzipTail+1]), -1},
		"a second of another method":   {join(g, flip(g, 2)), 1000},
		"a second that is cut":         {join(g, g[:len(g)-1]), -1},
		"a second cut in the middle":   {join(g, g[:len(g)/2]), -1},
		"a second with a wrong CRC":    {join(g, flip(g, len(g)-5)), -1},
		"wrong CRC":                    {flip(g, len(g)-5), -1},
		"wrong size":                   {flip(g, len(g)-1), -1},
		"cut":                          {g[:len(g)-1], -1},
		"no tail":                      {g[:len(g)-gzipTail], -1},
		"nothing":                      {nil, -1},
		"only a head":                  {g[:gzipHead], -1},
		"no magic":                     {flip(g, 1), -1},
		"another method":               {flip(g, 2), -1},
		"flag of text":                 {head(1, ""), 1000},
		"flags without meaning":        {head(0xe0, ""), 1000},
		"a name":                       {head(gzipName, "n\x00"), 1000},
		"a long name":                  {head(gzipName, strings.Repeat("n", 5000)+"\x00"), 1000},
		"extra, name and comment":      {head(gzipExtra|gzipName|gzipNote, "\x03\x00abcn\x00c\x00"), 1000},
		"extra of more than there is":  {head(gzipExtra, "\xff\xff")[:200], -1},
		"extra without length":         {head(gzipExtra, "\x01")[:gzipHead+1], -1},
		"a name without end":           {head(gzipName, "name")[:gzipHead+4], -1},
		"checksum of the head":         {summed, 1000},
		"a wrong checksum of the head": {head(gzipHeadSum, "\x00\x00"), -1},
		"a head cut in its checksum":   {head(gzipHeadSum, "\x00")[:gzipHead+1], -1},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := gunzipWhole(make([]byte, 0, 4096), c.packed)
			require.Equal(t, c.want >= 0, ok)
			streamed, err := streamed(Gzip, c.packed)
			_, known := Decompress(Gzip, c.packed, Limits{})
			if c.want < 0 {
				require.Error(t, err)
				require.ErrorIs(t, known, kerr.InvalidRecord)
				return
			}
			require.NoError(t, err)
			require.NoError(t, known)
			require.Equal(t, strings.Repeat(string(src), c.want/1000), string(got))
			require.Equal(t, string(got), string(streamed))
		})
	}
}
