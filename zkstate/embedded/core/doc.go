// Package core is the deciding half of the embedded ZooKeeper server: the tree of nodes, the sessions with their deadlines,
// the watches, and what each request does to them. An event goes in with the time; answers, watch events, connections to close
// and changes to keep come out. It starts no goroutine, reads no clock, touches no socket or file, and nothing of a map's order
// shows in what it puts out: the same events give the same bytes.
//
// Invariants:
//   - every write request takes exactly one zxid, also when it fails and also a multi of many operations, as ZooKeeper's own
//     counter does; zxids never go back;
//   - the children of a node, the ephemerals of a session and the sets of container and TTL nodes agree with the nodes;
//   - an ephemeral node has no children, and its owner is a live session;
//   - a failed multi leaves no trace but its zxid;
//   - nothing that Output carries may be sent before the Changes taken after the same events are on disk.
//
// Where it is deliberately not like 3.8: a standard watch set over a persistent one does not end the persistent one (3.9's
// behaviour; ZOOKEEPER-4466), sessions expire at their deadline instead of at the next tick after it, children are listed in
// order of name, a path has at most 32,000 bytes, checkWatches asks for the client's own watches (3.8 takes anybody's), and quotas under /zookeeper/quota are kept but neither counted nor enforced.
package core
