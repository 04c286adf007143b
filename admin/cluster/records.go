package cluster

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/plan"
)

// Piece is what one Fetch brought of a partition.
type Piece struct {
	Records []*kgo.Record // with markers of transactions (Attrs.IsControl) and records of aborted ones
	Next    int64         // where to read on: beyond what the piece covers, also where compaction left nothing of it
	End     int64         // the high watermark
}

// decompressor is shared, since it keeps what it needs for the next batch.
var decompressor = kgo.DefaultDecompressor()

const fetchWaitMs = 500 // for a first byte

// namedFetch is a Fetch below version 13, from which on topics have ids instead of names: brokers that give topics no ids serve both.
type namedFetch struct{ *kmsg.FetchRequest }

func (namedFetch) MaxVersion() int16 { return 12 }

// Read asks a partition's leader for records from an offset on; at most so many bytes, but at least one batch. It waits briefly where there is none.
func (c *Cluster) Read(ctx context.Context, leader int32, p plan.Partition, from int64, maxBytes int32) (Piece, error) {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = -1, fetchWaitMs, 1, maxBytes
	req.SessionEpoch = -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = p.Topic
	asked := kmsg.NewFetchRequestTopicPartition()
	asked.Partition, asked.FetchOffset, asked.PartitionMaxBytes, asked.CurrentLeaderEpoch = p.ID, from, maxBytes, -1
	t.Partitions = append(t.Partitions, asked)
	req.Topics = append(req.Topics, t)
	answer, err := c.client.Broker(int(leader)).RetriableRequest(ctx, namedFetch{req})
	if err != nil {
		return Piece{}, err
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := Answered(resp.ErrorCode, nil); err != nil {
		return Piece{}, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return Piece{}, kerr.UnknownTopicOrPartition
	}
	got := &resp.Topics[0].Partitions[0]
	if err := Answered(got.ErrorCode, nil); err != nil {
		return Piece{}, err
	}
	read, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true, Offset: from, Topic: p.Topic, Partition: p.ID}, got, decompressor, nil)
	return Piece{read.Records, next, got.HighWatermark}, read.Err
}
