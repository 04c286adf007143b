// Package quota limits the bytes per second that clients send and are sent (KIP-13, KIP-55, KIP-124's windows,
// KIP-219's order: the answer goes out at once and says how long the client has to wait, and the broker reads nothing
// more from the connection for that time).
//
// The maths are Kafka's, so that a quota moved over holds what it held: a rate over quota.window.num samples of
// quota.window.size.seconds, of which the oldest may reach beyond the window, and a pause after which that rate would
// be back at the limit. Time is passed in. Who has no limit is not counted, and costs one look at a map; while there
// is no limit of a kind at all, one atomic load.
//
// Of the limits that Kafka knows, producer_byte_rate and consumer_byte_rate are held. request_percentage,
// controller_mutation_rate and connection_creation_rate are kept and shown, and not held.
package quota
