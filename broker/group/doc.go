// Package group is the group coordinator: members of consumer groups, their
// rebalances, and the offsets that groups commit (the classic protocol, as
// Kafka's ZooKeeper mode has it).
//
// A group belongs to one partition of __consumer_offsets, by the hash of its
// name, and the leader of that partition is its coordinator. Core is everything
// that is known of the groups of one such partition: a state machine without
// I/O. Requests, timers and the outcome of appends go in; answers, records to
// append and remarks for the log come out. Coordinator has the cores of all the
// partitions that this broker leads in a coordinator.Shell, which loads them,
// hands them their events and writes for them; the goroutines are the shell's, and
// one of them looks for expired offsets.
//
// The states of a group:
//
//	Empty                no members, maybe offsets
//	PreparingRebalance   members are called to join; who has joined waits
//	CompletingRebalance  all have joined and wait for the leader's assignment
//	Stable               all know their assignment
//	Dead                 gone from here: deleted, expired, or moved away
//
// Invariants:
//
//   - a generation belongs to one set of members and never comes again while the
//     log lives: it is in the log before anybody learns of its assignment
//   - an offset is answered only when it is committed (high watermark) or, of those
//     that were found in the log, when all in-sync replicas have it; only while
//     nobody else can be coordinator; and of two commits of one partition the one
//     later in the log counts
//   - every request is answered exactly once
package group
