package interop

// Apache Kafka and Barnabas are sent the same batches, byte for byte but for the producers' ids, while both compact all the time:
// keys of which a few come again and again, tombstones, idempotent producers, transactions that are committed and aborted, every
// codec. When both are clean up to the same offset, their logs must hold the same: batches, records, markers, offsets.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"barnabas/broker/record"
	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// compactedTopics and what is particular about them. In "kept" tombstones stay, in the others they go soon. What is sent to "expiring" in
// the first third of the time is too old to be kept.
var compactedTopics = map[string]map[string]string{
	"kept":     {"cleanup.policy": "compact", "delete.retention.ms": "86400000"},
	"passing":  {"cleanup.policy": "compact", "delete.retention.ms": "300"},
	"expiring": {"cleanup.policy": "compact,delete", "delete.retention.ms": "300", "retention.ms": "3600000"},
}

var compactedNames = []string{"kept", "passing", "expiring"}

const (
	compactionSegment = 20_000 // segment.bytes
	firstInTxn        = 4      // producers: 0 has no id, 1 to 3 are idempotent, 4 to 6 transactional
	lastProducer      = 6
)

// compactionTime is how long both are under load: $BARNABAS_COMPACTION_TIME, or what an ordinary run can spare.
func compactionTime(t *testing.T) time.Duration {
	if s := os.Getenv("BARNABAS_COMPACTION_TIME"); s != "" {
		d, err := time.ParseDuration(s)
		require.NoError(t, err)
		return d
	}
	return 20 * time.Second
}

// deed is one step of the load: a batch, or the end of a transaction.
type deed struct {
	topic    string
	producer int
	sequence int32
	codec    record.Codec
	records  []record.Record
	end      bool
	commit   bool
}

// compactionLoad makes the steps from a seed.
type compactionLoad struct {
	rng   *rand.Rand
	often *rand.Zipf
	began time.Time
	next  map[string]int32 // sequence, by producer and topic
	open  [lastProducer + 1]bool
	old   bool // the records have outlived retention.ms of "expiring"
	made  int
}

func newCompactionLoad(seed uint64) *compactionLoad {
	rng := rand.New(rand.NewPCG(seed, 6))
	return &compactionLoad{rng: rng, often: rand.NewZipf(rng, 1.2, 4, 800), began: time.Now(), next: map[string]int32{}}
}

func (l *compactionLoad) deed() deed {
	l.made++
	p := l.rng.IntN(lastProducer + 1)
	if p >= firstInTxn && l.open[p] && l.rng.IntN(4) == 0 {
		l.open[p] = false
		return deed{producer: p, end: true, commit: l.rng.IntN(3) > 0}
	}
	l.open[p] = p >= firstInTxn
	d := deed{topic: compactedNames[l.rng.IntN(len(compactedNames))], producer: p, codec: record.Codec(l.rng.IntN(5))}
	if l.old && p >= firstInTxn && d.topic == "expiring" {
		d.topic = "passing" // a marker is not old, and would keep what stands before it
	}
	at := l.began.UnixMilli() + int64(l.made)
	if l.old && d.topic == "expiring" {
		at -= 2 * time.Hour.Milliseconds()
	}
	for range 1 + l.rng.IntN(6) {
		r := record.Record{Timestamp: at, Key: fmt.Appendf(nil, "key-%d", l.often.Uint64())}
		if l.rng.IntN(6) > 0 {
			r.Value = fmt.Appendf(nil, "%d %s", l.made, strings.Repeat("value ", l.rng.IntN(50)))
		}
		d.records = append(d.records, r)
	}
	if p > 0 {
		k := fmt.Sprint(p, d.topic)
		d.sequence = l.next[k]
		l.next[k] += int32(len(d.records))
	}
	return d
}

// compactor is one of the two brokers.
type compactor struct {
	name   string
	broker *cluster.Broker
	client *kgo.Client
	ids    [lastProducer + 1]int64
	in     [lastProducer + 1]map[string]bool // topics of the open transaction
	ends   map[string]int64                  // of the log, by topic
}

func startCompactor(t *testing.T, name string, program cluster.Program) *compactor {
	c := cluster.StartProgram(t, program, zktest.Embedded(t).Addr(), 1, map[string]string{
		"log.cleaner.backoff.ms": "100", "log.retention.check.interval.ms": "300", "log.initial.task.delay.ms": "300",
		"log.cleaner.dedupe.buffer.size": "4000000", "log.cleaner.io.buffer.size": "200000",
		"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1", "transaction.state.log.num.partitions": "1",
	}, func(int) map[string]string { return nil })
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(int16(kmsg.AddPartitionsToTxn), 3) // later ones are for brokers
	k := &compactor{name: name, broker: c.Brokers[0], client: franz(t, c, kgo.MaxVersions(versions)), ends: map[string]int64{}}
	for topic, own := range compactedTopics {
		configs := map[string]*string{"segment.bytes": kmsg.StringPtr(fmt.Sprint(compactionSegment)), "min.cleanable.dirty.ratio": kmsg.StringPtr("0")} // of a log that grows all the time the last segment is hardly anything
		for name, value := range own {
			configs[name] = &value
		}
		_, err := kadm.NewClient(k.client).CreateTopic(lane.Patience(t), 1, 1, configs, topic)
		require.NoError(t, err)
	}
	c.WaitWhole(t, "kept", 1, 1)
	for p := 1; p <= lastProducer; p++ {
		req := kmsg.NewPtrInitProducerIDRequest()
		if p >= firstInTxn {
			req.TransactionalID, req.TransactionTimeoutMillis = transactionOf(p), 600_000
		}
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			resp, err := req.RequestWith(ctx, k.client)
			if err != nil || resp.ErrorCode != 0 {
				return false
			}
			k.ids[p], k.in[p] = resp.ProducerID, map[string]bool{}
			return true
		}, patience, 50*time.Millisecond, "%s gives no producer id", name)
	}
	return k
}

