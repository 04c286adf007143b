package token

import (
	"crypto/hmac"
	"crypto/sha512"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/acl"
)

// Token is what is known of a token. Its HMAC is not: that follows from ID and the cluster's Secret.
type Token struct {
	ID               string
	Owner, Requester acl.Principal // who it stands for, and who asked for it (KIP-373)
	Renewers         []acl.Principal
	Issued           int64
	Expires          int64 // unless it is renewed
	Latest           int64 // the very last moment, however often it is renewed
}

// Over tells whether the token is good no more.
func (t Token) Over(now int64) bool { return t.Latest < now || t.Expires < now }

// Concerns tells whether somebody may see the token without being allowed to see those of others.
func (t Token) Concerns(who acl.Principal) bool {
	return t.Requester == who || t.renewable(who)
}

func (t Token) renewable(who acl.Principal) bool {
	return t.Owner == who || slices.Contains(t.Renewers, who)
}

// Rules are how long tokens live: Lifetime in all [delegation.token.max.lifetime.ms], and Renewal until they have to be renewed
// [delegation.token.expiry.time.ms]; in milliseconds.
type Rules struct{ Lifetime, Renewal int64 }

// Issue gives a token its times. lifetime is how long it may live in all; 0 or less asks for as long as the rules allow, which is also the most.
func (r Rules) Issue(t Token, lifetime, now int64) Token {
	if lifetime <= 0 || lifetime > r.Lifetime {
		lifetime = r.Lifetime
	}
	t.Issued, t.Latest = now, after(now, lifetime)
	t.Expires = min(t.Latest, after(now, r.Renewal))
	return t
}

// Renew is the token when somebody has renewed it for a period of milliseconds, of which a negative one means that of the rules.
// Errors: DELEGATION_TOKEN_OWNER_MISMATCH, DELEGATION_TOKEN_EXPIRED.
func (r Rules) Renew(t Token, who acl.Principal, period, now int64) (Token, error) {
	if period < 0 {
		period = r.Renewal
	}
	return t.until(who, period, now)
}

// Expire is the token when somebody has put its end a period of milliseconds from now; a negative one ends it at once: then it is gone.
// Errors: DELEGATION_TOKEN_OWNER_MISMATCH, DELEGATION_TOKEN_EXPIRED.
func (r Rules) Expire(t Token, who acl.Principal, period, now int64) (next Token, gone bool, err error) {
	if period < 0 && t.renewable(who) { // also one that has expired already
		t.Expires = now
		return t, true, nil
	}
	next, err = t.until(who, period, now)
	return next, false, err
}

// until moves the end, within the life that the token was given.
func (t Token) until(who acl.Principal, period, now int64) (Token, error) {
	switch {
	case !t.renewable(who):
		return t, kerr.DelegationTokenOwnerMismatch
	case t.Over(now):
		return t, kerr.DelegationTokenExpired
	}
	t.Expires = min(t.Latest, after(now, period))
	return t, nil
}

// after is a time that lies a period, which is not negative, behind another; the end of time when there is none so late.
func after(now, period int64) int64 {
	if end := now + period; end >= now {
		return end
	}
	return 1<<63 - 1
}

// Secret is what the brokers of a cluster share so that each can tell what a token's holder must know [delegation.token.secret.key].
type Secret string

// HMAC is what the holder of a token proves to know (HmacSHA512 of the id).
func (s Secret) HMAC(id string) []byte {
	h := hmac.New(sha512.New, []byte(s))
	h.Write([]byte(id))
	return h.Sum(nil)
}
