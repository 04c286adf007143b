// Package quota holds clients to the bytes per second that they send and are sent, the time that their requests take
// and the partitions that they create and delete (KIP-13, KIP-55, KIP-124, KIP-599; KIP-219's order: the answer goes
// out at once and says how long the client has to wait, and the broker reads nothing more from the connection for that
// time).
//
// The maths are Kafka's, so that a quota moved over holds what it held: a rate over quota.window.num samples of
// quota.window.size.seconds, of which the oldest may reach beyond the window, and a pause after which that rate would
// be back at the limit; for partitions a bucket of tokens. Time is passed in. Who has no limit is not counted, and
// costs one look at a map; while there is no limit of a kind at all, one atomic load.
//
// New connections are held to their limits per second with the same maths (KIP-402, KIP-612): Arrivals.
package quota
