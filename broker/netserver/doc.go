// Package netserver owns the listeners and connections of a broker: frames in, answers out in the order of their
// requests, limits on everything that a client can make it hold. It is handed a wire.Handler and knows no API.
package netserver
