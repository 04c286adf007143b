// Package token decides about delegation tokens (KIP-48, KIP-373): who a token is for and how long, who may renew it or end it, and the
// secret that proves it. A token is for a client that shall act for somebody without holding his password: the somebody asks a broker for
// one, and whoever has its id and its HMAC is taken for him until it ends.
//
// Nothing here does I/O, waits or locks. Times are milliseconds since 1970, as in the protocol and in ZooKeeper.
package token
