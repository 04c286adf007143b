// Package simulation runs whole clusters in one thread from one seed, in virtual time. Of the product it runs the
// controller, the partitions with their ISRs and high watermarks, the fetchers, the coordinators of groups and of
// transactions, and the commit log over a disk that loses what was not synced. Models are: ZooKeeper (one log of writes, three servers that apply it each in its own
// time, watches that fire once, sessions that time out), the network (it delays, loses and repeats), what lies between
// the wire and the cores (broker.go, isr_changes.go, following.go, coordinators.go, markers.go), and the clients:
// producers, consumers, a group of plain members (club.go) and one of transactional ones, which read, write and commit
// what they read in one transaction (transformer.go). They leave, die, sleep past their sessions, and find that another
// process has their place. Each seed draws the versions, the
// flush policy, and which faults there are and how often: crashes, power cuts, disk errors, pauses, lost sessions, cut
// links, clocks that jump, controllers that are deposed.
//
// A run has two phases. In the first, faults and administrators do their worst while clients produce and consume, and
// the invariants hold (numbers as in the table of hazards and invariants: I1 to I19): those that cost
// little after every step, those that read whole logs when somebody takes the lead, when something is committed, and
// every 0.7 s. Then all faults end, and within 90 s of virtual time the cluster must converge: one controller, the
// preferred leader and a full ISR for every partition, logs equal to each other and to the high watermark, every
// request answered, every broker with the metadata that ZooKeeper has, no deletion or reassignment left over; all members
// of a group in one generation, with all partitions between them; no transaction open, none seen in part, and every
// record of the input transformed exactly once.
//
// A seed replays exactly; TestASeedReplaysExactly holds the package to that. To look into one:
//
//	go test ./integration/simulation -run TestSeeds -seed 1234 -v
//
// To run more than the usual number: -seeds 20000, of one hazard's scenario with -scenario H27 (scenarios.go). A seed that
// fails is made smaller, by leaving out faults and works, and is kept in testdata/seeds, which TestKeptSeeds replays for ever.
//
// What may be lost to a power cut depends on the flush policy, see powerCut: with Kafka's no power is cut, with that of
// a thin ISR one node at a time fails, with a flush before every commit anything goes.
//
// TestZoo plants faults, each the guard against one hazard taken away, and every one must be found. The product knows
// nothing of them: they are planted at the seams, where an order, a request, an answer or a disk passes from one core to
// another and is altered as if nobody had looked (zoo.go). To see one:
//
//	go test ./integration/simulation -run TestSeeds -seed 5 -plant "truncation to the high watermark" -v
//
// Not simulated: fetch sessions (every fetch is a full one), moves between directories, compaction and expiry of the
// coordinators' topics, and clients whose connection breaks while what they sent on it is still read later: the classic
// protocol cannot tell an EndTxn or a marker that comes after its transaction from one of the next (KIP-890, part 2).
package simulation
