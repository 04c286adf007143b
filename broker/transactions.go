package broker

import (
	"time"

	"barnabas/broker/record"
	"barnabas/broker/txn"
)

// newTransactions makes the transaction coordinator over the partitions of the transaction topic.
func (b *Broker) newTransactions() *txn.Coordinator {
	v := b.values
	topic := &coordinatorTopic{
		replicas: b.replicas,
		name:     transactionTopic,
		acks:     -1,
		timeout:  v.Millis("request.timeout.ms"),
		reader:   newLogReader(b.replicas, transactionTopic, v.Int("transaction.state.log.load.buffer.size")),
		tenure:   newTenure(b.zk),
	}
	return txn.New(txn.Config{
		BrokerID: b.brokerID,
		Core: txn.CoreConfig{
			MaxTimeoutMs:   int32(v.Int("transaction.max.timeout.ms")),
			IDExpirationMs: v.Int("transactional.id.expiration.ms"),
		},
		AbortCheck:  v.Millis("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
		ExpiryCheck: v.Millis("transaction.remove.expired.transaction.cleanup.interval.ms"),
		Partitions:  b.transactionPartitions,
		Limits:      record.Limits{MaxDecompressed: maxDecompressed(v)},
		Now:         time.Now,
		Log:         b.log.WithField("part", "transactions"),
	}, topic, b.producerIDs, transactionPeers{b})
}

func (b *Broker) transactionPartitions() (int32, bool) {
	if t := b.cluster.Load().Topic(transactionTopic); t != nil && len(t.Partitions) > 0 {
		return int32(len(t.Partitions)), true
	}
	return int32(b.values.Int("transaction.state.log.num.partitions")), false
}

// verifyTransactions tells whether the first write of a transaction to a partition needs the coordinator's word.
func (b *Broker) verifyTransactions() bool {
	return b.live.values().Bool("transaction.partition.verification.enable")
}
