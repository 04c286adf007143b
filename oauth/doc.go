// Package oauth is what SASL/OAUTHBEARER (RFC 7628, KIP-255, KIP-768) needs besides the exchange itself: a server's judgement of bearer tokens, and where a client's token comes from.
// It does what Kafka's own callback handlers do, by their settings. Nothing here starts a goroutine: who wants keys and tokens kept fresh calls Keep on one of his own.
package oauth
