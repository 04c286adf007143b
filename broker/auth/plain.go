package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"
)

// Plain is the mechanism PLAIN (RFC 4616): the client sends user and password.
type Plain struct {
	Passwords map[string]string // by user
}

// Name implements Mechanism.
func (p *Plain) Name() string { return "PLAIN" }

// Begin implements Mechanism.
func (p *Plain) Begin() Exchange { return p }

// Step implements Exchange: there is one, and it has no state. The words of refusals are Kafka's.
func (p *Plain) Step(client []byte) (answer []byte, proven Identity, err error) {
	fields := strings.SplitN(strings.ToValidUTF8(string(client), "\ufffd"), "\x00", 4)
	if len(fields) != 3 {
		return nil, Identity{}, Refusal(fmt.Sprintf("Invalid SASL/PLAIN response: expected 3 tokens, got %d", len(fields)))
	}
	actingAs, user, password := fields[0], fields[1], fields[2]
	switch {
	case user == "":
		return nil, Identity{}, Refusal("Authentication failed: username not specified")
	case password == "":
		return nil, Identity{}, Refusal("Authentication failed: password not specified")
	}
	expected, known := p.Passwords[user]
	if !equal(password, expected) || !known {
		return nil, Identity{}, Refusal("Authentication failed: Invalid username or password")
	}
	if actingAs != "" && actingAs != user {
		return nil, Identity{}, Refusal("Authentication failed: Client requested an authorization id that is different from username")
	}
	return []byte{}, Identity{User: user}, nil
}

// equal compares in a time that tells nothing of either, their lengths included.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
