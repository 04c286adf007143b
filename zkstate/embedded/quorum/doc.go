// Package quorum makes several servers of the embedded ZooKeeper hold the same state: what one of them, the leader, proposes
// is on the disks of a majority before Propose returns, and every member applies it in the same order. The algorithm is Raft,
// by go.etcd.io/raft; here are its log, its messages' way over the network, and how an ensemble begins.
//
// It knows nothing of nodes, sessions or clients: what is replicated is bytes, and State says what they do to a member's store.
//
// Invariants, and who keeps them:
//
//   - A proposal is answered with success only when a majority has it on disk (member.go), and only to the leader of the term
//     that it was made for: a leader that was deposed and elected again meanwhile has another state to begin from.
//   - Raft's entries, its term and vote, what is applied and how far lie in one file and change in one transaction (store.go):
//     after a crash a member is where it was at one of its syncs, whole.
//   - A member's disk is known to the others by a number drawn when it was empty. A server that comes back with an empty disk has
//     forgotten what it voted for and acknowledged; under its old name it could help elect a leader that lacks what was
//     acknowledged. So it takes no part until the others have put it out and taken it in anew (founding.go, reinstate.go).
package quorum
