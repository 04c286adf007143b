// Package acl decides who may do what, as Kafka's AclAuthorizer does (KIP-11, KIP-290): a [Table] holds the bindings of
// patterns of resources to entries, and [Policy] asks it. Nothing here does I/O, waits or locks: a Table never changes,
// and a change makes another.
//
// Resources, patterns, operations and permissions are kmsg's, whose numbers are those of the protocol.
package acl
