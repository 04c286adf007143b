package oauth

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// believing judges by the published keys of some issuers.
func believing(t testing.TB, set map[string]string, ids ...string) *Signed {
	t.Helper()
	keys, err := parseKeys(published(t, ids...))
	require.NoError(t, err)
	held := &Keys{wanted: make(chan struct{}, 1), set: atomic.Pointer[keySet]{}}
	held.set.Store(&keys)
	s, err := NewSigned(told(set, nil), held)
	require.NoError(t, err)
	return s
}

func TestATokenIsBelievedByTheKeyThatSignedIt(t *testing.T) {
	s := believing(t, nil, "rsa", "p256", "p384", "p521", "ed")
	for algorithm, id := range map[jose.SignatureAlgorithm]string{
		jose.RS256: "rsa", jose.RS384: "rsa", jose.RS512: "rsa", jose.PS256: "rsa", jose.PS384: "rsa", jose.PS512: "rsa",
		jose.ES256: "p256", jose.ES384: "p384", jose.ES512: "p521", jose.EdDSA: "ed",
	} {
		token := issuers()[id].sign(t, algorithm, saying(nil))
		b, err := s.Validate(token, now)
		require.NoError(t, err, algorithm)
		assert.Equal(t, Bearer{Value: token, Subject: "alice", Issued: now.Add(-time.Minute).Local(), Expires: now.Add(59 * time.Minute).Local()}, b)
	}
}

func TestWhatNoKeySignedIsNotBelieved(t *testing.T) {
	s := believing(t, nil, "rsa", "p256", "weak")
	good := issuers()["p256"].sign(t, jose.ES256, saying(nil))
	sections := strings.Split(good, ".")
	altered := saying(map[string]any{"sub": "root"})
	text, err := json.Marshal(altered)
	require.NoError(t, err)
	stolen := issuer{"p256", issuers()["other"].key} // the id of one, the key of another
	public, err := json.Marshal(issuers()["rsa"].public())
	require.NoError(t, err)
	secret, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: public}, (&jose.SignerOptions{}).WithHeader("kid", "rsa"))
	require.NoError(t, err)
	bySecret, err := secret.Sign(text)
	require.NoError(t, err)
	confused, err := bySecret.CompactSerialize()
	require.NoError(t, err)
	for name, token := range map[string]string{
		"other claims":           sections[0] + "." + base64.RawURLEncoding.EncodeToString(text) + "." + sections[2],
		"another's key":          stolen.sign(t, jose.ES256, saying(nil)),
		"a key that is not held": issuers()["other"].sign(t, jose.ES256, saying(nil)),
		"a short key":            issuers()["weak"].sign(t, jose.RS256, saying(nil)),
		"a public key as secret": confused,
		"no signature":           unsigned(`{"alg":"none"}`, string(text)),
		"none with a signature":  unsigned(`{"alg":"none","kid":"p256"}`, string(text)) + sections[2],
		"two sections":           sections[0] + "." + sections[1],
		"four sections":          good + "." + sections[2],
		"nothing":                "",
	} {
		_, err := s.Validate(token, now)
		var refused *Refused
		require.ErrorAs(t, err, &refused, name)
		assert.Equal(t, "invalid_token", refused.Status, name)
		if token != "" {
			assert.NotContains(t, err.Error(), sections[1], name)
		}
	}
}

func TestATokenIsBelievedForWhomAndWhenItIsMeant(t *testing.T) {
	at := func(seconds int64) int64 { return now.Unix() + seconds }
	here := map[string]string{"sasl.oauthbearer.expected.audience": "kafka, other", "sasl.oauthbearer.expected.issuer": "https://issuer"}
	mine := map[string]any{"aud": []string{"web", "kafka"}, "iss": "https://issuer"}
	for _, c := range []struct {
		name   string
		set    map[string]string
		claims map[string]any
		want   string // "": it is believed
	}{
		{"nothing else is expected", nil, nil, ""},
		{"for one of several", here, mine, ""},
		{"for one", here, map[string]any{"aud": "other", "iss": "https://issuer"}, ""},
		{"for another", here, map[string]any{"aud": "web", "iss": "https://issuer"}, "is for"},
		{"for nobody", here, map[string]any{"iss": "https://issuer"}, "is for"},
		{"for somebody, where nobody is expected", nil, map[string]any{"aud": "web"}, "is for"},
		{"for a number", here, map[string]any{"aud": 5, "iss": "https://issuer"}, "claim aud"},
		{"from another", here, map[string]any{"aud": "kafka", "iss": "https://issuer/"}, "is from"},
		{"from nobody", here, map[string]any{"aud": "kafka"}, "is from"},
		{"from a number", nil, map[string]any{"iss": 5}, "claim iss"},
		{"numbered by a number", nil, map[string]any{"jti": 5}, "claim jti"},
		{"over", nil, map[string]any{"exp": at(-30)}, "ended"},
		{"over for less than clocks may differ", nil, map[string]any{"exp": at(-29)}, ""},
		{"over, where clocks may not differ", map[string]string{"sasl.oauthbearer.clock.skew.seconds": "0"}, map[string]any{"exp": at(0)}, "ended"},
		{"without an end", nil, map[string]any{"exp": nil}, "claim exp is missing"},
		{"with an end in words", nil, map[string]any{"exp": "tomorrow"}, "claim exp"},
		{"without a beginning", nil, map[string]any{"iat": nil}, "claim iat is missing"},
		{"issued in the future", nil, map[string]any{"iat": at(3000)}, ""}, // as with Kafka
		{"issued after its end", nil, map[string]any{"iat": at(3541)}, "before it begins"},
		{"issued before there was time", nil, map[string]any{"iat": -1}, "before 1970"},
		{"not yet good", nil, map[string]any{"nbf": at(31)}, "is not good before"},
		{"soon good", nil, map[string]any{"nbf": at(30)}, ""},
		{"of nobody", nil, map[string]any{"sub": nil}, "claim sub names nobody"},
		{"of blanks", nil, map[string]any{"sub": "  "}, "claim sub names nobody"},
		{"of a number", nil, map[string]any{"sub": 5}, "claim sub"},
		{"with a scope", nil, map[string]any{"scope": []string{"a", "b"}}, ""},
		{"with a scope twice", nil, map[string]any{"scope": []string{"a", " a"}}, "there twice"},
		{"with an empty scope", nil, map[string]any{"scope": ""}, "empty"},
		{"with no texts as scope", nil, map[string]any{"scope": []int{1}}, "claim scope"},
		{"with something else as scope", nil, map[string]any{"scope": 1}, ""},
	} {
		_, err := believing(t, c.set, "p256").Validate(issuers()["p256"].sign(t, jose.ES256, saying(c.claims)), now)
		if c.want == "" {
			assert.NoError(t, err, c.name)
		} else {
			assert.ErrorContains(t, err, c.want, c.name)
		}
	}
}

