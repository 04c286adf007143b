// Package group is the group coordinator: members of consumer groups, their
// rebalances, and the offsets that groups commit (the classic protocol, as
// Kafka's ZooKeeper mode has it).
//
// A group belongs to one partition of __consumer_offsets, by the hash of its
// name, and the leader of that partition is its coordinator. Core is everything
// that is known of the groups of one such partition: a state machine without
// I/O. Requests, timers and the outcome of appends go in; answers, records to
// append and remarks for the log come out. Coordinator is the shell around the
// cores of all the partitions that this broker leads.
//
// Goroutines: one for each partition that is led, started by Coordinator.Lead,
// which first loads it from its log and then handles its events one at a time;
// and one that looks for expired offsets. Resign ends the former when it has
// answered what waits, Close ends all and waits.
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
//   - an offset is answered only when it is committed (high watermark), and of
//     two commits of one partition the one later in the log counts
//   - every request is answered exactly once
//   - a core whose broker has given up the partition appends nothing more (H54)
package group
