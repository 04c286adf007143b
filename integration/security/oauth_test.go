package security

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

const (
	bearerPackage = "org.apache.kafka.common.security.oauthbearer."
	bearerModule  = bearerPackage + "OAuthBearerLoginModule"
	bearerIssuer  = "https://issuer.example"
)

// signingKey is a key of the issuer, or of a forger.
type signingKey struct {
	id  string
	key crypto.Signer
}

// signingKeys are made once: those of RSA take a while.
var signingKeys = sync.OnceValue(func() map[string]signingKey {
	all := map[string]signingKey{}
	for id, bits := range map[string]int{"rsa": 2048, "rsa-2": 2048, "weak": 1024} {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			panic(err)
		}
		all[id] = signingKey{id, key}
	}
	for id, curve := range map[string]elliptic.Curve{"p256": elliptic.P256(), "p384": elliptic.P384(), "p521": elliptic.P521(), "forger": elliptic.P256()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			panic(err)
		}
		all[id] = signingKey{id, key}
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	all["ed"] = signingKey{"ed", ed}
	return all
})

// sign makes a token; without an id the header names no key.
func (k signingKey) sign(t testing.TB, algorithm jose.SignatureAlgorithm, claims map[string]any) string {
	t.Helper()
	options := &jose.SignerOptions{}
	if k.id != "" {
		options = options.WithHeader("kid", k.id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: k.key}, options)
	require.NoError(t, err)
	text, err := json.Marshal(claims)
	require.NoError(t, err)
	signed, err := signer.Sign(text)
	require.NoError(t, err)
	token, err := signed.CompactSerialize()
	require.NoError(t, err)
	return token
}

// provider is an identity provider on a loopback address: its keys, and tokens for the clients app and broker.
type provider struct{ url string }

const appSecret = "app-secret"

// tokensLast is how long the tokens of the provider are good. Brokers believe them for half a minute more, so that a machine may be held up.
const tokensLast = 20 * time.Second

func startProvider(t testing.TB) provider {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, id := range []string{"rsa", "rsa-2", "weak", "p256", "p384", "p521", "ed"} {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: signingKeys()[id].key.Public(), KeyID: id})
	}
	set.Keys = append(set.Keys, jose.JSONWebKey{Key: signingKeys()["p256"].key.Public(), KeyID: "for-encryption", Use: "enc"})
	keys, err := json.Marshal(set)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(keys) })
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		client, secret, _ := r.BasicAuth()
		if secret != appSecret || r.FormValue("grant_type") != "client_credentials" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client"}`)
			return
		}
		claims := claimsOf(client, map[string]any{"exp": time.Now().Add(tokensLast).Unix()})
		if scope := r.FormValue("scope"); scope != "" { // clients take no empty one
			claims["scope"] = scope
		}
		token := signingKeys()["rsa"].sign(t, jose.RS256, claims)
		w.Header().Set("Content-Type", "application/json") // which librdkafka wants to see
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": token, "token_type": "Bearer"})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return provider{s.URL}
}

