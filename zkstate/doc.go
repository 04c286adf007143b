// Package zkstate is the only door to ZooKeeper.
//
// It has two halves. One speaks with the ensemble: [Client] keeps a session, issues operations (pipelined, or all at
// once as a multi), and reports what happens to the session and to watched nodes as [Event] values. The other half is
// the tree as Apache Kafka keeps it: one file per family of nodes with its paths, a type, an encoder whose bytes are
// Kafka's, and a decoder that accepts every version of the node and ignores fields it does not know. FORMAT.md shows each.
//
// # Sessions
//
// A Client lives through many sessions; each has a generation, counted from 1. An operation belongs to the generation
// in which it was issued. When that session expires the operation fails with [ErrSessionExpired]: it never runs under
// a later session, because its author may have lost the right to do it (a controller that was deposed, a broker whose
// registration is gone). The next session is opened at once; its owner learns of it by a SessionStarted event and
// registers again.
//
// # Answers that were lost
//
// A connection can break after a write was sent and before its answer came. Reads are repeated; a write answers
// [ErrConnectionLoss], and only its author can tell by reading back whether it took effect. [Client.RegisterEphemeral],
// [Client.AllocateProducerIDs] and the other methods of this package that write do so themselves.
//
// # Goroutines
//
// One loop per Client (Client.run) owns the session core. Each generation has one that keeps its connection and waits for
// its end (generation.serve) beside the three of go-zookeeper, and one for as long as credentials are presented. Do and
// Multi start at most Config.MaxInFlight, which end with their answers: a call whose context ends may leave them behind
// for up to a session timeout. Each subscription has one. Close ends all and waits for them.
package zkstate
