// Package coordinator is the shell that the coordinators of groups and of
// transactions have in common. What is coordinated lives in an internal topic;
// the leader of a partition of it is the coordinator of everything that belongs
// there, by the hash of its name.
//
// A Shell drives one Core for each partition that this broker leads: a state
// machine without I/O, which knows everything of that partition. Events and the
// time go into it; records to append, answers and remarks for the log come out.
//
// Invariants:
//
//   - a core is loaded from the partition's log before it is asked anything, and
//     its events come one at a time
//   - what a core decides is appended before it answers
//   - a core whose broker has given up the partition appends nothing more, even if
//     the broker leads it again at once (H54)
//   - what is answered without an append is not what somebody else may have changed
//     already, where that matters (DoCertainly): a broker that was cut off or slept
//     does not know yet that it is deposed
//   - every request is answered exactly once
//
// Goroutines: one for each partition that is led, started by Shell.Lead, which
// first loads it and then handles its events; one for each interval of Shell.Every;
// one for each function of Shard.Go while it runs, and for each question of
// DoCertainly while it is in doubt who leads. Resign ends the first when it
// has answered what waits, Close ends all and waits.
package coordinator
