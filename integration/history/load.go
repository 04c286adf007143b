package history

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"barnabas/integration/lane"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// NameSize is how many bytes at the beginning of a value name the record; the rest is padding.
const NameSize = 12

// AppendTo appends the name as values have it, seven bits to a byte: Java's programs copy values as text, which leaves only such bytes as they are. So a producer is below 2^28, a number
// below 2^56.
func (n Name) AppendTo(value []byte) []byte {
	for shift := 21; shift >= 0; shift -= 7 {
		value = append(value, byte(n.Producer>>shift)&0x7f)
	}
	for shift := 49; shift >= 0; shift -= 7 {
		value = append(value, byte(n.Number>>shift)&0x7f)
	}
	return value
}

// NameOf is the name at the beginning of a value, which must be long enough.
func NameOf(value []byte) (n Name) {
	for _, b := range value[:4] {
		n.Producer = n.Producer<<7 | uint32(b)
	}
	for _, b := range value[4:NameSize] {
		n.Number = n.Number<<7 | uint64(b)
	}
	return n
}

const (
	progressTimeout = 3 * time.Minute
	readTimeout     = 2 * time.Minute
)

// Config is a load.
type Config struct {
	Seeds     []string
	Readers   []string // seeds for reading back, in clear text; without any: Seeds
	Topic     string
	Producers int
	PerSecond int                    // records of each producer; 0 is as fast as the brokers take them
	MaxValue  int                    // bytes of the largest value
	Buffered  int                    // records that a producer has under way; 0 is 500
	Options   []kgo.Opt              // without any: idempotent, acks=all
	Codecs    []kgo.CompressionCodec // that the producers take in turn; without any: the client's choice
}

// Load is producers at work.
type Load struct {
	cfg     Config
	cancel  context.CancelFunc // no more records
	abandon context.CancelFunc // of those under way, no more tries
	working sync.WaitGroup

	mu      sync.Mutex
	acks    []Ack
	refused map[string]int
}

// Start starts the producers. Each has an identity of its own, as another process would.
func Start(t testing.TB, cfg Config) *Load {
	t.Helper()
	if cfg.Buffered == 0 {
		cfg.Buffered = 500
	}
	ctx, cancel := context.WithCancel(context.Background())
	tries, abandon := context.WithCancel(context.Background())
	l := &Load{cfg: cfg, cancel: cancel, abandon: abandon, refused: map[string]int{}}
	t.Cleanup(l.end)
	for id := range uint32(cfg.Producers) {
		client, err := kgo.NewClient(append([]kgo.Opt{
			kgo.SeedBrokers(cfg.Seeds...), kgo.DefaultProduceTopic(cfg.Topic), kgo.RecordPartitioner(kgo.UniformBytesPartitioner(4<<10, false, false, nil)),
			kgo.MetadataMinAge(50 * time.Millisecond), kgo.MaxBufferedRecords(cfg.Buffered), kgo.ProducerLinger(time.Millisecond), kgo.RecordRetries(1 << 30),
			// A broker that has just started, or has not been told of a new topic yet, answers that there is no such topic; the client would believe it after four times.
			kgo.UnknownTopicRetries(-1),
			kgo.AlwaysRetryEOF(), // a broker that dies under a new connection is not one that wants TLS
			kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		}, cfg.options(id)...)...)
		require.NoError(t, err)
		l.working.Go(func() {
			defer client.Close()
			l.produce(ctx, tries, client, id+1)
		})
	}
	return l
}

func (cfg *Config) options(producer uint32) []kgo.Opt {
	if len(cfg.Codecs) == 0 {
		return cfg.Options
	}
	return append([]kgo.Opt{kgo.ProducerBatchCompression(cfg.Codecs[int(producer)%len(cfg.Codecs)])}, cfg.Options...)
}

