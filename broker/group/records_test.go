package group

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/record"
)

// kafkasLog is a log of __consumer_offsets that Apache Kafka wrote: a group of one
// member, its commits, and its leaving.
func kafkasLog(t testing.TB, version string) (batches []record.Batch) {
	data, err := os.ReadFile(filepath.Join("testdata", "kafka-"+version+".log"))
	require.NoError(t, err)
	for len(data) > 0 {
		b, rest, err := record.Next(data)
		require.NoError(t, err)
		batches = append(batches, b)
		data = rest
	}
	return batches
}

func TestKafkasOffsetsAreLoaded(t *testing.T) {
	for _, version := range []string{"3.9.1", "2.8.2"} {
		t.Run(version, func(t *testing.T) {
			d := newDesk(t, deskConfig())
			d.log = kafkasLog(t, version)
			d.restart()
			g := d.core.Describe("fixture-group")
			assert.Equal(t, "Empty", g.State)
			assert.Equal(t, "consumer", g.ProtocolType)
			assert.Positive(t, d.fetch("fixture-group", "txn", true).Offset)
			assert.Positive(t, d.fetch("fixture-group", "fmt-v2-none", true).Offset)
			assert.Positive(t, d.core.groups["fixture-group"].generation)

			d.log = d.log[:2] // while its member was there
			d.restart()
			g = d.core.Describe("fixture-group")
			assert.Equal(t, "Stable", g.State)
			require.Len(t, g.Members, 1)
			assert.Equal(t, "/127.0.0.1", g.Members[0].ClientHost)
			assert.Equal(t, "cooperative-sticky", g.Protocol)
			assert.Equal(t, map[string]bool{"fmt-v2-none": true, "txn": true}, d.core.groups["fixture-group"].subscribed)
		})
	}
}

// Every record that Kafka wrote is written here with the same bytes.
func TestRecordsAreThoseOfKafka(t *testing.T) {
	for _, version := range []string{"3.9.1", "2.8.2"} {
		for _, b := range kafkasLog(t, version) {
			for r, err := range b.Records(record.Limits{}) {
				require.NoError(t, err)
				k, err := readKey(r.Key)
				require.NoError(t, err)
				if k.isOffset {
					assert.Equal(t, r.Key, offsetKey(k.group, k.tp))
					o, err := readOffset(r.Value)
					require.NoError(t, err)
					assert.Equal(t, r.Value, FormatSince23.offsetValue(&o))
					continue
				}
				assert.Equal(t, r.Key, groupKey(k.group))
				g, err := readGroup(k.group, r.Value)
				require.NoError(t, err)
				assert.Equal(t, r.Value, FormatSince23.groupValue(g, g.assignments()))
			}
		}
	}
}

func TestOlderAndNewerValuesAreRead(t *testing.T) {
	o := &offset{offset: 5, leaderEpoch: 3, metadata: "m", commitMs: 10, expireMs: NoTime}
	for version, epoch := range map[int16]int32{1: -1, 2: -1, 3: 3, 4: 3} {
		got, err := readOffset(Format{OffsetVersion: version}.offsetValue(o))
		require.NoError(t, err)
		assert.Equal(t, offset{offset: 5, leaderEpoch: epoch, metadata: "m", commitMs: 10, expireMs: NoTime}, got)
	}
	expires := *o
	expires.expireMs = 99
	assert.Equal(t, byte(1), FormatSince23.offsetValue(&expires)[1], "version 1 alone has a field for it")
	got, err := readOffset(FormatSince23.offsetValue(&expires))
	require.NoError(t, err)
	assert.Equal(t, int64(99), got.expireMs)

	d := newDesk(t, deskConfig())
	first := d.join(static("g", "i", "t"))
	d.pass(3000)
	g := d.core.groups["g"]
	for version := int16(0); version <= 4; version++ {
		f := Format{GroupVersion: version}
		read, err := readGroup("g", f.groupValue(g, map[string][]byte{first.value.MemberID: []byte("A")}))
		require.NoError(t, err)
		m := read.members[first.value.MemberID]
		assert.Equal(t, []byte("A"), m.assignment)
		assert.Equal(t, version >= 3, m.isStatic())
		if version == 0 {
			assert.Equal(t, m.sessionTimeoutMs, m.rebalanceTimeoutMs)
		}
		assert.Equal(t, version >= 2, read.stateMs != NoTime)
	}
}

