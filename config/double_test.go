package config

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDoublesAreReadAndWrittenAsByJava(t *testing.T) {
	for text, want := range map[string]string{
		"0.5": "0.5", " 0.7 ": "0.7", "1": "1.0", "1e3": "1000.0", "1e7": "1.0E7", "0.0001": "1.0E-4", "-0.0": "-0.0", ".5": "0.5", "5.": "5.0", "0.5d": "0.5", "2F": "2.0",
		"0x1p3": "8.0", "Infinity": "Infinity", "-Infinity": "-Infinity", "1e400": "Infinity", "NaN": "NaN", "+NaN": "NaN", "1.7976931348623157E308": "1.7976931348623157E308",
	} {
		f, err := ParseDouble(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, FormatDouble(f), text)
	}
	for _, text := range []string{"", "abc", "1_0", "inf", "Inf", "nan", "infinity", "0x10", "1e", "e5", ".", "1.0dd", "1 0"} {
		_, err := ParseDouble(text)
		assert.Error(t, err, text)
	}
	for f, want := range map[float64]string{0: "0.0", 50: "50.0", 9999999: "9999999.0", 12345678.9: "1.23456789E7", 0.001: "0.001", 0.00012: "1.2E-4", -2.5: "-2.5", 1e21: "1.0E21"} {
		assert.Equal(t, want, FormatDouble(f))
	}
	v, err := New(map[string]string{"log.cleaner.io.max.bytes.per.second": "1e400"})
	require.NoError(t, err)
	assert.True(t, math.IsInf(v.Float("log.cleaner.io.max.bytes.per.second"), 1))
}
