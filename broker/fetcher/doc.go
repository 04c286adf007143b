// Package fetcher is the follower's side of replication: it pulls records from
// the leaders of the partitions this broker follows and appends them.
//
// One goroutine per (leader broker, fetcher number) owns a core (core.go): the
// state machine of one leader connection, which holds for each partition where
// it is (truncating, fetching or delayed), builds requests and turns answers
// into operations on logs. The core does no I/O; the goroutine (shell.go) sends
// what the core asks for and carries out the log operations.
package fetcher
