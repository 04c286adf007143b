// Package controller is the cluster's brain in ZooKeeper mode: one broker, the one that owns /controller, decides who
// leads each partition, reacts to brokers that come and go, creates and deletes what administrators ask for, moves
// replicas, and tells every broker.
//
// # Shape
//
// [Core] is a state machine without I/O: an [Event] and the time go in, [Effect]s come out. It starts no goroutine,
// reads no clock, and iterates over no map in an order that could show. [Controller] is the shell around it: one
// goroutine that feeds the core and carries out its effects with a zkstate.Client, one sender goroutine per broker,
// and timers. Everything that happens (a watch, an answer of a broker, a timer, an administrator's request) is an event
// in one queue. ZooKeeper is the only thing that the core waits for: an event is handled by a procedure, straight-line
// code that is suspended at each batch of ZooKeeper operations and resumed with the results, and the next event is
// taken up when it has ended. Losing the session pre-empts all of it, and what is dropped is answered NOT_CONTROLLER.
//
// # States
//
// A partition is NonExistent, New (assigned, never led), Online (has a leader) or Offline (its leader died and nobody
// may follow it). A replica is NonExistent, New, Online, Offline, or in one of the three states of deletion. The legal
// transitions are tables in partition_states.go and replica_states.go; an illegal one is logged and not made.
//
// # Invariants
//
//   - Every write to ZooKeeper after the election is a multi that checks the version of /controller_epoch, so a deposed
//     controller can change nothing. The first write that fails this check ends the controllership here.
//   - The controller epoch strictly grows, and there is one controller per epoch: /controller and /controller_epoch
//     change in one multi.
//   - State is written to ZooKeeper before any broker is told of it. A leader epoch never goes back.
//   - Watches are hints. A watch makes the core read the state again (leaving the next watch in the same call) and act
//     on the difference between what it reads and what it knows.
//   - Requests reach a broker in the order in which they were decided, one at a time, and carry the broker epoch (the
//     czxid of its registration), so that a restarted broker cannot obey orders meant for its former life.
package controller
