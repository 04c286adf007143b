// Package commitlog keeps the logs of one broker: for each partition the segments, their indexes, the leader epochs
// and the producer state; for each log directory the checkpoints and the marker of a clean shutdown. Files are
// those of Apache Kafka 2.8.2 to 3.9.1, in both directions: see FORMAT.md.
//
// The package knows nothing of replicas. Who may append, which epoch leads and where the high watermark stands is
// told to it by package partition.
//
// Invariants, kept by every method of Log:
//
//   - StartOffset <= LastStableOffset <= HighWatermark <= EndOffset
//   - a leader epoch never goes back, and neither does the offset at which it starts
//   - offsets within a segment grow; segments follow one another without overlap
//   - producer state equals a replay of the log
//   - nothing is answered as written by a directory that has failed once
//   - what was synced, or is known to be committed, is never cut away because it is damaged: the log is taken out of use
//
// Where to begin reading: append.go (the one critical section), read.go, roll.go (durability), recovery.go (what a crash
// leaves and what is done about it), producers.go, cleaner.go (compaction; swap.go has its crash points).
//
// Goroutines, all owned by Manager and ended by Close: the housekeeper, which does what the clock asks for; one flusher
// for each log directory, which makes rolled segments and new logs durable; and log.cleaner.threads that compact.
package commitlog
