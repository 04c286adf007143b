// Package wire is the door between Kafka's binary protocol and the rest of the broker: frames and their
// headers, the one table of APIs and versions that this broker serves, bounds on what is decoded, and the types
// that a network server and a request handler hand to each other.
//
// The messages themselves are those of kmsg. Two are written by hand because every byte counts there: a fetch
// response is a row of header bytes and pinned pieces of files, and a produce request is read without copying.
package wire
