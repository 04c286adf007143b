// Package peer is one outgoing connection to another broker: correlation, a limit of requests in flight, time-outs,
// reconnection with backoff, and the negotiation of versions.
package peer
