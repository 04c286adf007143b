package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func quiet() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}

// told is a configuration of what is set, and of a login module's options.
func told(set, options map[string]string) Config {
	return Config{Setting: func(name string) string { return set[name] }, Options: options}
}

// issuer signs, and publishes what it signs with.
type issuer struct {
	id  string
	key crypto.Signer
}

// issuers are one of each kind of key. RSA keys take a while to make.
var issuers = sync.OnceValue(func() map[string]issuer {
	all := map[string]issuer{}
	add := func(id string, key crypto.Signer, err error) {
		if err != nil {
			panic(err)
		}
		all[id] = issuer{id, key}
	}
	rsa2048, err := rsa.GenerateKey(rand.Reader, 2048)
	add("rsa", rsa2048, err)
	rsa1024, err := rsa.GenerateKey(rand.Reader, 1024)
	add("weak", rsa1024, err)
	for id, curve := range map[string]elliptic.Curve{"p256": elliptic.P256(), "p384": elliptic.P384(), "p521": elliptic.P521(), "other": elliptic.P256()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		add(id, key, err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	add("ed", ed, err)
	return all
})

func (i issuer) public() jose.JSONWebKey { return jose.JSONWebKey{Key: i.key.Public(), KeyID: i.id} }

// published is a document of the keys of some issuers.
func published(t testing.TB, ids ...string) []byte {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, id := range ids {
		set.Keys = append(set.Keys, issuers()[id].public())
	}
	text, err := json.Marshal(set)
	require.NoError(t, err)
	return text
}

// sign makes a token of claims.
func (i issuer) sign(t testing.TB, algorithm jose.SignatureAlgorithm, c map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: i.key}, (&jose.SignerOptions{}).WithHeader("kid", i.id))
	require.NoError(t, err)
	text, err := json.Marshal(c)
	require.NoError(t, err)
	signed, err := signer.Sign(text)
	require.NoError(t, err)
	token, err := signed.CompactSerialize()
	require.NoError(t, err)
	return token
}

// unsigned makes a token that nobody signs, of a header and claims as they stand.
func unsigned(header, claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(header)) + "." + encode([]byte(claims)) + "."
}

// saying are the claims of alice's token, which is good from a minute ago for an hour, but for changes; nil takes a claim away.
func saying(changes map[string]any) map[string]any {
	c := map[string]any{"sub": "alice", "iat": now.Unix() - 60, "exp": now.Unix() + 3540}
	for name, value := range changes {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	return c
}
