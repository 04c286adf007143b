// Package txn is the transaction coordinator (KIP-98, KIP-360, KIP-664, the first
// part of KIP-890), as Kafka's ZooKeeper mode has it.
//
// A transactional id belongs to one partition of __transaction_state, by its
// hash, and the leader of that partition is its coordinator. Core is everything
// that is known of the ids of one such partition: a state machine without I/O.
// Requests, the outcome of appends and of markers, and the time go in; answers,
// records to append, markers to write and remarks for the log come out.
// Coordinator has the cores of all the partitions that this broker leads in a
// coordinator.Shell, and gets markers and questions to other brokers.
//
// A transaction:
//
//  1. InitProducerID: the id gets a producer id and an epoch; whoever had them
//     before is fenced, a transaction that it left open is aborted
//  2. AddPartitionsToTxn, AddOffsetsToTxn: partitions are written down before
//     anything is written to them; leaders ask whether that was done (Verify)
//  3. EndTxn: PrepareCommit or PrepareAbort is written. That is the decision; the
//     client is answered when it is committed in the log
//  4. markers go to the leaders of all the partitions, again and again until each
//     has its own; then CompleteCommit or CompleteAbort is written
//
// Invariants:
//
//   - a state counts, and is answered, when it is committed in the log (high
//     watermark); until then the next change has to wait (CONCURRENT_TRANSACTIONS)
//   - what a new coordinator finds in the log is committed before it counts. The end
//     of its log may still be lost with this broker: markers of a decision that
//     nobody remembers would tear a transaction, and a partition that was added there
//     would have a transaction that nobody ends
//   - partitions of a transaction are in the log before AddPartitionsToTxn is
//     answered, and leave it with the last marker
//   - the markers of a core whose broker has given up the partition are refused by
//     partitions that have seen its successor's (the coordinator epoch is the leader
//     epoch of the partition)
//   - every request is answered exactly once
//
// Goroutines, beside the shell's (two of which look for timed out transactions and
// for expired ids, and one waits for each producer id that is asked for): one for
// each request of markers or verifications on its way to another broker, at most one
// of each kind per broker. Close ends all and waits.
package txn
