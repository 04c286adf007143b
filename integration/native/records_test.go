package native

import (
	"encoding/json"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// odd are rows whose bytes are no text, empty, or not there.
const odd = `{"partition":0,"timestamp":1000,"headers":[{"key":"h","value":"1"},{"key":"h","value":null},{"key":"","value":""}],"key":"k","value":"text \u2028 <é>"}
{"partition":1,"timestamp":2000,"headers":[],"key":null,"value":""}
{"partition":1,"timestamp":3000,"headers":[{"key":"b","value":null,"value_base64":"gAA="}],"key":null,"key_base64":"/wA=","value":null}
{"partition":0,"timestamp":4000,"headers":[],"key":"","value":null,"value_base64":"w/8="}
`

type printed struct {
	Partition int32
	Offset    int64
	Timestamp int64
	Headers   []any
	Key       any
	KeyBytes  any `json:"key_base64"`
	Value     any
	ValBytes  any `json:"value_base64"`
}

// rows are what consume prints, without where it is from.
func (s *scene) rows(call string) (list []printed) {
	for _, line := range strings.Split(strings.TrimSpace(s.ok(call, "").stdout), "\n") {
		var p printed
		require.NoError(s.t, json.Unmarshal([]byte(line), &p), line)
		list = append(list, p)
	}
	return list
}

func (s *scene) ok(call, input string) ran {
	s.t.Helper()
	got := runWith(s.t, input, s.server, strings.Fields(call)...)
	require.Zero(s.t, got.code, "%s: %s%s", call, got.stdout, got.stderr)
	return got
}

// records are sent and read, and sent on as they were.
func (s *scene) records() {
	for _, topic := range []string{"raw", "copy"} {
		s.ok("topic create "+topic+" --partitions 2 --config retention.ms=-1", "") // half a minute after its start a broker looks for what is too old, as records of 1970 are
	}
	assert.Equal(s.t, "Produced 4 records to raw.\n", s.ok("produce raw --input json-rows --keep-partition", odd).stdout)
	first := s.ok("consume raw -o json-rows", "").stdout
	s.ok("produce copy --input json-rows --keep-partition", first)
	want, got := s.rows("consume raw -o json-rows"), s.rows("consume copy -o json-rows")
	require.Len(s.t, got, 4)
	assert.ElementsMatch(s.t, want, got)
	assert.Contains(s.t, got, printed{Partition: 1, Offset: 1, Timestamp: 3000, Headers: []any{map[string]any{"key": "b", "value": nil, "value_base64": "gAA="}}, KeyBytes: "/wA="})
	assert.Contains(s.t, got, printed{Partition: 1, Offset: 0, Timestamp: 2000, Headers: []any{}, Value: ""})

	for call, want := range map[string]string{
		"consume raw --tail 1 -f %T":                        "4000",
		"consume raw --partition 1 -f %o:%K:%V;":            "0:-1:0;1:2:-1;",
		"consume raw --partition 1 --from 1 -f %T":          "3000",
		"consume raw --grep-value ^text -f %k":              "k",
		"consume raw --header h=1 -f %h":                    "h=1,h=,=",
		"consume raw --from newest -f %v":                   "",
		"consume raw --since 1970-01-01T00:00:03.500 -f %T": "4000",
		"consume raw --until 1970-01-01T00:00:01.500 -f %T": "1000",
		"consume orders --partition 1 --tail 2 -f %v,":      "value 7,value 9,",
		"consume orders --partition 0 --max 1 -f %v":        "value 0",
		"consume raw --until 1970-01-01T00:00:01.500":       "0:0  1970-01-01T00:00:01.000Z  k  text \\u2028 <é>  [h=1 h=null =]\n",
	} {
		assert.Equal(s.t, want, s.ok(call, "").stdout, call)
	}
	assert.Equal(s.t, "Produced 2 records to copy.\n", s.ok("produce copy --key-separator : --header a=b --partition 0", "x:1:2\ny:\n").stdout)
	assert.Equal(s.t, "x=1:2/a=b;y=/a=b;", s.ok("consume copy --partition 0 --from 2 -f %k=%v/%h;", "").stdout)
	bad := runWith(s.t, "a:1\nb\n", s.server, "produce", "copy", "--key-separator", ":")
	assert.Equal(s.t, 1, bad.code)
	assert.Contains(s.t, bad.stderr, `line 2: there is no ":" in it`)
	for _, call := range []string{"consume nope", "produce nope", "consume raw --partition 7"} {
		assert.Equal(s.t, 3, runWith(s.t, "", s.server, strings.Fields(call)...).code, call)
	}
	for _, topic := range []string{"raw", "copy"} {
		s.ok("config unset topic "+topic+" retention.ms", "")
	}
}

// settings are set, shown, compared and taken back.
func (s *scene) settings() {
	get := func(call string) (list []struct{ Name, Value, Source, Default string }) {
		var d struct {
			Settings []struct{ Name, Value, Source, Default string }
		}
		require.NoError(s.t, json.Unmarshal([]byte(s.ok("config get "+call+" -o json", "").stdout), &d))
		return d.Settings
	}
	for _, c := range []struct{ entity, set, name, value, source string }{
		{"topic raw", "cleanup.policy=compact,delete", "cleanup.policy", "compact,delete", "topic"},
		{"broker default", "message.max.bytes=2000000", "message.max.bytes", "2000000", "all-brokers"},
		{"broker 1", "log.cleaner.threads=2", "log.cleaner.threads", "2", "broker"},
		{"user alice", "producer_byte_rate=1048576", "producer_byte_rate", "1048576", "user"},
		{"client default", "consumer_byte_rate=1000", "consumer_byte_rate", "1000", "client"},
	} {
		s.ok("config set "+c.entity+" "+c.set+" --dry-run", "")
		for _, one := range get(c.entity) {
			assert.NotEqual(s.t, c.source, one.Source, "%s: a dry run changes nothing", c.entity)
		}
		s.ok("config set "+c.entity+" "+c.set, "")
		require.Eventually(s.t, func() bool { // a broker hears of its settings by ZooKeeper
			for _, one := range get(c.entity) {
				if one.Name == c.name {
					return one.Value == c.value && one.Source == c.source
				}
			}
			return false
		}, settle, pace, c.entity)
		s.ok("config unset "+c.entity+" "+c.name, "")
	}
	s.ok("config set topic raw retention.ms=60000", "")
	assert.Equal(s.t, "SETTING       TOPIC raw  copy\nretention.ms  60000      604800000\n", s.ok("config diff topic raw copy", "").stdout)
	refused := runWith(s.t, "", s.server, "config", "set", "topic", "raw", "retention.ms=soon")
	assert.Equal(s.t, 1, refused.code)
	for _, call := range []string{"config get topic nope", "config get broker 9", "config get topic raw no.such", "elect nope"} {
		assert.Equal(s.t, 3, runWith(s.t, "", s.server, strings.Fields(call)...).code, call)
	}
	s.ok("elect --all", "")
}
