// Package zkshell is zookeeper-shell: the shell that Kafka ships for looking into ZooKeeper, by the same arguments, lines, streams
// and exit codes, one command from the command line or many from standard input.
//
// Where releases differ, the texts are those of Kafka 2.8.2 (ZooKeeper 3.5's shell), and those of 3.9.1 (3.8's) with
// BARNABAS_COMPAT=3.9; the commands of both are there in either case. Not there: quotas, reconfig, and TLS to ZooKeeper, each
// refused by name.
//
// Goroutines: one per connection reads and one pings (package client); in interactive use one more connects in the background.
package zkshell
