package commitlog

import (
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex // background goroutines read it
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func newClock() *clock { return &clock{at: time.UnixMilli(1_700_000_000_000)} }

// opened is a manager under test over one or more directories.
type opened struct {
	*Manager
	t     testing.TB
	clock *clock
}

func smallConfig() Config {
	c := DefaultConfig()
	c.SegmentBytes = 16384
	c.SegmentIndexBytes = 4096
	c.IndexInterval = 4096
	c.FileDeleteDelayMs = 1000
	return c
}

func openManager(t testing.TB, fs vfs.FS, c Config, clk *clock, dirs ...string) *opened {
	t.Helper()
	return openWith(t, ManagerConfig{Dirs: dirs, FS: fs, Default: c}, clk)
}

// openWith opens a manager whose clockwork stands still: tests call what it would do.
func openWith(t testing.TB, cfg ManagerConfig, clk *clock) *opened {
	t.Helper()
	m, err := Open(still(cfg, clk))
	require.NoError(t, err)
	o := &opened{m, t, clk}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

func still(cfg ManagerConfig, clk *clock) ManagerConfig {
	cfg.Now, cfg.Log = clk.now, quiet()
	cfg.RetentionCheck, cfg.CheckpointInterval, cfg.HighWatermarkInterval = time.Hour, time.Hour, time.Hour
	cfg.StartOffsetCheckpointInterval, cfg.ProducerIDCheck = time.Hour, time.Hour
	if cfg.ProducerIDExpiration == 0 {
		cfg.ProducerIDExpiration = 100 * 365 * 24 * time.Hour
	}
	return cfg
}

var tp0 = TopicPartition{"topic", 0}

func (o *opened) log() *Log {
	o.t.Helper()
	l, err := o.GetOrCreate(tp0, TopicID{}, false)
	require.NoError(o.t, err)
	return l
}

// batchSpec describes a batch to build.
type batchSpec struct {
	count   int
	size    int // of each value
	ts      int64
	step    int64 // ms from record to record
	codec   record.Codec
	pid     int64 // 0: none
	epoch   int16
	seq     int32
	txn     bool
	keys    bool
	builder record.BuilderOptions
}

func (s batchSpec) build(t testing.TB) []byte {
	t.Helper()
	o := s.builder
	o.Codec = s.codec
	if s.pid > 0 {
		o.Producer = &record.Producer{ID: s.pid, Epoch: s.epoch, BaseSequence: s.seq, Transactional: s.txn}
	}
	b := record.NewBuilder(o)
	for i := range max(1, s.count) {
		value := make([]byte, s.size)
		for j := range value {
			value[j] = byte('a' + (i+j)%23)
		}
		var key []byte
		if s.keys {
			key = []byte{byte(i)}
		}
		b.Append(s.ts+int64(i)*s.step, key, value)
	}
	out, err := b.Build()
	require.NoError(t, err)
	return out
}

func produce(t testing.TB, l *Log, s batchSpec) AppendInfo {
	t.Helper()
	info, err := l.AppendAsLeader(s.build(t), 0, AppendOptions{RequireV2: true})
	require.NoError(t, err)
	return info
}

// readAll returns every record from offset on that a reader with this bound sees.
func readAll(t testing.TB, l *Log, from, upTo int64) []record.Record {
	t.Helper()
	var out []record.Record
	for from < upTo {
		r, err := l.Read(from, ReadOptions{MaxBytes: 3000, MinOneBatch: true, UpTo: upTo})
		require.NoError(t, err)
		data, err := r.Range.ReadAll()
		require.NoError(t, err)
		r.Range.Release()
		require.Len(t, data, r.Bytes)
		next := from
		for len(data) > 0 {
			b, rest, err := record.NextEntry(data)
			if err == io.ErrUnexpectedEOF {
				break
			}
			require.NoError(t, err)
			require.Less(t, b.LastOffset(), upTo, "a batch behind the bound was read")
			for rec, err := range b.Records(record.Limits{}) {
				require.NoError(t, err)
				if rec.Offset >= from {
					rec.Value = append([]byte(nil), rec.Value...)
					rec.Key = append([]byte(nil), rec.Key...)
					out = append(out, rec)
				}
			}
			next = b.LastOffset() + 1
			data = rest
		}
		if next == from {
			return out
		}
		from = next
	}
	return out
}

// roll starts a new segment unless the active one is empty.
func roll(l *Log) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active().size.Load() == 0 {
		return nil
	}
	return l.rollLocked(l.EndOffset())
}

// abortedNow lists the aborted transactions that have records in [from, upTo) as the log is now.
func abortedNow(l *Log, from, upTo int64) ([]AbortedTxn, error) {
	return l.abortedIn(l.list(), from, upTo)
}

// isOpen tells whether a producer has a transaction open.
func isOpen(l *Log, producerID int64) bool {
	return slices.ContainsFunc(l.ProducerStates(), func(p ProducerState) bool {
		return p.ProducerID == producerID && p.TxnStartOffset != noOffset
	})
}
