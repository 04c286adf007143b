package native

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// asBytes is nil where there is nothing, so that a fuzzer can say null too.
func asBytes(text string, null bool) []byte {
	if null {
		return nil
	}
	return []byte(text)
}

func FuzzARowBringsTheSameRecordBack(f *testing.F) {
	f.Add("k", false, "v", false, "h", "x", false, int64(1_700_000_000_000))
	f.Add("", false, "", true, "", "", true, int64(0))
	f.Add("\xff\x00", false, "\u2028<&>\"\\", false, "\xc3\x28", "\x80", false, int64(1))
	f.Fuzz(func(t *testing.T, key string, keyNull bool, value string, valueNull bool, header, headerValue string, headerNull bool, ms int64) {
		ms &= 1<<50 - 1 // a time that a record can have
		before := &kgo.Record{Topic: "t", Partition: 3, Offset: 1 << 60, Timestamp: time.UnixMilli(ms), Key: asBytes(key, keyNull), Value: asBytes(value, valueNull),
			Headers: []kgo.RecordHeader{{Key: header, Value: asBytes(headerValue, headerNull)}}}
		line, err := asJSON(rowOf(before), true)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(line), "\n"), "one line")
		parsed, err := parseRow(line)
		require.NoError(t, err, "%s", line)
		require.Equal(t, before.Offset, parsed.Offset)
		after, err := parsed.record()
		require.NoError(t, err)
		require.Equal(t, []any{before.Partition, before.Timestamp.UnixMilli(), before.Key, before.Value, before.Headers}, []any{after.Partition, after.Timestamp.UnixMilli(), after.Key, after.Value, after.Headers})
	})
}

func FuzzRowsOfOthersAreReadOrRefused(f *testing.F) {
	for _, seed := range []string{`{"value":"v"}`, `{"value":null,"key_base64":"AA=="}`, `{"value":"v","value_base64":"AA=="}`, `{"headers":[{}],"value":""}`, `[]`, `{"value":1}`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		parsed, err := parseRow(line)
		if err != nil {
			return
		}
		_, _ = parsed.record()
	})
}

func TestRowsThatDoNotSayWhatTheyMeanAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		`{"key":"k"}`:                                     `it has neither value nor value_base64; a deletion has "value":null`,
		`{"value":"a","value_base64":"YQ=="}`:             "value: it has both a text and base64 of the same",
		`{"key_base64":"!","value":null}`:                 "key: illegal base64 data at input byte 0",
		`{"value":null,"headers":[{"value":"v"}]}`:        "header 0: it has no key",
		`{"value":5}`:                                     "json: cannot unmarshal number",
		`{"value":null,"timestamp":"now"}`:                "json: cannot unmarshal string",
		`{"value":null} {"value":"two rows in one line"}`: "invalid character '{' after top-level value",
	} {
		parsed, err := parseRow([]byte(line))
		if err == nil {
			_, err = parsed.record()
		}
		assert.ErrorContains(t, err, want, line)
	}
	parsed, err := parseRow([]byte(`{"value":null}`))
	require.NoError(t, err)
	r, err := parsed.record()
	require.NoError(t, err)
	assert.Nil(t, r.Value, "a deletion that was meant")
	assert.True(t, r.Timestamp.IsZero(), "it gets the time of sending")
}

func TestALineForPeopleCannotTalkToTheTerminal(t *testing.T) {
	var out strings.Builder
	rowOf(&kgo.Record{Partition: 1, Offset: 2, Timestamp: time.UnixMilli(1500), Key: []byte("\x1b[2J"), Value: []byte("\"é\"\n"), Headers: []kgo.RecordHeader{{Key: "h"}}}).show(&out)
	assert.Equal(t, "1:2  1970-01-01T00:00:01.500Z  \\x1b[2J  \"é\"\\n  [h=null]\n", out.String())
}

func TestFormatsNameWhatIsPrinted(t *testing.T) {
	pieces, err := readFormat(`%t/%p/%o %T %k(%K)=%v(%V) %h 100%%\n`)
	require.NoError(t, err)
	var out strings.Builder
	for _, p := range pieces {
		p(&out, &kgo.Record{Topic: "t", Partition: 1, Offset: 2, Timestamp: time.UnixMilli(3), Key: []byte("k"), Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("b")}, {Key: "c"}}})
	}
	assert.Equal(t, "t/1/2 3 k(1)=(-1) a=b,c= 100%\n", out.String())
	for _, bad := range []string{"%", `\`, "%x", `\q`} {
		_, err := readFormat(bad)
		assert.Equal(t, WrongUsage, exitOf(err), bad)
	}
}

func TestRowsAreJSON(t *testing.T) {
	line, err := asJSON(rowOf(&kgo.Record{Topic: "t", Value: []byte{0xff}, Timestamp: time.UnixMilli(7)}), true)
	require.NoError(t, err)
	assert.JSONEq(t, `{"topic":"t","partition":0,"offset":0,"timestamp":7,"timestamp_type":"create","headers":[],"key":null,"value":null,"value_base64":"/w=="}`, string(line))
	assert.True(t, json.Valid(line))
}
