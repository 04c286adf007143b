package api

import (
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/broker/record"
	"barnabas/broker/txn"
)

// WriteTxnMarkers, key 27, versions 0 to 1.
//
//	1  flexible
//
// From coordinators of transactions, and from operators who end a transaction that
// hangs (KIP-664). The answer has one row for each producer id.
func (d *Dispatcher) writeTxnMarkers(c *call, req *kmsg.WriteTxnMarkersRequest) {
	markers := make([]*txn.Marker, len(req.Markers))
	for i := range req.Markers {
		in := &req.Markers[i]
		m := &txn.Marker{Producer: txn.Producer{ID: in.ProducerID, Epoch: in.ProducerEpoch}, CoordinatorEpoch: in.CoordinatorEpoch, Commit: in.Committed}
		for j := range in.Topics {
			m.Partitions = appendPartitions(m.Partitions, in.Topics[j].Topic, in.Topics[j].Partitions)
		}
		markers[i] = m
	}
	answer := func(results [][]error) {
		resp := kmsg.NewPtrWriteTxnMarkersResponse()
		rows := map[int64]int{}
		for i, m := range markers {
			at, known := rows[m.Producer.ID]
			if !known {
				at = len(resp.Markers)
				rows[m.Producer.ID] = at
				resp.Markers = append(resp.Markers, kmsg.WriteTxnMarkersResponseMarker{ProducerID: m.Producer.ID})
			}
			markerRow(&resp.Markers[at], m, results[i])
		}
		c.answer(resp)
	}
	if !d.seesCluster(c, kmsg.ACLOperationAlter) && !d.mayCluster(c, kmsg.ACLOperationClusterAction) {
		results := make([][]error, len(markers))
		for i, m := range markers {
			results[i] = slices.Repeat([]error{kerr.ClusterAuthorizationFailed}, len(m.Partitions))
		}
		answer(results)
		return
	}
	if slices.ContainsFunc(markers, func(m *txn.Marker) bool { return m.Producer.Epoch < 0 }) { // of which no record can be made
		results := make([][]error, len(markers))
		for i, m := range markers {
			results[i] = slices.Repeat([]error{kerr.UnknownServerError}, len(m.Partitions))
		}
		answer(results)
		return
	}
	d.WriteMarkers(markers, answer)
}

func markerRow(row *kmsg.WriteTxnMarkersResponseMarker, m *txn.Marker, errs []error) {
	for _, t := range transactionRow(&txn.PartitionsRequest{Partitions: m.Partitions}, errs).Topics {
		at := slices.IndexFunc(row.Topics, func(known kmsg.WriteTxnMarkersResponseMarkerTopic) bool { return known.Topic == t.Topic })
		if at < 0 {
			at = len(row.Topics)
			row.Topics = append(row.Topics, kmsg.WriteTxnMarkersResponseMarkerTopic{Topic: t.Topic})
		}
		for _, p := range t.Partitions {
			row.Topics[at].Partitions = append(row.Topics[at].Partitions, kmsg.WriteTxnMarkersResponseMarkerTopicPartition(p))
		}
	}
}

// WriteMarkers writes markers to partitions that this broker leads, and calls done
// when all are committed or have failed, with an error or nil for each partition
// of each marker. The coordinator of groups hears of those that reached offsets.
func (d *Dispatcher) WriteMarkers(markers []*txn.Marker, done func([][]error)) {
	results := make([][]error, len(markers))
	left := 0
	for _, m := range markers {
		if len(m.Partitions) > 0 {
			left++
		}
	}
	if left == 0 {
		done(results)
		return
	}
	var mu sync.Mutex
	now := time.Now().UnixMilli()
	for i, m := range markers {
		if len(m.Partitions) == 0 {
			continue
		}
		d.writeMarker(m, now, func(errs []error) {
			mu.Lock()
			results[i] = errs
			left--
			last := left == 0
			mu.Unlock()
			if last {
				done(results)
			}
		})
	}
}

// writeMarker appends one marker to its partitions.
func (d *Dispatcher) writeMarker(m *txn.Marker, nowMs int64, done func([]error)) {
	kind := record.Abort
	if m.Commit {
		kind = record.Commit
	}
	marker := record.EndTxnMarker{Type: kind, CoordinatorEpoch: m.CoordinatorEpoch}
	req := &partition.ProduceRequest{Acks: -1, Timeout: d.cfg.MarkerTimeout, Version: 3, Origin: commitlog.Coordinator}
	for _, tp := range m.Partitions {
		p := partition.ProducePartition{Topic: tp.Topic, Partition: tp.Partition}
		if d.deps.Replicas.Partition(tp.Topic, tp.Partition) == nil {
			p.Err = kerr.UnknownTopicOrPartition
		} else {
			p.Records = record.NewEndTxnBatch(marker, m.Producer.ID, m.Producer.Epoch, nowMs)
		}
		req.Partitions = append(req.Partitions, p)
	}
	d.deps.Replicas.Produce(req, func(written []partition.ProduceResult) {
		errs := make([]error, len(written))
		for i := range written {
			errs[i] = written[i].Err
			d.faults("WriteTxnMarkers", errs[i])
			if errs[i] == nil && written[i].Topic == offsetsTopic {
				d.deps.Groups.EndTransaction(written[i].Partition, m.Producer.ID, m.Commit)
			}
		}
		done(errs)
	})
}
