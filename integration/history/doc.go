// Package history puts brokers under a load whose every answer is remembered, and judges afterwards what the brokers kept: each acknowledged record is there, at the offset that
// was answered, once, in the order of its producer, and on every replica alike.
package history