func transactionOf(producer int) *string { return kmsg.StringPtr(fmt.Sprint("txn-", producer)) }

func (k *compactor) do(ctx context.Context, d deed) error {
	if d.end {
		return k.end(ctx, d)
	}
	o := record.BuilderOptions{Codec: d.codec}
	if d.producer > 0 {
		o.Producer = &record.Producer{ID: k.ids[d.producer], BaseSequence: d.sequence, Transactional: d.producer >= firstInTxn}
	}
	b := record.NewBuilder(o)
	for _, r := range d.records {
		b.Append(r.Timestamp, r.Key, r.Value)
	}
	batch, err := b.Build()
	if err != nil {
		return err
	}
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 30_000
	if d.producer >= firstInTxn {
		req.TransactionID = transactionOf(d.producer)
		if err := k.join(ctx, d); err != nil {
			return err
		}
	}
	topic, p := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	topic.Topic, p.Records = d.topic, batch
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, k.client)
	if err != nil {
		return err
	}
	answer := resp.Topics[0].Partitions[0]
	k.ends[d.topic] = answer.BaseOffset + int64(len(d.records))
	return kerr.ErrorForCode(answer.ErrorCode)
}

// join adds the topic to the producer's transaction, as a client does before its first batch there.
func (k *compactor) join(ctx context.Context, d deed) error {
	for !k.in[d.producer][d.topic] {
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.TransactionalID, req.ProducerID = *transactionOf(d.producer), k.ids[d.producer]
		req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: d.topic, Partitions: []int32{0}}}
		resp, err := req.RequestWith(ctx, k.client)
		if err != nil {
			return err
		}
		switch code := resp.Topics[0].Partitions[0].ErrorCode; code {
		case 0:
			k.in[d.producer][d.topic] = true
		case kerr.ConcurrentTransactions.Code:
		default:
			return kerr.ErrorForCode(code)
		}
	}
	return nil
}

// end ends a transaction and waits for its markers, so that they stand where they stand in the other log.
func (k *compactor) end(ctx context.Context, d deed) error {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.Commit = *transactionOf(d.producer), k.ids[d.producer], d.commit
	resp, err := req.RequestWith(ctx, k.client)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return err
	}
	for topic := range k.in[d.producer] {
		k.ends[topic]++
		for {
			ends, err := kadm.NewClient(k.client).ListEndOffsets(ctx, topic)
			if err != nil {
				return err
			}
			if o, _ := ends.Lookup(topic, 0); o.Offset == k.ends[topic] {
				break
			}
		}
	}
	k.in[d.producer] = map[string]bool{}
	return nil
}

// cleanedTo is what the broker's checkpoint says of a topic.
func (k *compactor) cleanedTo(topic string) int64 {
	data, _ := os.ReadFile(filepath.Join(k.broker.Dir, "cleaner-offset-checkpoint"))
	for _, line := range strings.Split(string(data), "\n") {
		var name string
		var partition, offset int64
		if n, _ := fmt.Sscanf(line, "%s %d %d", &name, &partition, &offset); n == 3 && name == topic {
			return offset
		}
	}
	return -1
}

func (k *compactor) segments(t *testing.T, topic string) []string {
	files, err := filepath.Glob(filepath.Join(k.broker.Dir, topic+"-0", "*.log"))
	require.NoError(t, err)
	slices.Sort(files)
	return files
}

// first is the base offset of a topic's first segment.
func (k *compactor) first(t *testing.T, topic string) (base int64) {
	if files := k.segments(t, topic); len(files) > 0 { // none may have its name while a cleaning swaps
		_, err := fmt.Sscanf(filepath.Base(files[0]), "%d.log", &base)
		require.NoError(t, err)
	}
	return base
}

// batches reads a topic's files.
func (k *compactor) batches(t *testing.T, topic string) (all []record.Batch) {
	for _, name := range k.segments(t, topic) {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		for len(data) > 0 {
			b, rest, err := record.Next(data)
			require.NoError(t, err, "%s of %s", name, k.name)
			require.NoError(t, b.CheckCRC())
			all, data = append(all, b), rest
		}
	}
	return all
}

