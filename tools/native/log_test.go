package native

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// aLog makes a log directory with one log, of three batches with two records each, and a clean stop.
func aLog(t *testing.T) (dir, segment string) {
	t.Helper()
	dir = t.TempDir()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	m, err := commitlog.OpenDriven(commitlog.ManagerConfig{Dirs: []string{dir}, FS: vfs.OS, Default: commitlog.DefaultConfig(), Now: time.Now, Log: logrus.NewEntry(quiet)}, time.Now())
	require.NoError(t, err)
	l, err := m.GetOrCreate(commitlog.TopicPartition{Topic: "orders", Partition: 4}, commitlog.TopicID{}, false)
	require.NoError(t, err)
	for i := range 3 {
		o := record.BuilderOptions{Codec: record.Codec(i)}
		if i == 2 {
			o.Producer = &record.Producer{ID: 9, BaseSequence: 0}
		}
		b := record.NewBuilder(o)
		b.Append(int64(1000*i), nil, []byte{0xff})
		b.Append(int64(1000*i+1), []byte("k"), []byte("text"), record.Header{Key: "h", Value: []byte("1")})
		batch, err := b.Build()
		require.NoError(t, err)
		_, err = l.AppendAsLeader(batch, 7, commitlog.AppendOptions{RequireV2: true})
		require.NoError(t, err)
	}
	require.NoError(t, m.Close())
	return dir, filepath.Join(dir, "orders-4", "00000000000000000000.log")
}

func TestBatchesAndRecordsOfALogArePrinted(t *testing.T) {
	dir, segment := aLog(t)
	code, out, _ := run("log", "dump", segment)
	assert.Zero(t, code)
	lines := strings.Split(out, "\n")
	require.Len(t, lines, 5, out)
	assert.Equal(t, []string{"SEGMENT", "BASE", "LAST", "POSITION", "BYTES", "CODEC", "EPOCH", "PRODUCER", "SEQUENCE", "STATE"}, strings.Fields(lines[0]))
	first := strings.Fields(lines[1])
	assert.Equal(t, []string{"00000000000000000000", "0", "1", "0"}, first[:4])
	assert.Equal(t, []string{"none", "7", "-", "-", "valid"}, first[5:])
	assert.Equal(t, []string{"snappy", "7", "9", "0", "valid"}, strings.Fields(lines[3])[5:])

	code, out, _ = run("log", "dump", filepath.Join(dir, "orders-4"), "--records", "-o", "json-rows", "--from", "3", "--max", "2")
	assert.Zero(t, code)
	assert.Equal(t, `{"topic":"orders","partition":4,"offset":3,"timestamp":1001,"timestamp_type":"create","headers":[{"key":"h","value":"1"}],"key":"k","value":"text"}`+"\n"+
		`{"topic":"orders","partition":4,"offset":4,"timestamp":2000,"timestamp_type":"create","headers":[],"key":null,"value":null,"value_base64":"/w=="}`+"\n", out)
	back, err := parseRow([]byte(strings.Split(out, "\n")[1]))
	require.NoError(t, err)
	r, err := back.record()
	require.NoError(t, err)
	assert.Equal(t, []byte{0xff}, r.Value, "produce takes it")

	code, _, stderr := run("log", "dump", dir)
	assert.Equal(t, WrongUsage, code)
	assert.Contains(t, stderr, "is neither a segment file nor a partition's directory")
	code, _, _ = run("log", "dump", "/no/such")
	assert.Equal(t, Failed, code)
}

func TestDamageIsToldWhereItIs(t *testing.T) {
	dir, segment := aLog(t)
	verify := func(args ...string) (Exit, verifiedLogs) {
		t.Helper()
		code, out, stderr := run(append([]string{"log", "verify", dir, "-o", "json"}, args...)...)
		var d verifiedLogs
		require.NoError(t, json.Unmarshal([]byte(out), &d), "%s%s", out, stderr)
		require.Len(t, d.Logs, 1)
		return code, d
	}
	code, d := verify()
	assert.Zero(t, code)
	assert.True(t, d.Sound)
	assert.Equal(t, &startOfLog{Clean: true, End: 6}, d.Logs[0].Start)
	assert.Equal(t, []any{"orders", int32(4), 1}, []any{d.Logs[0].Topic, d.Logs[0].Partition, d.Logs[0].Segments})
	_, out, _ := run("log", "verify", dir)
	assert.Regexp(t, `(?m)^orders-4 +1 +\d+ +0 +6 +0 +use it as it is$`, out)

	data, err := os.ReadFile(segment)
	require.NoError(t, err)
	data[len(data)-1] ^= 1
	require.NoError(t, os.WriteFile(segment, data, 0o644))
	code, d = verify("--no-start")
	assert.Equal(t, Unhealthy, code)
	assert.Nil(t, d.Logs[0].Start)
	require.NotEmpty(t, d.Logs[0].Problems)
	assert.Positive(t, *d.Logs[0].Problems[0].Position)
	_, out, _ = run("log", "dump", segment)
	assert.Contains(t, out, "CHECKSUM WRONG")

	require.NoError(t, os.Remove(filepath.Join(dir, ".kafka_cleanshutdown")))
	require.NoError(t, os.Remove(filepath.Join(dir, "recovery-point-offset-checkpoint")))
	_, d = verify()
	s := d.Logs[0].Start
	assert.Equal(t, []any{false, true, int64(4)}, []any{s.Clean, s.Recovers, s.End})
	assert.Positive(t, s.Cut)
	assert.Equal(t, "cut "+count(int(s.Cut), "byte")+" that were not whole", s.would())
	after, err := os.ReadFile(segment)
	require.NoError(t, err)
	assert.Equal(t, data, after, "nothing was changed")
}
