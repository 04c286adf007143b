package auth

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"hash"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

var passwords = map[string]string{"alice": "alice's secret", "bob": "b=o,b"}

func TestPlainTakesAUserWithItsPasswordAndNothingElse(t *testing.T) {
	m := &Plain{Passwords: passwords}
	for token, want := range map[string]string{
		"\x00alice\x00alice's secret":             "alice",
		"alice\x00alice\x00alice's secret":        "alice",
		"\x00alice\x00bob's secret":               "Authentication failed: Invalid username or password",
		"\x00eve\x00":                             "Authentication failed: password not specified",
		"\x00eve\x00x":                            "Authentication failed: Invalid username or password",
		"\x00\x00x":                               "Authentication failed: username not specified",
		"bob\x00alice\x00alice's secret":          "Authentication failed: Client requested an authorization id that is different from username",
		"alice\x00alice's secret":                 "Invalid SASL/PLAIN response: expected 3 tokens, got 2",
		"":                                        "Invalid SASL/PLAIN response: expected 3 tokens, got 1",
		"\x00alice\x00alice's secret\x00":         "Invalid SASL/PLAIN response: expected 3 tokens, got 4",
		"\x00alice\x00alice's secret\x00more\x00": "Invalid SASL/PLAIN response: expected 3 tokens, got 4",
	} {
		answer, proven, err := m.Begin().Step([]byte(token))
		assert.Empty(t, answer)
		user := proven.User
		if err != nil {
			user = err.Error()
			assert.ErrorAs(t, err, new(Refusal))
		}
		assert.Equal(t, want, user, "%q", token)
	}
}

// credentialOf is what a server keeps of a password.
func credentialOf(h func() hash.Hash, password string, iterations int) Credential {
	salted, err := pbkdf2.Key(h, password, []byte("salt"), iterations, h().Size())
	if err != nil {
		panic(err)
	}
	mac := func(text string) []byte {
		m := hmac.New(h, salted)
		m.Write([]byte(text))
		return m.Sum(nil)
	}
	stored := h()
	stored.Write(mac("Client Key"))
	return Credential{Salt: []byte("salt"), StoredKey: stored.Sum(nil), ServerKey: mac("Server Key"), Iterations: iterations}
}

func known(h func() hash.Hash, iterations int) Known {
	return Known{User: func(user string) (Credential, bool) {
		password, there := passwords[user]
		return credentialOf(h, password, iterations), there
	}}
}

func nonce() string { return "server" }

// converse lets a client authenticate, and gives the user that the server takes it for.
func converse(client sasl.Mechanism, server Mechanism) (string, error) {
	proven, err := identify(client, server)
	return proven.User, err
}

func identify(client sasl.Mechanism, server Mechanism) (last Identity, err error) {
	session, token, err := client.Authenticate(context.Background(), "broker:9092")
	if err != nil {
		return Identity{}, err
	}
	x := server.Begin()
	for {
		answer, proven, err := x.Step(token)
		if err != nil {
			return Identity{}, err
		}
		done, next, err := session.Challenge(answer)
		if err != nil || done {
			return proven, err
		}
		token = next
	}
}

func TestScramConvincesBothSides(t *testing.T) {
	for _, user := range []string{"alice", "bob"} {
		auth := scram.Auth{User: user, Pass: passwords[user]}
		got, err := converse(auth.AsSha256Mechanism(), NewScram256(known(sha256.New, 4096), nonce))
		require.NoError(t, err)
		assert.Equal(t, user, got)
		got, err = converse(auth.AsSha512Mechanism(), NewScram512(known(sha512.New, 8192), nonce))
		require.NoError(t, err)
		assert.Equal(t, user, got)
	}
}

func TestScramRefusesWhoDoesNotKnowThePassword(t *testing.T) {
	server := NewScram256(known(sha256.New, 4096), nonce)
	_, err := converse(scram.Auth{User: "alice", Pass: "guess"}.AsSha256Mechanism(), server)
	assert.ErrorIs(t, err, errScramProof)
	_, err = converse(scram.Auth{User: "eve", Pass: "guess"}.AsSha256Mechanism(), server)
	assert.ErrorIs(t, err, errScramUser)
	_, err = converse(scram.Auth{User: "alice", Pass: passwords["alice"], Zid: "bob"}.AsSha256Mechanism(), server)
	assert.ErrorAs(t, err, new(Refusal))
	got, err := converse(scram.Auth{User: "alice", Pass: passwords["alice"], Zid: "alice"}.AsSha256Mechanism(), server)
	require.NoError(t, err)
	assert.Equal(t, "alice", got)
	_, err = converse(scram.Auth{User: "alice", Pass: passwords["alice"], IsToken: true}.AsSha256Mechanism(), server)
	assert.ErrorIs(t, err, errToken)
	_, err = converse(scram.Auth{User: "alice", Pass: passwords["alice"]}.AsSha256Mechanism(), NewScram256(known(sha256.New, 4095), nonce))
	assert.ErrorContains(t, err, "4095 iterations")
}

// librdkafka before 2.6.1 sends its nonce and then the whole one.
func TestScramTakesTheNonceOfOldLibrdkafka(t *testing.T) {
	credential := credentialOf(sha256.New, "alice's secret", 4096)
	x := NewScram256(Known{User: func(string) (Credential, bool) { return credential, true }}, nonce).Begin().(*scramExchange)
	challenge, _, err := x.Step([]byte("n,,n=alice,r=client"))
	require.NoError(t, err)
	final := "c=biws,r=clientclientserver"
	salted, err := pbkdf2.Key(sha256.New, "alice's secret", credential.Salt, credential.Iterations, sha256.Size)
	require.NoError(t, err)
	proof := x.mac(salted, []byte("Client Key"))
	subtle.XORBytes(proof, proof, x.mac(credential.StoredKey, []byte("n=alice,r=client,"+string(challenge)+","+final)))
	_, proven, err := x.Step([]byte(final + ",p=" + base64.StdEncoding.EncodeToString(proof)))
	require.NoError(t, err)
	assert.Equal(t, Identity{User: "alice"}, proven)
}

