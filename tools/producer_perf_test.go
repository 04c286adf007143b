package tools

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFiguresOfAMeasurement(t *testing.T) {
	began := time.Unix(1000, 0)
	w := perfWindow{began: began}
	var latencies []int64
	for i := range int64(1000) {
		w.add(i, 1048)
		latencies = append(latencies, 999-i)
	}
	assert.Equal(t, "1000 records sent, 500.0 records/sec (0.50 MB/sec), 499.5 ms avg latency, 999.0 ms max latency.", w.line(began.Add(2*time.Second)))
	assert.Equal(t, "1000 records sent, 500.000000 records/sec (0.50 MB/sec), 499.50 ms avg latency, 999.00 ms max latency, 500 ms 50th, 950 ms 95th, 990 ms 99th, 999 ms 99.9th.", totalLine(w, latencies, began.Add(2*time.Second)))
	assert.Equal(t, "0 records sent, 0.000000 records/sec (0.00 MB/sec), 0.00 ms avg latency, 0.00 ms max latency, 0 ms 50th, 0 ms 95th, 0 ms 99th, 0 ms 99.9th.", totalLine(perfWindow{began: began}, nil, began))
}

func TestAPerfCallWithoutArgumentsPrintsHelpAndIsFine(t *testing.T) {
	for _, c := range []func([]string, *bytes.Buffer, *bytes.Buffer) int{
		func(a []string, o, e *bytes.Buffer) int { return ProducerPerf(a, nil, o, e) },
		func(a []string, o, e *bytes.Buffer) int { return VerifiableProducer(a, nil, o, e) },
	} {
		got := runCommand(c)
		assert.Zero(t, got.code)
		assert.Contains(t, got.stdout, "usage: ")
		assert.Empty(t, got.stderr)
		assert.Equal(t, 1, runCommand(c, "--help").code)
	}
}

func TestPayloadsAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p")
	require.NoError(t, os.WriteFile(path, []byte("a;bb;"), 0o600))
	var out bytes.Buffer
	got, err := readPayloads(&out, path, ";")
	require.NoError(t, err)
	assert.Equal(t, [][]byte{[]byte("a"), []byte("bb")}, got)
	assert.Contains(t, out.String(), "Number of messages read: 2\n")
	_, err = readPayloads(&out, path+".nosuch", ";")
	assert.Error(t, err)
}

func TestProducerSettingsThatMakeNoSense(t *testing.T) {
	for _, settings := range []map[string]string{{"acks": "2"}, {"compression.type": "x"}, {"linger.ms": "x"}, {"retries": "-1"}} {
		_, err := producerOptions(settings, true)
		assert.Error(t, err, settings)
	}
	_, err := producerOptions(map[string]string{"acks": "all", "compression.type": "zstd", "batch.size": "99999999999"}, true)
	assert.NoError(t, err)
}

func TestAPaceEndsWhenItIsCalledOff(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.Error(t, pace{time.Now(), 0}.wait(ctx, 0))
	assert.Error(t, pace{time.Now(), 1}.wait(ctx, 100))
	assert.NoError(t, pace{time.Now().Add(-time.Hour), 1}.wait(context.Background(), 100))
	assert.NoError(t, pace{time.Now(), -1}.wait(context.Background(), 100))
}