func (l *Load) produce(ctx, tries context.Context, client *kgo.Client, producer uint32) {
	began := time.Now()
	for n := uint64(1); ctx.Err() == nil; n++ {
		value := append(Name{producer, n}.AppendTo(nil), make([]byte, rand.IntN(max(1, l.cfg.MaxValue-NameSize)))...)
		client.Produce(tries, &kgo.Record{Value: value}, func(r *kgo.Record, err error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if err != nil {
				l.refused[err.Error()]++
				return
			}
			l.acks = append(l.acks, Ack{Name{producer, n}, r.Partition, r.Offset})
		})
		if l.cfg.PerSecond > 0 && n%50 == 0 {
			select {
			case <-time.After(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(l.cfg.PerSecond)))):
			case <-ctx.Done():
			}
		}
	}
	flush, cancel := context.WithTimeout(context.Background(), progressTimeout)
	defer cancel()
	_ = client.Flush(flush) // what is still not answered is refused by Close
}

// end lets go of what a cluster that has come to a standstill will never answer.
func (l *Load) end() {
	l.cancel()
	defer time.AfterFunc(progressTimeout, l.abandon).Stop()
	l.working.Wait()
}

// Acked is how many records were acknowledged so far.
func (l *Load) Acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acks)
}

// Progress waits until n more records are acknowledged.
func (l *Load) Progress(t testing.TB, n int, when string) {
	t.Helper()
	from := l.Acked()
	limit := progressTimeout + time.Duration(n)*5*time.Millisecond // a slow machine takes some hundreds a second
	require.Eventually(t, func() bool { return l.Acked() >= from+n }, limit, 5*time.Millisecond, "%d records are acknowledged %s", n, when)
}

// Refused tells the errors that producers were given, with their numbers; empty if there was none. Errors that a producer gets over by itself are not among them.
func (l *Load) Refused() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for _, err := range slices.Sorted(maps.Keys(l.refused)) {
		lines = append(lines, fmt.Sprintf("%d times %s", l.refused[err], err))
	}
	return strings.Join(lines, "; ")
}

// Finish ends the load, waits for what is under way, and reads everything back. It returns the faults.
func (l *Load) Finish(t testing.TB, promise Promise) []string {
	t.Helper()
	l.end()
	seeds := l.cfg.Readers
	if seeds == nil {
		seeds = l.cfg.Seeds
	}
	logs := ReadAll(t, seeds, l.cfg.Topic)
	return Judge(l.acks, logs, promise)
}

// ReadAll reads a topic from start to end.
func ReadAll(t testing.TB, seeds []string, topic string) map[int32][]Read {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.UnknownTopicRetries(-1), kgo.AlwaysRetryEOF())
	require.NoError(t, err)
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(lane.Patience(t), topic)
	require.NoError(t, err)
	require.NoError(t, ends.Error())
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	logs := map[int32][]Read{}
	for left > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		fetches := client.PollFetches(ctx)
		cancel()
		require.NoError(t, fetches.Err(), "%d records are left to be read", left)
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			require.GreaterOrEqual(t, len(r.Value), NameSize)
			logs[r.Partition] = append(logs[r.Partition], Read{NameOf(r.Value), r.Offset})
			left--
		}
	}
	return logs
}

// ReadCommitted reads a topic from start to end as a read_committed consumer does, and gives each record to each, those of one partition in their order.
func ReadCommitted(t testing.TB, seeds []string, topic string, each func(*kgo.Record)) {
	t.Helper()
	// Markers are kept, since a partition may end with them.
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.UnknownTopicRetries(-1), kgo.AlwaysRetryEOF(), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	require.NoError(t, err)
	defer client.Close()
	ends, err := kadm.NewClient(client).ListCommittedOffsets(lane.Patience(t), topic)
	require.NoError(t, err)
	require.NoError(t, ends.Error())
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	for len(left) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		fetches := client.PollFetches(ctx)
		cancel()
		require.NoError(t, fetches.Err(), "partitions are left to be read: %v", left)
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			if end, reading := left[r.Partition]; reading && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
			if !r.Attrs.IsControl() {
				each(r)
			}
		}
	}
}
