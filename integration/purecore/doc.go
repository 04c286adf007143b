// Package purecore holds the cores that decide to their rule: the same events in the same order give the same effects,
// always. Code that starts a goroutine, reads a clock, draws from a global random source, waits on a channel, touches
// the operating system, or lets the order of a map show, cannot be replayed from a seed.
//
// A test calls Check with the files of a core. What a file may not do:
//
//   - a go statement, a select, a channel of any kind;
//   - time.Now and everything of package time that waits or measures;
//   - functions of math/rand that draw from the shared source, and crypto/rand;
//   - functions of os, os/exec, syscall, and those of net that look up, dial or listen;
//   - range over a map, or over maps.Keys, maps.Values and maps.All, unless it happens in a function whose name begins
//     with "sorted", or under a comment "//purecore:anyorder" that says why the order cannot show.
//
// Time and random sources come into a core as values; goroutines, sockets and timers belong to the shell around it.
package purecore
