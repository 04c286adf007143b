// Package partition is this broker's replicas: who leads each of them, in which
// epoch, which replicas are in sync, how far the high watermark is, and what a
// client or a follower may therefore append and read.
//
// Manager is the door: Produce, Fetch, ListOffset, OffsetForLeaderEpoch,
// DeleteRecords and LogDirs for requests from outside, ApplyLeaderAndISR and
// StopReplicas for the controller's orders. Partition is one replica; its rules
// are in core.go and do no I/O.
//
// Invariants (asserted after every step; a partition that breaks one goes
// offline and stays there until restart):
//
//	log start <= last stable offset <= high watermark <= log end
//	a leader epoch never goes back
//	the in-sync replicas of a leader contain the leader
//
// Locks, in the order they are taken: Manager.orders (one order of a controller
// at a time), Manager.mu, Partition.role, Partition.state, then the log's own;
// Partition.flush and those of package purgatory are leaves. Only orders is held
// while Fetchers or OnRoles run, and no lock while a done function or the
// ISRChanger does. Nothing waits for a disk under state; under role.RLock an
// append, a read or a cut of the log does.
package partition