// described is what must agree of a topic's batches. Left out is what tells when something was cleaned away (delete horizons,
// the time of a batch that has lost everything) and what each coordinator's clock was.
func (k *compactor) described(t *testing.T, topic string) (out []string) {
	for _, b := range k.batches(t, topic) {
		producer, newest := slices.Index(k.ids[1:], b.ProducerID())+1, b.MaxTimestamp()
		if b.Count() == 0 || b.IsControl() {
			newest = 0
		}
		out = append(out, fmt.Sprintf("%d-%d by %d, sequence %d-%d, %d records, newest %d, %v %v %v", b.BaseOffset(), b.LastOffset(), producer, b.BaseSequence(), b.LastSequence(),
			b.Count(), newest, b.Codec(), b.IsTransactional(), b.IsControl()))
		for r, err := range b.Records(record.Limits{}) {
			require.NoError(t, err)
			if b.IsControl() {
				r.Timestamp = 0
			}
			out = append(out, fmt.Sprintf("  %d %d %q %q %v", r.Offset, r.Timestamp, r.Key, r.Value, r.Value == nil))
		}
	}
	return out
}

// read is what a consumer of committed records is given.
func (k *compactor) read(t *testing.T, topic string) (out []string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(k.broker.Addr), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	require.NoError(t, err)
	defer client.Close()
	for last := int64(-1); last < k.ends[topic]-1; {
		fetches := client.PollFetches(lane.Patience(t))
		require.NoError(t, fetches.Err(), "%s has given %d records up to offset %d of %d", k.name, len(out), last, k.ends[topic])
		fetches.EachRecord(func(r *kgo.Record) {
			out = append(out, fmt.Sprintf("%d %d %q %q %v", r.Offset, r.Timestamp.UnixMilli(), r.Key, r.Value, r.Value == nil))
			last = r.Offset
		})
	}
	return out
}

func TestApacheKafkaAndBarnabasCompactToTheSameLog(t *testing.T) {
	sides := []*compactor{startCompactor(t, "Kafka", cluster.Kafka("3.9.1")), startCompactor(t, "Barnabas", cluster.Barnabas)}
	both := func(what func(k *compactor) error) {
		t.Helper()
		var wg sync.WaitGroup
		for _, k := range sides {
			wg.Go(func() { assert.NoError(t, what(k), k.name) })
		}
		wg.Wait()
		if t.Failed() {
			t.FailNow()
		}
	}
	load, began, deeds := newCompactionLoad(6), time.Now(), 0
	give := func(list []deed) {
		t.Helper()
		both(func(k *compactor) error {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			for _, d := range list {
				if err := k.do(ctx, d); err != nil {
					return err
				}
			}
			return nil
		})
		require.Equal(t, sides[0].ends, sides[1].ends, "the same batches are at the same offsets")
		deeds += len(list)
	}
	giveUntil := func(passed time.Duration) {
		t.Helper()
		for time.Since(began) < passed {
			var list []deed
			for range 40 {
				list = append(list, load.deed())
			}
			give(list)
		}
	}
	under := compactionTime(t)
	load.old = true
	giveUntil(under / 3)
	for _, k := range sides {
		require.Eventually(t, func() bool { return k.first(t, "expiring") == k.ends["expiring"] }, patience, 20*time.Millisecond, "%s keeps what is too old", k.name)
	}
	load.old = false
	giveUntil(under)
	for p := firstInTxn; p <= lastProducer; p++ {
		if load.open[p] {
			give([]deed{{producer: p, end: true, commit: true}})
		}
	}

	var cleanings []int
	for i, said := range []string{"Beginning cleaning of log", "compacted up to offset"} {
		cleanings = append(cleanings, strings.Count(sides[i].broker.LogTail(1<<30), said))
		require.Positive(t, cleanings[i], "%s has not cleaned under load", sides[i].name)
	}

	// Rolled and cleaned, again and again, until all has gone that has to: a tombstone gets its horizon, goes, and then so does the marker
	// of its transaction.
	for range 6 {
		active := map[string]int64{}
		for range 2 { // each fills a segment
			for _, topic := range compactedNames {
				active[topic] = sides[0].ends[topic]
				give([]deed{{topic: topic, records: []record.Record{{Timestamp: load.began.UnixMilli(), Key: []byte("filler"), Value: make([]byte, compactionSegment-200)}}}})
			}
		}
		for _, k := range sides {
			for topic, offset := range active {
				if !assert.Eventually(t, func() bool { return k.cleanedTo(topic) == offset }, patience+under/6, 20*time.Millisecond) {
					t.Fatalf("%s has cleaned %s up to %d of %d", k.name, topic, k.cleanedTo(topic), offset)
				}
			}
		}
		time.Sleep(400 * time.Millisecond) // delete.retention.ms passes
	}

	for _, topic := range compactedNames {
		theirs, ours := sides[0].described(t, topic), sides[1].described(t, topic)
		require.Equal(t, theirs, ours, topic)
		require.Equal(t, sides[0].read(t, topic), sides[1].read(t, topic), topic)
		t.Logf("%s: of %d offsets there are %d lines left", topic, sides[0].ends[topic], len(ours))
	}
	t.Logf("%d deeds in %v, while Kafka has cleaned %d times, Barnabas %d times", deeds, under, cleanings[0], cleanings[1])
}
