package tools

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func runConsumerPerf(args ...string) ran {
	return runCommand(func(args []string, out, errs *bytes.Buffer) int { return ConsumerPerf(args, nil, out, errs) }, args...)
}

func TestConsumerPerfCallsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "This tool helps in performance test for the full zookeeper consumer"},
		{"--topic t", "Missing required option(s) [bootstrap-server]"},
		{"--bootstrap-server b --topic t", `Missing required argument "[messages]"`},
		{"--bootstrap-server b --messages 1", `Missing required argument "[topic]"`},
		{"--bogus", "bogus is not a recognized option"},
		{"--bootstrap-server b --topic t --messages z", `Exception in thread "main" java.lang.IllegalArgumentException: Cannot parse argument 'z' of option messages`},
		{"--bootstrap-server b --topic t --messages 1 --reporting-interval 0", `Exception in thread "main" java.lang.IllegalArgumentException: Reporting interval must be greater than 0.`},
		{"--bootstrap-server b --topic t --messages 1 --date-format foo", `Exception in thread "main" java.lang.IllegalArgumentException: Illegal pattern character 'f'`},
	} {
		got := runConsumerPerf(strings.Fields(c.args)...)
		assert.Equal(t, 1, got.code, c.args)
		assert.Equal(t, c.want, firstLine(got.stderr), c.args)
		assert.Empty(t, got.stdout, c.args)
	}
}

func TestConsumerPerfGivesUp(t *testing.T) {
	args := strings.Fields("--broker-list 127.0.0.1:1 --topic t --messages 1 --timeout 50 --threads 2")
	got := runConsumerPerf(args...)
	assert.Zero(t, got.code)
	lines := strings.Split(got.stdout, "\n")
	require.Len(t, lines, 5)
	assert.Equal(t, "WARNING: option [threads] and [num-fetch-threads] have been deprecated and will be ignored by the test", lines[0])
	assert.Equal(t, consumerPerfHeader(false), lines[1])
	assert.Equal(t, "WARNING: Exiting before consuming the expected number of messages: timeout (50 ms) exceeded. You can use the --timeout option to increase the timeout.", lines[2])
	t.Setenv("BARNABAS_STRICT", "1")
	assert.Equal(t, 1, runConsumerPerf(args...).code)
}

func TestConsumerPerfLinesAddUp(t *testing.T) {
	clock := func(t time.Time) string { return t.UTC().Format("15:04:05") }
	began := time.Unix(100, 0)
	m := consumerMeasurement{asked: consumerPerfAsked{clock: clock}, joins: &joinTimes{all: time.Second}, began: began, all: consumed{3000, 3 << 20}, reported: consumed{1000, 1 << 20}}
	assert.Equal(t, "00:01:44, 0, 3.0000, 1.0000, 3000, 1000.0000, 1000, 1000, 2.0000, 2000.0000", m.line(began.Add(2*time.Second), began.Add(4*time.Second), time.Second))
	assert.Equal(t, "00:01:44, 0, 3.0000, 1.0000, 3000, 1000.0000, 2000, 0, 0.0000, 0.0000", m.line(began.Add(2*time.Second), began.Add(4*time.Second), 2*time.Second), "no time to fetch is no rate")
	assert.Equal(t, "00:01:40, 00:01:44, 3.0000, 0.7500, 3000, 750.0000, 1000, 3000, 1.0000, 1000.0000", m.totalLine(began.Add(4*time.Second)))
}

func TestTimesAreWrittenAsJavaWritesThem(t *testing.T) {
	at := time.Date(2026, 3, 5, 0, 7, 9, 45_000_000, time.FixedZone("CET", 3600))
	for pattern, want := range map[string]string{
		perfDateFormat: "2026-03-05 00:07:09:045", "yy/M/d H:m:s.S": "26/3/5 0:7:9.45", "EEE, d MMM yyyy hh:mm a": "Thu, 5 Mar 2026 12:07 AM", "EEEE MMMM k K D u": "Thursday March 24 0 64 4",
		"yyyy-MM-dd'T'HH:mm:ssXXX": "2026-03-05T00:07:09+01:00", "h 'o''clock' ''Z z": "12 o'clock '+0100 CET", "X XX": "+01 +0100",
	} {
		format, err := javaDateFormat(pattern)
		require.NoError(t, err, pattern)
		assert.Equal(t, want, format(at), pattern)
	}
	for pattern, want := range map[string]string{"foo": "Illegal pattern character 'f'", "HH 'o": "Unterminated quote"} {
		_, err := javaDateFormat(pattern)
		assert.EqualError(t, err, want)
	}
}
