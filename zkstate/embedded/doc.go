// Package embedded is a server of ZooKeeper's client protocol (3.8) inside this process: for quickstart, for `barnabas
// zookeeper`, alone or as one of an ensemble, and for fast tests.
//
// Package core decides (tree, sessions, watches); this package is the thin shell around it: sockets, the disk, timers. In an ensemble only the leader has a
// core (ensemble.go), what it changes is replicated by package quorum, and the others pass their clients on to it (relay.go).
//
// Goroutines: one accepts (another for TLS); each connection has a reader (decodes, checks sizes) and a writer (keeps order, never blocks the
// rest); one engine owns the core. The engine takes what has arrived together, lets the core decide, commits all changes in one
// synced transaction of bbolt, or has a majority do so, and only then hands out the answers: no answer and no watch event leaves for what is not on disk.
// Close ends them all.
//
// The whole tree is in memory; the file embedded-zookeeper.db in the data directory is its durable copy. When a commit fails the
// server stops serving at once (Done, Err): memory is then ahead of the disk, and to carry on would fork history.
package embedded
