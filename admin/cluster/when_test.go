package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDurationsAreISO8601(t *testing.T) {
	for text, want := range map[string]time.Duration{"PT1H": time.Hour, "P1D": 24 * time.Hour, "P1DT2H3M4.5S": 26*time.Hour + 3*time.Minute + 4500*time.Millisecond, "-PT5M": -5 * time.Minute, "pt-0.5s": -500 * time.Millisecond} {
		got, err := ParseDuration(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "1h", "P", "PT", "P1DT", "PT1", "P1H", "P99999999999D"} {
		_, err := ParseDuration(text)
		assert.EqualError(t, err, "Text cannot be parsed to a Duration", text)
	}
}

func TestDatesMayHaveAZone(t *testing.T) {
	for text, want := range map[string]int64{"1970-01-01T00:00:01.500": 1500, "1970-01-01T00:00:01.500Z": 1500, "1970-01-01T01:00:00.000+01:00": 0, "1970-01-01T01:00:00.000+0100": 0, "1970-01-01T01:00:00.000+01": 0} {
		got, err := ParseDateTime(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got.UnixMilli(), text)
	}
	_, err := ParseDateTime("yesterday")
	assert.Error(t, err)
}
