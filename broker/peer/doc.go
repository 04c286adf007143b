// Package peer is one outgoing connection to another broker: correlation, time-outs, reconnection with backoff. A Peer
// takes requests from many goroutines, several in flight, and negotiates versions; a Line is for one goroutine that waits
// for each answer.
package peer
