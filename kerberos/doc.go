// Package kerberos is Kerberos 5 (RFC 4120) as SASL's mechanism GSSAPI uses it (RFC 4121, RFC 4752): the two sides of the exchange as state machines, bytes in and bytes out; the tickets that
// a client shows and the key table that a server reads them by; and what a principal is called here. The messages and the ciphers are those of a library; what a stranger may have made
// reaches it only through guarded.
package kerberos
