// Package auth keeps the exchange by which a client proves who it is: SASL as Kafka carries it (KIP-43, KIP-152), once at the start of
// a connection and again before its session ends (KIP-368). The mechanisms and the exchange are state machines, bytes in and bytes out;
// Gate stands before whoever answers requests.
package auth
