// Package api answers the requests that clients and other brokers send: one
// file per API, named by the API's number and name. A handler decodes, asks the
// domain (partitions, metadata, administration, the controller), and encodes.
//
// What a handler may do to its caller: Handle runs on the goroutine of the
// connection and must not hold it for long. Work on partitions and metadata is
// done there, and what has to wait (records to arrive, followers to catch up,
// a topic to appear) is parked with a callback and answered from whatever
// goroutine completes it. What talks to ZooKeeper, and so may block for a round
// trip or a reconnection, runs on one of a few workers that the Dispatcher
// owns: their queue is bounded, and a request that finds it full has its
// connection closed.
//
// Who may do what is asked here and nowhere below (authorize.go): the domain does
// what it is asked to.
package api