func TestScramMessagesThatMakeNoSenseEndTheExchange(t *testing.T) {
	server := NewScram256(known(sha256.New, 4096), nonce)
	for _, first := range []string{"", ",", ",,n=alice,r=x", "n", "n,,n=alice", "n,,n=,r=x", "n,,m=x,n=alice,r=x", "n,b=x,n=alice,r=x", "p=tls,,n=alice,r=x", "n,,n=al=ice,r=x", "n,,n=alice,r=", "n,,n=alice,r=a b", "n,,x=alice,r=x"} {
		x := server.Begin()
		_, proven, err := x.Step([]byte(first))
		assert.ErrorIs(t, err, errScramFormat, "%q", first)
		assert.Empty(t, proven)
		_, _, err = x.Step([]byte("n,,n=alice,r=x"))
		assert.ErrorIs(t, err, errScramOver)
	}
	long := "p=" + strings.Repeat("AAAA", 100)
	for final, want := range map[string]error{
		"": errScramFormat, "c=biws,r=clientserver": errScramFormat, "c=?,r=clientserver,p=AAAA": errScramFormat, "c=biws,r=clientserver,p=?": errScramFormat,
		"c=biws,p=AAAA,r=clientserver": errScramFormat, "c=biws,r=clientserver," + long: errScramProof, "c=biws,r=clientserver,p=AAAA": errScramProof,
		"c=eSws,r=clientserver,p=AAAA": errScramProof, "c=biws,r=other,p=AAAA": errScramProof, "c=biws,r=clientserver,p=": errScramProof,
	} {
		x := server.Begin()
		challenge, _, err := x.Step([]byte("n,,n=alice,r=client"))
		require.NoError(t, err)
		assert.Equal(t, "r=clientserver,s=c2FsdA==,i=4096", string(challenge))
		_, proven, err := x.Step([]byte(final))
		assert.ErrorIs(t, err, want, "%q", final)
		assert.Empty(t, proven)
		_, _, err = x.Step([]byte(final))
		assert.ErrorIs(t, err, errScramOver)
	}
}

func TestADelegationTokenStandsForItsOwner(t *testing.T) {
	hmac := "aGVsbG8gd29ybGQ="
	token := Token{Credential: credentialOf(sha512.New, hmac, 4096), Owner: "alice", Expires: began.Add(time.Hour)}
	known := known(sha512.New, 4096)
	known.Token = func(id string) (Token, bool) { return token, id == "t1" }
	server := NewScram512(known, nonce)

	proven, err := identify(scram.Auth{User: "t1", Pass: hmac, IsToken: true}.AsSha512Mechanism(), server)
	require.NoError(t, err)
	assert.Equal(t, Identity{User: "alice", ByToken: true, Expires: token.Expires}, proven)

	for _, refused := range []scram.Auth{
		{User: "t1", Pass: hmac}, {User: "t1", Pass: hmac + "x", IsToken: true}, {User: "t2", Pass: hmac, IsToken: true},
		{User: "alice", Pass: passwords["alice"], IsToken: true}, {User: "t1", Pass: hmac, IsToken: true, Zid: "alice"},
	} {
		_, err := identify(refused.AsSha512Mechanism(), server)
		assert.Error(t, err, "%+v", refused)
	}
}

// Only tokenauth=true says so; of two the last counts, as in Kafka.
func TestWhetherANameIsATokensIsSaidByOneExtension(t *testing.T) {
	for extensions, byToken := range map[string]bool{"": false, ",tokenauth=true": true, ",tokenauth=TRUE": true, ",tokenauth=false": false, ",tokenauth": false, ",other=true": false,
		",other=1,tokenauth=true": true, ",tokenauth=false,tokenauth=true": true, ",tokenauth=true,tokenauth=no": false} {
		first, err := parseClientFirst("n,,n=id,r=client" + extensions)
		require.NoError(t, err, extensions)
		assert.Equal(t, byToken, first.byToken, extensions)
	}
}

func FuzzPlain(f *testing.F) {
	f.Add([]byte("\x00alice\x00alice's secret"))
	f.Fuzz(func(t *testing.T, token []byte) {
		_, proven, err := (&Plain{Passwords: passwords}).Begin().Step(token)
		if err == nil {
			require.True(t, strings.HasSuffix(string(token), "\x00"+proven.User+"\x00"+passwords[proven.User]))
		}
	})
}

func FuzzScram(f *testing.F) {
	f.Add([]byte("n,,n=alice,r=client"), []byte("c=biws,r=clientserver,p=AAAA"))
	f.Add([]byte(",,n=alice,r=client"), []byte("c=biws,r=clientserver,p="))
	f.Add([]byte("n,,n=id,r=client,tokenauth=true"), []byte("c=biws,r=clientserver,p=AAAA"))
	credential := credentialOf(sha256.New, "alice's secret", 4096)
	server := NewScram256(Known{User: func(string) (Credential, bool) { return credential, true }, Token: func(string) (Token, bool) {
		return Token{Credential: credential, Owner: "alice", Expires: began}, true
	}}, nonce)
	f.Fuzz(func(t *testing.T, first, final []byte) {
		x := server.Begin()
		if _, proven, err := x.Step(first); err == nil {
			require.Empty(t, proven)
			_, proven, err = x.Step(final)
			require.Error(t, err, "nobody guesses a proof")
			require.Empty(t, proven)
		}
	})
}
