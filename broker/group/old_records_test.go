package group

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
)

// A log of __consumer_offsets that Kafka 0.10.2.2, 1.1.1 and 2.4.1 wrote one after the
// other, under inter.broker.protocol.version 0.9.0, 0.10.2, 1.1, 2.2 and 2.4, and under
// each offsets.topic.compression.codec of the old formats. Each age has a group of its
// own, of one member that commits 3, 13 and 23 at last; two of them leave.
func logOfAllAges(t testing.TB) (entries []record.Entry) {
	data, err := os.ReadFile(filepath.Join("testdata", "kafka-0.10.2.2-to-2.4.1.log"))
	require.NoError(t, err)
	for len(data) > 0 {
		e, rest, err := record.NextEntry(data)
		require.NoError(t, err)
		entries = append(entries, e)
		data = rest
	}
	return entries
}

func TestALogThatGrewThroughTheAgesIsLoaded(t *testing.T) {
	type format struct{ magic, codec byte }
	formats, wrapped := map[format]bool{}, 0
	groupVersions, offsetVersions := map[byte]bool{}, map[byte]bool{}
	l := NewLoader(record.Limits{})
	for _, e := range logOfAllAges(t) {
		f := format{e[16], e[17] & 7}
		if f.magic == 2 {
			f.codec = e[22] & 7
		}
		formats[f] = true
		records := 0
		for r, err := range e.Records(record.Limits{}) {
			require.NoError(t, err)
			k, err := readKey(r.Key)
			require.NoError(t, err)
			if k.isOffset {
				offsetVersions[r.Value[1]] = true
			} else {
				groupVersions[r.Value[1]] = true
			}
			records++
		}
		if records > 1 && f.magic == 1 {
			wrapped++
		}
		l.Add(e)
	}
	require.NoError(t, l.First)
	assert.Equal(t, map[format]bool{{0, 0}: true, {0, 1}: true, {0, 3}: true, {1, 0}: true, {1, 1}: true, {1, 2}: true, {1, 3}: true, {2, 0}: true}, formats)
	assert.Equal(t, 9, wrapped, "wrappers in which offsets count from the first")
	assert.Equal(t, map[byte]bool{0: true, 1: true, 2: true, 3: true}, groupVersions)
	assert.Equal(t, map[byte]bool{1: true, 3: true}, offsetVersions)

	d := newDesk(t, deskConfig())
	d.core.Loaded(d.nowMs, l)
	d.work()
	for name, state := range map[string]string{
		"g-v0": "Stable", "g-v0-gzip": "Empty", "g-v0-lz4": "Stable", "g-v1": "Stable", "g-v1-gzip": "Empty", "g-v1-snappy": "Stable", "g-v1-lz4": "Stable",
		"g-111": "Stable", "g-241-22": "Stable", "g-241": "Stable",
	} {
		g := d.core.Describe(name)
		require.Equal(t, state, g.State, name)
		if state == "Stable" {
			require.Len(t, g.Members, 1, name)
			assert.Equal(t, "client-"+name, g.Members[0].ClientID)
			assert.Equal(t, "/127.0.0.1", g.Members[0].ClientHost)
			assert.Equal(t, "range", g.Protocol)
			assert.NoError(t, d.heartbeat(name, d.core.groups[name].generation, g.Members[0].MemberID), name)
		}
		for p, want := range []int64{3, 13, 23} {
			o := d.core.groups[name].committed[TopicPartition{"t", int32(p)}]
			assert.Equal(t, want, o.offset, name)
			assert.Equal(t, int64(-1), int64(o.leaderEpoch))
		}
	}
	assert.Len(t, d.core.groups, 10)
}

// Version 0 of an offset's key and value is of Kafka 0.8.2.
func TestOffsetsOfTheFirstVersionAreLoaded(t *testing.T) {
	o := &offset{offset: 7, leaderEpoch: -1, metadata: "m", commitMs: startMs, expireMs: NoTime}
	k := offsetKey("g", TopicPartition{"t", 0})
	k[1] = 0
	value := Format{OffsetVersion: 0}.offsetValue(o)
	require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 1, 'm'}, value[:13])
	require.Len(t, value, 13+8)
	l := NewLoader(record.Limits{})
	l.Add(record.AppendMessage(nil, 0, record.None, false, 5, 0, k, value))
	require.NoError(t, l.First)
	d := newDesk(t, deskConfig())
	d.core.Loaded(d.nowMs, l)
	f := d.fetch("g", "t", true)
	assert.Equal(t, int64(7), f.Offset)
	assert.Equal(t, "m", f.Metadata)
	got := d.core.groups["g"].committed[TopicPartition{"t", 0}]
	assert.Equal(t, int64(5), got.at)
	assert.Equal(t, int64(startMs), got.commitMs)
}