// claimsOf are those of a token that is good for an hour, but for changes; nil takes a claim away.
func claimsOf(subject string, changes map[string]any) map[string]any {
	now := time.Now().Unix()
	c := map[string]any{"sub": subject, "iat": now - 1, "exp": now + 3600, "aud": []string{"web", "kafka"}, "iss": bearerIssuer}
	for name, value := range changes {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	return c
}

// unsigned makes a token of a header and claims that nobody signs.
func unsigned(t testing.TB, header string, claims map[string]any) string {
	t.Helper()
	text, err := json.Marshal(claims)
	require.NoError(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(header)) + "." + encode(text) + "."
}

const noSignature = `{"alg":"none"}`

// onListener puts settings behind a listener, and those of a mechanism behind both.
func onListener(listener string, set map[string]string) map[string]string {
	all := map[string]string{}
	for name, value := range set {
		all["listener.name."+listener+"."+name] = value
	}
	return all
}

// startBearers starts a broker that believes tokens: UNSIGNED ones, UNSIGNED ones with a SCOPE, SIGNED ones for it, and those signed for ANYBODY, for a SHORT while.
func startBearers(t *testing.T, program cluster.Program, p provider) broker {
	b := broker{addrs: map[string]string{}}
	listeners, protocols := []string{"PLAINTEXT://${addr}"}, []string{"PLAINTEXT:PLAINTEXT"}
	for _, name := range []string{"UNSIGNED", "SCOPED", "SIGNED", "ANYBODY", "SHORT"} {
		b.addrs[name] = net.JoinHostPort("127.0.0.1", strconv.Itoa(cluster.Port(t)))
		listeners, protocols = append(listeners, name+"://"+b.addrs[name]), append(protocols, name+":SASL_PLAINTEXT")
	}
	signed := map[string]string{
		"oauthbearer.sasl.jaas.config":                   jaas(bearerModule),
		"oauthbearer.sasl.server.callback.handler.class": bearerPackage + "OAuthBearerValidatorCallbackHandler",
		"sasl.oauthbearer.jwks.endpoint.url":             p.url + "/keys",
	}
	meant := with(signed, map[string]string{"sasl.oauthbearer.expected.audience": "kafka,other", "oauthbearer.sasl.oauthbearer.expected.issuer": bearerIssuer, "sasl.oauthbearer.clock.skew.seconds": "600"})
	older := with(meant, map[string]string{"oauthbearer.sasl.server.callback.handler.class": bearerPackage + "secured.OAuthBearerValidatorCallbackHandler", "connections.max.reauth.ms": strconv.Itoa(reauthMs)})
	settings := with(
		map[string]string{
			"listeners": strings.Join(listeners, ","), "listener.security.protocol.map": strings.Join(protocols, ","), "sasl.enabled.mechanisms": "OAUTHBEARER",
			"auto.create.topics.enable": "true", "offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0", "zookeeper.session.timeout.ms": "30000",
		},
		onListener("unsigned", map[string]string{"oauthbearer.sasl.jaas.config": jaas(bearerModule, `unsecuredLoginStringClaim_sub="broker"`)}),
		onListener("scoped", map[string]string{"oauthbearer.sasl.jaas.config": jaas(bearerModule, `unsecuredLoginStringClaim_sub="broker"`, `unsecuredValidatorRequiredScope="write read"`,
			`unsecuredValidatorPrincipalClaimName="name"`, `unsecuredLoginPrincipalClaimName="name"`, `unsecuredLoginStringClaim_name="broker"`)}),
		onListener("signed", meant), onListener("anybody", signed), onListener("short", older),
	)
	b.Cluster = cluster.StartProgram(t, program, zktest.Embedded(t).Addr(), 1, settings, func(int) map[string]string { return nil })
	return b
}

// presents shows a token, and tells how long a session lasts that ends with it: short of an hour, as all tokens here are good for.
func presents(message string) step {
	return func(s stranger) string {
		req := kmsg.NewPtrSASLAuthenticateRequest()
		req.SASLAuthBytes = []byte(message)
		var challenge string
		req.SetVersion(2)
		frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("stranger")).AppendRequest(nil, req, 1)[4:]
		return s.says(frame, func(body []byte) string {
			resp := kmsg.NewPtrSASLAuthenticateResponse()
			resp.SetVersion(2)
			require.NoError(s.t, resp.ReadFrom(body[5:]))
			if challenge = string(resp.SASLAuthBytes); challenge != "" {
				challenge = " and told " + challenge
			}
			const hour, held = int64(3600_000), int64(600_000)
			if resp.SessionLifetimeMillis > hour-held && resp.SessionLifetimeMillis <= hour {
				return fmt.Sprintf("authenticated %d for the token's life%s", resp.ErrorCode, challenge)
			}
			return told(resp) + challenge
		})
	}
}

// bearing is a client's first message.
func bearing(token string) string { return "n,,\x01auth=Bearer " + token + "\x01\x01" }

