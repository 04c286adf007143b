// Package hostile attacks a running broker from outside and demands that nobody else notices: while malformed
// frames, bombs, floods, slow senders and clients that never read are at work, a healthy client writes and reads
// back one record after another, and the broker's memory and descriptors stay bounded.
//
// It knows the broker by its address and process id only, so that it can be turned on any broker, Apache Kafka
// included. Nothing it sends can do lasting harm if obeyed: what administers a cluster is sent only in forms that
// cannot be decoded.
package hostile
