package broker

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/metadata"
	"barnabas/broker/txn"
)

// transactionPeers is the cluster as the transaction coordinator asks it: markers to the leaders of partitions, verifications to coordinators. It implements txn.Cluster.
type transactionPeers struct{ b *Broker }

// Versions of what is asked: the highest that brokers of this protocol know. Questions about transactions are versions 4 and later; a broker of before Kafka 3.5 has none.
const (
	markersVersion     = 1
	verifyVersion      = 5
	firstVerifyVersion = 4
)

// Leader implements txn.Cluster.
func (t transactionPeers) Leader(tp txn.TopicPartition) (int32, bool) {
	snapshot := t.b.cluster.Load()
	p := snapshot.Partition(tp.Topic, tp.Partition)
	if p == nil {
		return txn.NoBroker, false
	}
	return alive(snapshot, p), true
}

func alive(s *metadata.Snapshot, p *metadata.Partition) int32 {
	if p.Leader == metadata.NoLeader || s.Brokers[p.Leader] == nil {
		return txn.NoBroker
	}
	return p.Leader
}

// Coordinator implements txn.Cluster.
func (t transactionPeers) Coordinator(partition int32) int32 {
	snapshot := t.b.cluster.Load()
	if p := snapshot.Partition(transactionTopic, partition); p != nil {
		return alive(snapshot, p)
	}
	return txn.NoBroker
}

// WriteMarkers implements txn.Cluster.
func (t transactionPeers) WriteMarkers(ctx context.Context, broker int32, markers []*txn.Marker) [][]error {
	if broker == t.b.brokerID {
		return t.writeHere(ctx, markers)
	}
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	for _, m := range markers {
		to := kmsg.NewWriteTxnMarkersRequestMarker()
		to.ProducerID, to.ProducerEpoch, to.Committed, to.CoordinatorEpoch = m.Producer.ID, m.Producer.Epoch, m.Commit, m.CoordinatorEpoch
		eachTopic(m.Partitions, func(topic string, partitions []int32) {
			to.Topics = append(to.Topics, kmsg.WriteTxnMarkersRequestMarkerTopic{Topic: topic, Partitions: partitions})
		})
		req.Markers = append(req.Markers, to)
	}
	answer, err := t.ask(ctx, broker, req, markersVersion)
	if err != nil {
		return failedMarkers(markers, err)
	}
	return markerResults(markers, answer.(*kmsg.WriteTxnMarkersResponse))
}

// writeHere writes the markers of partitions that this broker leads itself.
func (t transactionPeers) writeHere(ctx context.Context, markers []*txn.Marker) [][]error {
	written := make(chan [][]error, 1)
	t.b.dispatcher.WriteMarkers(markers, func(results [][]error) { written <- results })
	select {
	case results := <-written:
		return results
	case <-ctx.Done():
		return failedMarkers(markers, ctx.Err())
	}
}

func failedMarkers(markers []*txn.Marker, err error) [][]error {
	results := make([][]error, len(markers))
	for i, m := range markers {
		results[i] = slices.Repeat([]error{err}, len(m.Partitions))
	}
	return results
}

// markerResults takes an answer apart. It is a map by producer id: of two markers of one producer the answer may have one row, in which each finds its partitions.
func markerResults(markers []*txn.Marker, resp *kmsg.WriteTxnMarkersResponse) [][]error {
	type row struct {
		producer int64
		tp       txn.TopicPartition
	}
	codes := map[row]int16{}
	for _, m := range resp.Markers {
		for _, topic := range m.Topics {
			for _, p := range topic.Partitions {
				codes[row{m.ProducerID, txn.TopicPartition{Topic: topic.Topic, Partition: p.Partition}}] = p.ErrorCode
			}
		}
	}
	results := make([][]error, len(markers))
	for i, m := range markers {
		for _, tp := range m.Partitions {
			code, answered := codes[row{m.Producer.ID, tp}]
			err := kerr.ErrorForCode(code)
			if !answered {
				err = kerr.UnknownServerError
			}
			results[i] = append(results[i], err)
		}
	}
	return results
}

// Verify implements txn.Cluster.
func (t transactionPeers) Verify(ctx context.Context, broker int32, reqs []*txn.PartitionsRequest) [][]error {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	for _, r := range reqs {
		to := kmsg.NewAddPartitionsToTxnRequestTransaction()
		to.TransactionalID, to.ProducerID, to.ProducerEpoch, to.VerifyOnly = r.ID, r.Producer.ID, r.Producer.Epoch, true
		eachTopic(r.Partitions, func(topic string, partitions []int32) {
			to.Topics = append(to.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: topic, Partitions: partitions})
		})
		req.Transactions = append(req.Transactions, to)
	}
	answer, err := t.ask(ctx, broker, req, verifyVersion)
	switch {
	case errors.Is(err, kerr.UnsupportedVersion):
		return verified(reqs, func(*txn.PartitionsRequest, txn.TopicPartition) error { return nil })
	case err != nil:
		return verified(reqs, func(*txn.PartitionsRequest, txn.TopicPartition) error { return kerr.NetworkException })
	}
	resp := answer.(*kmsg.AddPartitionsToTxnResponse)
	if resp.ErrorCode != 0 {
		err := kerr.ErrorForCode(resp.ErrorCode)
		if errors.Is(err, kerr.ClusterAuthorizationFailed) {
			err = kerr.InvalidTxnState // not the client's fault, and nothing that it can mend
		}
		return verified(reqs, func(*txn.PartitionsRequest, txn.TopicPartition) error { return err })
	}
	codes := map[string]map[txn.TopicPartition]int16{}
	for i := range resp.Transactions {
		row := &resp.Transactions[i]
		codes[row.TransactionalID] = map[txn.TopicPartition]int16{}
		for _, topic := range row.Topics {
			for _, p := range topic.Partitions {
				codes[row.TransactionalID][txn.TopicPartition{Topic: topic.Topic, Partition: p.Partition}] = p.ErrorCode
			}
		}
	}
	return verified(reqs, func(r *txn.PartitionsRequest, tp txn.TopicPartition) error {
		code, answered := codes[r.ID][tp]
		if !answered {
			return kerr.UnknownServerError
		}
		return kerr.ErrorForCode(code)
	})
}

func verified(reqs []*txn.PartitionsRequest, of func(*txn.PartitionsRequest, txn.TopicPartition) error) [][]error {
	results := make([][]error, len(reqs))
	for i, r := range reqs {
		for _, tp := range r.Partitions {
			results[i] = append(results[i], of(r, tp))
		}
	}
	return results
}

// ask sends a request to another broker at the highest version that both know.
func (t transactionPeers) ask(ctx context.Context, broker int32, req kmsg.Request, limit int16) (kmsg.Response, error) {
	to, err := t.b.peers.to(broker)
	if err != nil {
		return nil, err
	}
	if err := to.Negotiate(ctx, req, limit); err != nil {
		return nil, err
	}
	if req.Key() == int16(kmsg.AddPartitionsToTxn) && req.GetVersion() < firstVerifyVersion {
		return nil, kerr.UnsupportedVersion
	}
	return to.Do(ctx, req)
}

// eachTopic groups partitions by topic, in the order of their first appearance.
func eachTopic(list []txn.TopicPartition, f func(topic string, partitions []int32)) {
	var topics []string
	byTopic := map[string][]int32{}
	for _, tp := range list {
		if byTopic[tp.Topic] == nil {
			topics = append(topics, tp.Topic)
		}
		byTopic[tp.Topic] = append(byTopic[tp.Topic], tp.Partition)
	}
	for _, topic := range topics {
		f(topic, byTopic[topic])
	}
}