const (
	oneOffered = "shaken 0, 1 mechanisms"
	forItsLife = "authenticated 0 for the token's life"
	badToken   = `{"status":"invalid_token"}`
)

// What strangers show, and what Apache Kafka 3.9.1 answers: in one word where the token is good or not, else in its own.
type showing struct {
	name, listener string
	message        string
	want           string
}

const (
	taken   = "taken"
	refused = "refused"
	scarce  = "lacking scope"
	garbled = "garbled"
)

func showings(t *testing.T) []showing {
	keys := signingKeys()
	now := time.Now().Unix()
	good := keys["p256"].sign(t, jose.ES256, claimsOf("alice", nil))
	sections := strings.Split(good, ".")
	root := strings.Split(unsigned(t, noSignature, claimsOf("root", nil)), ".")
	public, err := json.Marshal(jose.JSONWebKey{Key: keys["rsa"].key.Public()})
	require.NoError(t, err)
	bySecret, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: public}, (&jose.SignerOptions{}).WithHeader("kid", "rsa"))
	require.NoError(t, err)
	confused, err := bySecret.Sign([]byte(`{"sub":"root"}`))
	require.NoError(t, err)
	secret, err := confused.CompactSerialize()
	require.NoError(t, err)
	plain := func(changes map[string]any) string { return unsigned(t, noSignature, claimsOf("alice", changes)) }
	all := []showing{
		{"unsigned", "UNSIGNED", bearing(plain(nil)), taken},
		{"unsigned, as its holder", "UNSIGNED", "n,a=alice,\x01auth=Bearer " + plain(nil) + "\x01\x01", taken},
		{"unsigned, as somebody else", "UNSIGNED", "n,a=bob,\x01auth=Bearer " + plain(nil) + "\x01\x01",
			`authenticated 58 "Authentication failed: Client requested an authorization id (bob) that is different from the token's principal name (alice)" for 0 ms`},
		{"unsigned, with extensions", "UNSIGNED", "n,,\x01traceId=1 2\x01auth=bEARER   " + plain(nil) + "\x01\x01", taken},
		{"unsigned, over", "UNSIGNED", bearing(plain(map[string]any{"iat": now - 20, "exp": now - 10})), refused},
		{"unsigned, issued in the future", "UNSIGNED", bearing(plain(map[string]any{"iat": now + 1000})), refused},
		{"unsigned, of nobody", "UNSIGNED", bearing(plain(map[string]any{"sub": nil})), refused},
		{"unsigned, without an end", "UNSIGNED", bearing(plain(map[string]any{"exp": nil})), refused},
		{"signed where nobody signs", "UNSIGNED", bearing(good), refused},
		{"no token", "UNSIGNED", bearing("nonsense"), refused},
		{"an extension without a name", "UNSIGNED", "n,,\x01auth=Bearer " + plain(nil) + "\x01=x\x01\x01", garbled},
		{"an extension without a value", "UNSIGNED", "n,,\x01x=\x01auth=Bearer " + plain(nil) + "\x01\x01", garbled},
		{"nothing", "UNSIGNED", "", garbled},
		{"an acknowledgement of nothing", "UNSIGNED", "\x01", garbled},
		{"no end", "UNSIGNED", "n,,\x01auth=Bearer " + plain(nil) + "\x01", garbled},
		{"with channel binding", "UNSIGNED", "y,,\x01auth=Bearer " + plain(nil) + "\x01\x01", garbled},
		{"extensions alone", "UNSIGNED", "n,,\x01x=y\x01\x01", garbled},
		{"a token of other characters", "UNSIGNED", bearing("a,b"), garbled},
		{"with scope", "SCOPED", bearing(plain(map[string]any{"name": "alice", "scope": []string{"read", "write"}})), taken},
		{"with less scope", "SCOPED", bearing(plain(map[string]any{"name": "alice", "scope": []string{"read"}})), scarce},
		{"with the scope in one text", "SCOPED", bearing(plain(map[string]any{"name": "alice", "scope": "write read"})), scarce},
		{"without scope", "SCOPED", bearing(plain(map[string]any{"name": "alice"})), scarce},
		{"by another claim", "SCOPED", bearing(plain(nil)), refused},

		{"a forged signature", "SIGNED", bearing(signingKey{"p256", keys["forger"].key}.sign(t, jose.ES256, claimsOf("root", nil))), refused},
		{"other claims", "SIGNED", bearing(sections[0] + "." + root[1] + "." + sections[2]), refused},
		{"a key that nobody published", "SIGNED", bearing(keys["forger"].sign(t, jose.ES256, claimsOf("root", nil))), refused},
		{"a key of another kind", "SIGNED", bearing(signingKey{"p256", keys["rsa"].key}.sign(t, jose.RS256, claimsOf("root", nil))), refused},
		{"a key for something else", "SIGNED", bearing(signingKey{"for-encryption", keys["p256"].key}.sign(t, jose.ES256, claimsOf("root", nil))), refused},
		{"no key named, and the first fits", "SIGNED", bearing(signingKey{"", keys["rsa"].key}.sign(t, jose.RS256, claimsOf("alice", nil))), taken},
		{"no key named, and the first does not fit", "SIGNED", bearing(signingKey{"", keys["rsa-2"].key}.sign(t, jose.RS256, claimsOf("alice", nil))), refused},
		{"a short key", "SIGNED", bearing(keys["weak"].sign(t, jose.RS256, claimsOf("alice", nil))), refused},
		{"a public key as secret", "SIGNED", bearing(secret), refused},
		{"unsigned where tokens are signed", "SIGNED", bearing(plain(nil)), refused},
		{"unsigned with a signature", "SIGNED", bearing(plain(nil) + sections[2]), refused},
		{"no token at all", "SIGNED", bearing("nonsense"), refused},
		{"a signed one, as somebody else", "SIGNED", "n,a=bob,\x01auth=Bearer " + good + "\x01\x01",
			`authenticated 58 "Authentication failed: Client requested an authorization id (bob) that is different from the token's principal name (alice)" for 0 ms`},
		{"where sessions are short", "SHORT", bearing(good), shortly},
	}
	for algorithm, id := range map[jose.SignatureAlgorithm]string{jose.RS256: "rsa", jose.RS384: "rsa-2", jose.RS512: "rsa", jose.PS256: "rsa", jose.PS384: "rsa", jose.PS512: "rsa", jose.ES256: "p256", jose.ES384: "p384", jose.ES512: "p521", jose.EdDSA: "ed"} {
		all = append(all, showing{"signed by " + string(algorithm), "SIGNED", bearing(keys[id].sign(t, algorithm, claimsOf("alice", nil))), taken})
	}
	for _, c := range []struct {
		name, listener string
		claims         map[string]any
		want           string
	}{
		{"over", "SIGNED", map[string]any{"iat": now - 7200, "exp": now - 3600}, refused},
		{"over, but not for all clocks", "SIGNED", map[string]any{"iat": now - 3600, "exp": now - 3}, `authenticated 0 "" for 0 ms`},
		{"without an end", "SIGNED", map[string]any{"exp": nil}, refused},
		{"with an end in words", "SIGNED", map[string]any{"exp": "tomorrow"}, refused},
		{"without a beginning", "SIGNED", map[string]any{"iat": nil}, refused},
		{"issued in the future", "SIGNED", map[string]any{"iat": now + 1000}, taken},
		{"issued after its end", "SIGNED", map[string]any{"iat": now + 5000}, refused},
		{"issued before there was time", "SIGNED", map[string]any{"iat": -1}, refused},
		{"not yet good", "SIGNED", map[string]any{"nbf": now + 1000}, refused},
		{"good for a while", "SIGNED", map[string]any{"nbf": now - 1}, taken},
		{"for another", "SIGNED", map[string]any{"aud": "web"}, refused},
		{"for nobody", "SIGNED", map[string]any{"aud": nil}, refused},
		{"for one in a text", "SIGNED", map[string]any{"aud": "other"}, taken},
		{"for numbers", "SIGNED", map[string]any{"aud": []any{1, "kafka"}}, refused},
		{"for somebody, where nobody is expected", "ANYBODY", nil, refused},
		{"for nobody, where nobody is expected", "ANYBODY", map[string]any{"aud": nil, "iss": nil}, taken},
		{"from another", "SIGNED", map[string]any{"iss": bearerIssuer + "/"}, refused},
		{"from nobody", "SIGNED", map[string]any{"iss": nil}, refused},
		{"from a number", "ANYBODY", map[string]any{"aud": nil, "iss": 5}, refused},
		{"numbered by a number", "ANYBODY", map[string]any{"aud": nil, "jti": 5}, refused},
		{"of nobody", "SIGNED", map[string]any{"sub": nil}, refused},
		{"of blanks", "SIGNED", map[string]any{"sub": " "}, refused},
		{"of a number", "SIGNED", map[string]any{"sub": 5}, refused},
		{"without scope", "SIGNED", map[string]any{"scope": nil}, taken},
		{"with the same scope twice", "SIGNED", map[string]any{"scope": []string{"a", "a"}}, refused},
		{"with an empty scope", "SIGNED", map[string]any{"scope": ""}, refused},
		{"with a number as scope", "SIGNED", map[string]any{"scope": 5}, taken},
	} {
		all = append(all, showing{"signed, " + c.name, c.listener, bearing(keys["p256"].sign(t, jose.ES256, claimsOf("alice", c.claims))), c.want})
	}
	return all
}

