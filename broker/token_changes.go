package broker

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/acl"
	"barnabas/broker/token"
	"barnabas/zkstate"
)

// Every broker writes tokens itself. A change is made of what stands in ZooKeeper, and with its version: two that change one token at once would else undo each other, and who renews what
// another has just ended would bring it back.

// tokenAttempts is how often a change begins anew because another was faster, or because an answer was lost.
const tokenAttempts = 10

// Issue implements api.Tokens.
func (t *tokens) Issue(ctx context.Context, asked token.Token, lifetime int64) (token.Token, error) {
	asked.ID = newTokenID()
	made := t.rules.Issue(asked, lifetime, time.Now().UnixMilli())
	for range tokenAttempts {
		err := t.zk.CreateToken(ctx, t.node(made))
		switch {
		case err == nil, errors.Is(err, zkstate.ErrNodeExists): // an attempt whose answer was lost: nobody else has this id
			t.hold(made)
			t.log.Infof("delegation token %s was created for %s", made.ID, made.Owner)
			return made, nil
		case !errors.Is(err, zkstate.ErrConnectionLoss) || ctx.Err() != nil:
			return token.Token{}, err
		}
	}
	return token.Token{}, zkstate.ErrConnectionLoss
}

// newTokenID is a random UUID in the alphabet of URLs, as Kafka makes it.
func newTokenID() string {
	var id [16]byte
	rand.Read(id[:])
	id[6] = id[6]&0x0f | 0x40 // version 4
	id[8] = id[8]&0x3f | 0x80 // RFC 9562
	return base64.RawURLEncoding.EncodeToString(id[:])
}

func base64Text(hmac []byte) string { return base64.StdEncoding.EncodeToString(hmac) }

// Renew implements api.Tokens.
func (t *tokens) Renew(ctx context.Context, who acl.Principal, hmac []byte, period int64) (int64, error) {
	return t.change(ctx, hmac, func(found token.Token) (next token.Token, gone bool, err error) {
		next, err = t.rules.Renew(found, who, period, time.Now().UnixMilli())
		return next, false, err
	})
}

// Expire implements api.Tokens.
func (t *tokens) Expire(ctx context.Context, who acl.Principal, hmac []byte, period int64) (int64, error) {
	return t.change(ctx, hmac, func(found token.Token) (token.Token, bool, error) {
		return t.rules.Expire(found, who, period, time.Now().UnixMilli())
	})
}

// change decides about the token of that HMAC, and gives the time at which it ends now.
func (t *tokens) change(ctx context.Context, hmac []byte, decide func(token.Token) (next token.Token, gone bool, err error)) (int64, error) {
	t.mu.RLock()
	held := t.mu.byHMAC[string(hmac)]
	t.mu.RUnlock()
	if held == nil {
		return 0, kerr.DelegationTokenNotFound
	}
	next, err := t.rewrite(ctx, held.ID, decide)
	return next.Expires, err
}

// rewrite lets decide make something else of a token, or end it, until that is in ZooKeeper.
func (t *tokens) rewrite(ctx context.Context, id string, decide func(token.Token) (next token.Token, gone bool, err error)) (token.Token, error) {
	var ended token.Token // what a removal left whose answer was lost
	for range tokenAttempts {
		stored, err := t.zk.Tokens(ctx, id)
		if err != nil {
			return token.Token{}, err
		}
		t.learn(id, stored[0])
		if errors.Is(stored[0].Err, zkstate.ErrNoNode) {
			if ended.ID != "" {
				return ended, nil
			}
			return token.Token{}, kerr.DelegationTokenNotFound
		}
		found, err := fromNode(id, stored[0])
		if err != nil {
			return token.Token{}, err
		}
		next, gone, err := decide(found)
		if err != nil {
			return token.Token{}, err
		}
		if gone {
			ended, err = next, t.zk.DeleteToken(ctx, id, stored[0].DataVersion)
		} else {
			err = t.zk.SetToken(ctx, t.node(next), stored[0].DataVersion)
		}
		switch {
		case err == nil && gone:
			t.forget(id)
			t.log.Infof("delegation token %s of %s was ended", id, next.Owner)
			return next, nil
		case err == nil:
			t.hold(next)
			t.log.Infof("delegation token %s of %s ends at %s", id, next.Owner, time.UnixMilli(next.Expires).Format(time.RFC3339))
			return next, nil
		case errors.Is(err, zkstate.ErrBadVersion), errors.Is(err, zkstate.ErrNoNode):
			ended = token.Token{} // it was not this attempt that removed it
		case !errors.Is(err, zkstate.ErrConnectionLoss) || ctx.Err() != nil:
			return token.Token{}, err
		}
	}
	return token.Token{}, fmt.Errorf("delegation token %s changed %d times while it was to be changed here", id, tokenAttempts)
}

// sweepLook is how soon a broker that has become the controller notices that the tokens are its to sweep now.
const sweepLook = 5 * time.Second

// sweep removes tokens that are over, while this broker is the controller: at once when it has become that, and then at every interval. It ends with ctx.
func (t *tokens) sweep(ctx context.Context, interval time.Duration, active func() bool) {
	look := time.NewTicker(min(interval, sweepLook))
	defer look.Stop()
	var last time.Time // zero while another is the controller
	for {
		switch now := time.Now(); {
		case !active():
			last = time.Time{}
		case last.IsZero() || now.Sub(last) >= interval:
			last = now
			t.removeExpired(ctx)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// errStillGood tells that a token was renewed meanwhile.
var errStillGood = errors.New("the token is good")

func (t *tokens) removeExpired(ctx context.Context) {
	for _, known := range t.All() {
		if !known.Over(time.Now().UnixMilli()) {
			continue
		}
		_, err := t.rewrite(ctx, known.ID, func(found token.Token) (token.Token, bool, error) {
			if !found.Over(time.Now().UnixMilli()) {
				return found, false, errStillGood
			}
			return found, true, nil
		})
		if err != nil && !errors.Is(err, errStillGood) && !errors.Is(err, kerr.DelegationTokenNotFound) && ctx.Err() == nil {
			t.log.WithError(err).Errorf("removing delegation token %s, which has expired", known.ID)
		}
	}
}
