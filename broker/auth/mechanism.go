package auth

import "time"

// Mechanism is one way of proving who one is. It may be used by many exchanges at a time.
type Mechanism interface {
	// Name is the mechanism's name in the protocol, such as PLAIN.
	Name() string
	// Begin begins an exchange.
	Begin() Exchange
}

// Exchange is one client's attempt.
type Exchange interface {
	// Step takes what the client sent and gives what to send it; a nil answer is none. When proven names a user, the client is that user
	// and the exchange is over. After an error it is over, too; a [Refusal] may be told to the client, another error may not, and of a
	// [Transient] one it is told nothing.
	Step(client []byte) (answer []byte, proven Identity, err error)
}

// Identity is who a client has proven to be.
type Identity struct {
	User string
	// ByToken tells that the proof was a delegation token of that user (KIP-48).
	ByToken bool
	// Expires is when the proof ends; zero: never.
	Expires time.Time
}

// Refusal is an error whose text tells a client nothing that it should not know.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Transient is an error that the client's next attempt may not meet. An answer would be the last word for a client; a connection that
// ends is not.
type Transient struct{ Err error }

func (t Transient) Error() string { return t.Err.Error() }
func (t Transient) Unwrap() error { return t.Err }