// conversation is what is said after a showing, and what is to be answered.
func (s showing) conversation() (steps []step, want []string) {
	steps, want = []step{shake(1, "OAUTHBEARER"), presents(s.message)}, []string{oneOffered}
	switch s.want {
	case taken:
		return append(steps, metadata), append(want, forItsLife, "1 brokers")
	case refused, scarce:
		status := badToken
		if s.want == scarce {
			status = `{"status":"insufficient_scope", "scope":"[write, read]"}`
		}
		return append(steps, presents("\x01"), metadata), append(want, `authenticated 0 "" for 0 ms and told `+status, fmt.Sprintf(`authenticated 58 %q for 0 ms`, status), "closed")
	case garbled:
		return append(steps, metadata), append(want, `authenticated 58 "Authentication failed during authentication due to invalid credentials with SASL mechanism OAUTHBEARER" for 0 ms`, "closed")
	}
	return steps, append(want, s.want)
}

// Both brokers are shown the same.
func TestTokensAreJudgedAsByApacheKafka(t *testing.T) {
	p := startProvider(t)
	for name, program := range map[string]cluster.Program{"barnabas": cluster.Barnabas, "Apache Kafka": cluster.Kafka("3.9.1")} {
		t.Run(name, func(t *testing.T) {
			b := startBearers(t, program, p)
			for _, s := range showings(t) {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					steps, want := s.conversation()
					assert.Equal(t, want, converse(t, b.addrs[s.listener], steps))
				})
			}
			ownToolsByTokens(t, b, p)
			t.Run("without headers", func(t *testing.T) {
				t.Parallel()
				good := bearing(signingKeys()["p256"].sign(t, jose.ES256, claimsOf("alice", nil)))
				assert.Equal(t, []string{oneOffered, `raw ""`, "1 brokers"}, converse(t, b.addrs["SIGNED"], []step{shake(0, "OAUTHBEARER"), raw(good), metadata}))
			})
			t.Run("again", func(t *testing.T) {
				t.Parallel()
				as := func(who string) step {
					return presents(bearing(signingKeys()["p256"].sign(t, jose.ES256, claimsOf(who, nil))))
				}
				want := []string{oneOffered, shortly, oneOffered, `authenticated 58 "Cannot change principals during re-authentication from User.alice: User.bob" for 0 ms`, "closed"}
				assert.Equal(t, want, converseInTime(t, b.addrs["SHORT"], []step{shake(1, "OAUTHBEARER"), as("alice"), shake(1, "OAUTHBEARER"), as("bob"), metadata}, want))
			})
		})
	}
}
