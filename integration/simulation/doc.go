// Package simulation runs whole clusters in one thread from one seed, in virtual time: the controller cores of the
// product inside models of everything around them. ZooKeeper is a model with one log of writes, three servers that
// apply it each in its own time, watches that fire once, and sessions that time out. Brokers are models of the control
// plane. The network delays, loses and repeats. Each seed draws which faults there are and how often.
//
// A run has two phases. In the first, faults and administrators do their worst, and after every single step the
// invariants hold (numbers as in the table of hazards and invariants: I5, I7, I8, I9, H23 to H27, H52). Then all
// faults end, and within a minute of virtual time the cluster must converge: one controller, a leader and a full ISR
// for every partition, every broker with the metadata that ZooKeeper has, no deletion or reassignment left over.
//
// A seed replays exactly; TestASeedReplaysExactly holds the package to that. To look into one:
//
//	go test ./integration/simulation -run TestSeeds -seed 1234 -v
//
// To run more than the usual number: -seeds 20000.
//
// The seams for joining further cores are node.atLife (when something happens to a process), broker.take (what
// it is told) and world.in (when): a partition or fetcher core replaces the model in broker.go.
package simulation
