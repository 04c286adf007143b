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
		answer, user, err := m.Begin().Step([]byte(token))
		assert.Empty(t, answer)
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

func known(h func() hash.Hash, iterations int) func(string) (Credential, bool) {
	return func(user string) (Credential, bool) {
		password, there := passwords[user]
		return credentialOf(h, password, iterations), there
	}
}

func nonce() string { return "server" }

// converse lets a client authenticate, and gives the user that the server takes it for.
func converse(client sasl.Mechanism, server Mechanism) (string, error) {
	session, token, err := client.Authenticate(context.Background(), "broker:9092")
	if err != nil {
		return "", err
	}
	x := server.Begin()
	for user := ""; ; {
		answer, proven, err := x.Step(token)
		if err != nil {
			return "", err
		}
		user += proven
		done, next, err := session.Challenge(answer)
		if err != nil || done {
			return user, err
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
	x := NewScram256(func(string) (Credential, bool) { return credential, true }, nonce).Begin().(*scramExchange)
	challenge, _, err := x.Step([]byte("n,,n=alice,r=client"))
	require.NoError(t, err)
	final := "c=biws,r=clientclientserver"
	salted, err := pbkdf2.Key(sha256.New, "alice's secret", credential.Salt, credential.Iterations, sha256.Size)
	require.NoError(t, err)
	proof := x.mac(salted, []byte("Client Key"))
	subtle.XORBytes(proof, proof, x.mac(credential.StoredKey, []byte("n=alice,r=client,"+string(challenge)+","+final)))
	_, user, err := x.Step([]byte(final + ",p=" + base64.StdEncoding.EncodeToString(proof)))
	require.NoError(t, err)
	assert.Equal(t, "alice", user)
}

func TestScramMessagesThatMakeNoSenseEndTheExchange(t *testing.T) {
	server := NewScram256(known(sha256.New, 4096), nonce)
	for _, first := range []string{"", ",", ",,n=alice,r=x", "n", "n,,n=alice", "n,,n=,r=x", "n,,m=x,n=alice,r=x", "n,b=x,n=alice,r=x", "p=tls,,n=alice,r=x", "n,,n=al=ice,r=x", "n,,n=alice,r=", "n,,n=alice,r=a b", "n,,x=alice,r=x"} {
		x := server.Begin()
		_, user, err := x.Step([]byte(first))
		assert.ErrorIs(t, err, errScramFormat, "%q", first)
		assert.Empty(t, user)
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
		_, user, err := x.Step([]byte(final))
		assert.ErrorIs(t, err, want, "%q", final)
		assert.Empty(t, user)
		_, _, err = x.Step([]byte(final))
		assert.ErrorIs(t, err, errScramOver)
	}
}

func FuzzPlain(f *testing.F) {
	f.Add([]byte("\x00alice\x00alice's secret"))
	f.Fuzz(func(t *testing.T, token []byte) {
		_, user, err := (&Plain{Passwords: passwords}).Begin().Step(token)
		if err == nil {
			require.True(t, strings.HasSuffix(string(token), "\x00"+user+"\x00"+passwords[user]))
		}
	})
}

func FuzzScram(f *testing.F) {
	f.Add([]byte("n,,n=alice,r=client"), []byte("c=biws,r=clientserver,p=AAAA"))
	f.Add([]byte(",,n=alice,r=client"), []byte("c=biws,r=clientserver,p="))
	credential := credentialOf(sha256.New, "alice's secret", 4096)
	server := NewScram256(func(string) (Credential, bool) { return credential, true }, nonce)
	f.Fuzz(func(t *testing.T, first, final []byte) {
		x := server.Begin()
		if _, user, err := x.Step(first); err == nil {
			require.Empty(t, user)
			_, user, err = x.Step(final)
			require.Error(t, err, "nobody guesses a proof")
			require.Empty(t, user)
		}
	})
}
