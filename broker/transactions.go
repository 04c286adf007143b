package broker

import (
	"context"
	"time"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/broker/record"
	"barnabas/broker/txn"
)

// transactionTopic is where the transaction coordinator keeps its state.
const transactionTopic = "__transaction_state"

// newTransactions makes the transaction coordinator over the partitions of the transaction topic.
func (b *Broker) newTransactions() *txn.Coordinator {
	v := b.values
	log := &transactionLog{
		replicas: b.replicas,
		timeout:  v.Millis("request.timeout.ms"),
		reader:   logReader{b.replicas, transactionTopic, int(v.Int("transaction.state.log.load.buffer.size"))},
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
	}, log, log, b.producerIDs, transactionPeers{b})
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

// transactionLog is the transaction topic as its coordinator reads and writes it.
type transactionLog struct {
	replicas *partition.Manager
	timeout  time.Duration
	reader   logReader
}

// Append implements txn.Appender.
func (l *transactionLog) Append(p int32, batch []byte, done func(error)) {
	l.replicas.Produce(&partition.ProduceRequest{
		Acks: -1, Timeout: l.timeout, Version: produceVersion, Origin: commitlog.Coordinator,
		Partitions: []partition.ProducePartition{{Topic: transactionTopic, Partition: p, Records: batch}},
	}, func(r []partition.ProduceResult) { done(r[0].Err) })
}

// committedPoll is how often a coordinator looks whether what it has loaded is on the other replicas: a fetch of theirs away, mostly.
const committedPoll = 2 * time.Millisecond

// Read implements txn.Reader. Nothing is appended meanwhile: only the coordinator does, and it waits.
func (l *transactionLog) Read(ctx context.Context, p int32, each func(record.Batch)) error {
	log, err := l.reader.log(p)
	if err != nil {
		return err
	}
	end := log.EndOffset()
	if err := l.reader.read(ctx, p, each); err != nil {
		return err
	}
	tick := time.NewTicker(committedPoll)
	defer tick.Stop()
	for log.HighWatermark() < end {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