func TestTheNameOfAHolderIsWhatItsClaimSays(t *testing.T) {
	s := believing(t, map[string]string{"sasl.oauthbearer.sub.claim.name": "client"}, "p256")
	b, err := s.Validate(issuers()["p256"].sign(t, jose.ES256, saying(map[string]any{"client": " app-1 "})), now)
	require.NoError(t, err)
	assert.Equal(t, "app-1", b.Subject)
}

func TestKeysAreFoundByWhatTheTokenSays(t *testing.T) {
	signing := func(id, use, algorithm string, of string) jose.JSONWebKey {
		return jose.JSONWebKey{Key: issuers()[of].key.Public(), KeyID: id, Use: use, Algorithm: algorithm}
	}
	set := keySet{signing("1", "enc", "", "p256"), signing("2", "sig", "PS256", "rsa"), signing("2", "", "RS256", "rsa"), signing("3", "", "", "p384"), signing("4", "", "ES384", "p256")}
	for _, c := range []struct {
		algorithm jose.SignatureAlgorithm
		id        string
		want      string // of whom, "": nobody's
	}{
		{jose.ES256, "1", ""}, // for something else
		{jose.RS256, "2", "rsa"}, {jose.RS256, "", "rsa"}, {jose.RS512, "2", ""}, {jose.ES384, "3", "p384"}, {jose.ES256, "3", ""}, {jose.ES384, "5", ""},
		{jose.ES256, "4", "p256"}, // Kafka looks at a key's algorithm only where there are several
	} {
		key, found := set.find(c.algorithm, c.id)
		if assert.Equal(t, c.want != "", found, c) && found {
			assert.Equal(t, issuers()[c.want].key.Public(), key)
		}
	}
}

func TestKeysThatAreOfNoUseArePassedOver(t *testing.T) {
	private, err := json.Marshal(jose.JSONWebKey{Key: issuers()["p256"].key, KeyID: "p256"})
	require.NoError(t, err)
	set, err := parseKeys([]byte(`{"keys":[{"kty":"oct","kid":"s","k":"c2VjcmV0"},{"kty":"martian"},{"kty":"RSA"},5,null,` + string(private) + `]}`))
	require.NoError(t, err)
	require.Len(t, set, 1)
	assert.Equal(t, issuers()["p256"].key.Public(), set[0].Key, "what of it is private is not kept")
	for _, text := range []string{"", "[]", "{}", `{"keys":5}`, "<html>"} {
		_, err := parseKeys([]byte(text))
		assert.Error(t, err, text)
	}
	set, err = parseKeys([]byte(`{"keys":[]}`))
	require.NoError(t, err)
	assert.Empty(t, set)
}

func FuzzSigned(f *testing.F) {
	f.Add(issuers()["p256"].sign(f, jose.ES256, saying(nil)), []byte(`{"keys":[]}`))
	f.Add(unsigned(`{"alg":"none"}`, `{"sub":"alice"}`), published(f, "p256"))
	f.Add("..", []byte("{}"))
	s := believing(f, nil, "p256")
	f.Fuzz(func(t *testing.T, token string, document []byte) {
		_, _ = parseKeys(document)
		if b, err := s.Validate(token, now); err == nil {
			require.Equal(t, "alice", b.Subject, "nobody guesses a signature")
		} else {
			require.ErrorAs(t, err, new(*Refused))
		}
	})
}

// Claims that a key has signed may still be anything.
func FuzzClaims(f *testing.F) {
	f.Add(`{"sub":"alice","iat":1767225540,"exp":1767229140,"aud":["a"],"iss":"i","scope":"s"}`)
	f.Add(`{"sub":5,"iat":1e300,"exp":-1e300,"nbf":1e18,"aud":[1],"scope":[[]]}`)
	s := believing(f, map[string]string{"sasl.oauthbearer.expected.audience": "a"}, "p256")
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: issuers()["p256"].key}, nil)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		signed, err := signer.Sign([]byte(text))
		require.NoError(t, err)
		token, err := signed.CompactSerialize()
		require.NoError(t, err)
		if b, err := s.Validate(token, now); err == nil {
			require.NotEmpty(t, strings.TrimSpace(b.Subject))
			require.True(t, b.Expires.After(now.Add(-31*time.Second)))
		}
	})
}
