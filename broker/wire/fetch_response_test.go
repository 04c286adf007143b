package wire

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/vfs"
)

// flatten reads a response as it would go onto the wire.
func flatten(t testing.TB, r Response) []byte {
	t.Helper()
	var out []byte
	for _, part := range r.Parts {
		out = append(out, part.Bytes...)
		piece, err := part.Range.ReadAll()
		require.NoError(t, err)
		out = append(out, piece...)
	}
	require.EqualValues(t, len(out), r.Size())
	return out
}

// recordFile is a file to take ranges from.
func recordFile(t testing.TB) (vfs.File, []byte) {
	t.Helper()
	content := make([]byte, 1<<20)
	for i := range content {
		content[i] = byte(i * 31 >> 3)
	}
	name := filepath.Join(t.TempDir(), "0.log")
	require.NoError(t, os.WriteFile(name, content, 0o600))
	file, err := vfs.OS.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file, content
}

// randomFetch makes the same response twice: ours, and kmsg's with the records in memory.
func randomFetch(rnd *rand.Rand, version int16, file vfs.File, content []byte, pins *int) (*FetchResponse, *kmsg.FetchResponse) {
	ours, theirs := &FetchResponse{}, kmsg.NewPtrFetchResponse()
	ours.ThrottleMs = rnd.Int32()
	ours.ErrorCode, ours.SessionID = int16(rnd.IntN(100)), rnd.Int32()
	theirs.ThrottleMillis, theirs.ErrorCode, theirs.SessionID = ours.ThrottleMs, ours.ErrorCode, ours.SessionID
	for range rnd.IntN(4) {
		topic := FetchTopic{Topic: string(randomBytes(rnd, 300))}
		copy(topic.TopicID[:], randomBytes(rnd, 40))
		their := kmsg.NewFetchResponseTopic()
		their.Topic, their.TopicID = topic.Topic, topic.TopicID
		for range rnd.IntN(4) {
			p, tp := randomPartition(rnd, version, file, content, pins)
			topic.Partitions = append(topic.Partitions, p)
			their.Partitions = append(their.Partitions, tp)
		}
		ours.Topics = append(ours.Topics, topic)
		theirs.Topics = append(theirs.Topics, their)
	}
	for range rnd.IntN(3) {
		b := FetchBroker{NodeID: rnd.Int32(), Host: string(randomBytes(rnd, 200)), Port: rnd.Int32()}
		if rnd.IntN(2) == 0 {
			b.Rack = kmsg.StringPtr(string(randomBytes(rnd, 10)))
		}
		ours.Brokers = append(ours.Brokers, b)
		if version >= 16 {
			their := kmsg.NewFetchResponseBroker()
			their.NodeID, their.Host, their.Port, their.Rack = b.NodeID, b.Host, b.Port, b.Rack
			theirs.Brokers = append(theirs.Brokers, their)
		}
	}
	return ours, theirs
}

func randomPartition(rnd *rand.Rand, version int16, file vfs.File, content []byte, pins *int) (FetchPartition, kmsg.FetchResponseTopicPartition) {
	p, their := NewFetchPartition(rnd.Int32()), kmsg.NewFetchResponseTopicPartition()
	p.ErrorCode = int16(rnd.IntN(100))
	p.HighWatermark, p.LastStableOffset, p.LogStartOffset = rnd.Int64(), rnd.Int64(), rnd.Int64()
	if rnd.IntN(2) == 0 {
		p.PreferredReadReplica = rnd.Int32()
	}
	if rnd.IntN(2) == 0 {
		p.DivergingEpoch, p.DivergingEndOffset = rnd.Int32(), rnd.Int64()
	}
	if rnd.IntN(2) == 0 {
		p.LeaderID, p.LeaderEpoch = rnd.Int32(), rnd.Int32()
	}
	if rnd.IntN(2) == 0 {
		p.Aborted = []AbortedTxn{}
		their.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
	}
	if p.Aborted != nil {
		for range rnd.IntN(3) {
			p.Aborted = append(p.Aborted, AbortedTxn{rnd.Int64(), rnd.Int64()})
			aborted := kmsg.NewFetchResponseTopicPartitionAbortedTransaction()
			last := p.Aborted[len(p.Aborted)-1]
			aborted.ProducerID, aborted.FirstOffset = last.ProducerID, last.FirstOffset
			their.AbortedTransactions = append(their.AbortedTransactions, aborted)
		}
	}
	their.RecordBatches = []byte{}
	if rnd.IntN(3) > 0 {
		off, n := rnd.IntN(1000), rnd.IntN(40_000)
		*pins++
		p.Records = vfs.NewRange(file, int64(off), int64(n), func() { *pins-- })
		their.RecordBatches = content[off : off+n]
	}
	their.Partition, their.ErrorCode = p.Partition, p.ErrorCode
	their.HighWatermark, their.LastStableOffset, their.LogStartOffset = p.HighWatermark, p.LastStableOffset, p.LogStartOffset
	their.PreferredReadReplica = p.PreferredReadReplica
	if version >= 12 {
		their.DivergingEpoch.Epoch, their.DivergingEpoch.EndOffset = p.DivergingEpoch, p.DivergingEndOffset
		their.CurrentLeader.LeaderID, their.CurrentLeader.LeaderEpoch = p.LeaderID, p.LeaderEpoch
	}
	return p, their
}

func TestFetchResponsesAreEqualToThoseOfKmsg(t *testing.T) {
	file, content := recordFile(t)
	rnd := rand.New(rand.NewPCG(5, 1))
	api, _ := Lookup(1)
	for version := api.Min; version <= api.Max; version++ {
		for range 200 {
			pins := 0
			ours, theirs := randomFetch(rnd, version, file, content, &pins)
			h := Header{Key: 1, Version: version, CorrelationID: rnd.Int32()}
			answer := EncodeFetch(h, ours)
			require.Equal(t, AppendResponse(nil, h, theirs), flatten(t, answer), "version %d", version)
			answer.Sent()
			require.Zero(t, pins, "every range is released once")
		}
	}
}

func FuzzEncodeFetch(f *testing.F) {
	for version := int16(0); version <= 17; version++ {
		f.Add(uint64(version), version)
	}
	file, content := recordFile(f)
	f.Fuzz(func(t *testing.T, seed uint64, version int16) {
		api, _ := Lookup(1)
		if !api.Serves(version) {
			return
		}
		pins := 0
		ours, theirs := randomFetch(rand.New(rand.NewPCG(seed, 0)), version, file, content, &pins)
		h := Header{Key: 1, Version: version}
		if string(AppendResponse(nil, h, theirs)) != string(flatten(t, EncodeFetch(h, ours))) {
			t.Fatal("not the bytes of kmsg")
		}
	})
}
