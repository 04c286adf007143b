package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/sirupsen/logrus"
)

// fits tells which keys an algorithm takes. A secret that both sides know is none of them: a set of keys is public.
var fits = map[jose.SignatureAlgorithm]func(key any) bool{
	jose.RS256: isRSA, jose.RS384: isRSA, jose.RS512: isRSA, jose.PS256: isRSA, jose.PS384: isRSA, jose.PS512: isRSA,
	jose.ES256: isOn(elliptic.P256()), jose.ES384: isOn(elliptic.P384()), jose.ES512: isOn(elliptic.P521()),
	jose.EdDSA: func(key any) bool { _, ok := key.(ed25519.PublicKey); return ok },
}

var algorithms = func() (all []jose.SignatureAlgorithm) {
	for a := range fits {
		all = append(all, a)
	}
	slices.Sort(all)
	return all
}()

// isRSA wants 2048 bits at least, as RFC 7518 does in section 3.3.
func isRSA(key any) bool {
	k, ok := key.(*rsa.PublicKey)
	return ok && k.N.BitLen() >= 2048
}

func isOn(curve elliptic.Curve) func(key any) bool {
	return func(key any) bool {
		k, ok := key.(*ecdsa.PublicKey)
		return ok && k.Curve == curve
	}
}

// keySet is what a document of keys says (RFC 7517). It does not change.
type keySet []jose.JSONWebKey

// parseKeys reads a document. A key that makes no sense, or is of a kind that is not known, is passed over.
func parseKeys(text []byte) (keySet, error) {
	var document struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &document); err != nil || document.Keys == nil {
		return nil, errors.New("not a set of keys (RFC 7517)")
	}
	var set keySet
	for _, raw := range *document.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) != nil {
			continue
		}
		if public := key.Public(); public.Valid() {
			set = append(set, public)
		}
	}
	return set, nil
}

// find gives the key for a signature. An id must be that of the key; among several keys that fit, those that name another algorithm are passed over.
func (set keySet) find(algorithm jose.SignatureAlgorithm, id string) (any, bool) {
	var found []jose.JSONWebKey
	for _, key := range set {
		if (id == "" || key.KeyID == id) && (key.Use == "" || key.Use == "sig") && fits[algorithm](key.Key) {
			found = append(found, key)
		}
	}
	if len(found) > 1 {
		found = slices.DeleteFunc(found, func(key jose.JSONWebKey) bool { return key.Algorithm != "" && key.Algorithm != string(algorithm) })
	}
	if len(found) == 0 {
		return nil, false
	}
	return found[0].Key, true
}

// leastPause is how often the set is read at most because a token names a key that is not in it: anybody can name one.
const leastPause = 10 * time.Second

// Keys are those by which signed tokens are judged [sasl.oauthbearer.jwks.endpoint.*]. Those in a file are read once; those at an address are read again from time to time, and when a
// token names one that is not there. Who asks never waits for it.
type Keys struct {
	where                  *url.URL
	fetch                  func(context.Context) ([]byte, error)
	interval, pause, tries time.Duration
	set                    atomic.Pointer[keySet]
	wanted                 chan struct{}
	log                    *logrus.Entry
}

// ReadKeys reads them for the first time.
func ReadKeys(ctx context.Context, c Config, log *logrus.Entry) (*Keys, error) {
	const name = "sasl.oauthbearer.jwks.endpoint.url"
	k := &Keys{wanted: make(chan struct{}, 1), log: log}
	var err error
	if k.where, err = c.endpoint(name); err != nil {
		return nil, err
	}
	if k.interval, err = c.span("sasl.oauthbearer.jwks.endpoint.refresh.ms", time.Millisecond, time.Hour); err != nil {
		return nil, err
	}
	if k.interval <= 0 {
		return nil, errors.New("sasl.oauthbearer.jwks.endpoint.refresh.ms: 0 is too often")
	}
	if k.pause, k.tries, err = c.pauses("sasl.oauthbearer.jwks.endpoint.retry.backoff"); err != nil {
		return nil, err
	}
	k.fetch = func(context.Context) ([]byte, error) { return os.ReadFile(k.where.Path) }
	if k.where.Scheme != schemeFile {
		asks, err := c.caller(k.where, usualWait, usualWait)
		if err != nil {
			return nil, err
		}
		k.fetch = func(ctx context.Context) ([]byte, error) { return asks.get(ctx, k.where.String()) }
	}
	if err := k.read(ctx); err != nil {
		return nil, fmt.Errorf("%s: reading %s: %w", name, k.where.Redacted(), err)
	}
	return k, nil
}

// find gives the key for a signature.
func (k *Keys) find(algorithm jose.SignatureAlgorithm, id string) (any, error) {
	if key, found := k.set.Load().find(algorithm, id); found {
		return key, nil
	}
	select {
	case k.wanted <- struct{}{}:
	default:
	}
	return nil, fmt.Errorf("no key for %s with id %.100q", algorithm, id)
}

// Keep keeps the keys of an address fresh until ctx ends.
func (k *Keys) Keep(ctx context.Context) {
	if k.where.Scheme == schemeFile {
		return
	}
	due := time.NewTicker(k.interval)
	defer due.Stop()
	var calm <-chan time.Time // while it is set, nobody's wish is heard
	for {
		wanted := k.wanted
		if calm != nil {
			wanted = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-calm:
			calm = nil
			continue
		case <-wanted:
		case <-due.C:
		}
		if err := retry(ctx, k.pause, k.tries, func() error { return k.read(ctx) }); err != nil && ctx.Err() == nil {
			k.log.WithError(err).Warnf("the keys of bearer tokens cannot be read from %s; those before stay in use", k.where.Redacted())
		}
		calm = time.After(leastPause)
		due.Reset(k.interval)
	}
}

func (k *Keys) read(ctx context.Context) error {
	text, err := k.fetch(ctx)
	if err != nil {
		return err
	}
	set, err := parseKeys(text)
	if err != nil {
		return err
	}
	k.set.Store(&set)
	return nil
}