// One record that cannot be read harms nobody else, and ends no loading.
func TestBadRecordsAreLeftOut(t *testing.T) {
	d := newDesk(t, deskConfig())
	d.commit(commitOne("g", NoGeneration, "", "t", 1))
	b := record.NewBuilder(record.BuilderOptions{BaseOffset: d.next})
	for _, kv := range [][2][]byte{{{0, 9, 1}, {1}}, {{0}, {1}}, {nil, {1}}, {offsetKey("g", TopicPartition{"u", 0}), {0, 7}}, {groupKey("g"), {0, 3, 0xff}}} {
		b.Append(d.nowMs, kv[0], kv[1])
	}
	bad, err := b.Build()
	require.NoError(t, err)
	l := NewLoader(record.Limits{})
	for _, batch := range append(d.log, bad) {
		l.Add(record.Entry(batch))
	}
	assert.Equal(t, 5, l.Bad)
	d.core = NewCore(d.core.cfg)
	d.core.Loaded(d.nowMs, l)
	assert.Len(t, d.core.Take().Remarks, 1)
	assert.Equal(t, int64(1), d.fetch("g", "t", true).Offset)
}

func FuzzRecords(f *testing.F) {
	for _, version := range []string{"3.9.1", "2.8.2"} {
		for _, b := range kafkasLog(f, version) {
			for r := range b.Records(record.Limits{}) {
				f.Add(append([]byte(nil), r.Key...), append([]byte(nil), r.Value...))
			}
		}
	}
	f.Fuzz(func(t *testing.T, k, v []byte) {
		b := record.NewBuilder(record.BuilderOptions{})
		b.Append(1, k, v)
		batch, err := b.Build()
		require.NoError(t, err)
		l := NewLoader(record.Limits{})
		l.Add(record.Entry(batch))
		c := NewCore(CoreConfig{MaxSize: 1, Format: FormatSince23, NewID: func() string { return "x" }})
		c.Loaded(1, l)
		for _, g := range c.List() {
			c.Describe(g.Group)
			c.Join(1, &JoinRequest{Group: g.Group, ProtocolType: "consumer", Protocols: []Protocol{{Name: "range"}}}, func(JoinResult) {})
		}
		c.Expire(1 << 40)
		c.Tick(1 << 41)
		c.Unload(1 << 42)
		require.Empty(t, c.groups)
	})
}

func FuzzSubscription(f *testing.F) {
	f.Add(says("a", "bcd"))
	f.Add([]byte{0, 1, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		topics := map[string]bool{}
		if !readSubscription(b, topics) {
			return
		}
		var m kmsg.ConsumerMemberMetadata
		if m.ReadFrom(b) == nil {
			for _, name := range m.Topics {
				require.True(t, topics[name])
			}
		}
	})
}

// What a new leader does with a million offsets of 10,000 groups, as they lie in the
// log when everybody commits for himself.
func BenchmarkLoad(b *testing.B) {
	const groups, partitions = 10_000, 100
	var log []record.Batch
	for g := range groups {
		next := record.NewBuilder(record.BuilderOptions{BaseOffset: int64(g * partitions)})
		for p := range int32(partitions) {
			v := &offset{offset: int64(g), leaderEpoch: -1, commitMs: startMs, expireMs: NoTime}
			next.Append(startMs, offsetKey(fmt.Sprint("holder-", g), TopicPartition{"topic", p}), FormatSince23.offsetValue(v))
		}
		batch, err := next.Build()
		require.NoError(b, err)
		log = append(log, batch)
	}
	b.ReportAllocs()
	for b.Loop() {
		l := NewLoader(record.Limits{})
		for _, batch := range log {
			l.Add(record.Entry(batch))
		}
		core := NewCore(deskConfig())
		core.Loaded(startMs, l)
		require.Len(b, core.groups, groups)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(groups*partitions), "ns/offset")
}
