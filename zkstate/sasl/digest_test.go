package sasl

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const challenge = `realm="zk-sasl-md5",nonce="GGnI5LqsjMKTgVBfkv1o9lEHOfkTkxk",charset=utf-8,algorithm=md5-sess`

// server answers as Java's DIGEST-MD5 server does that knows kafka's password.
func server(t *testing.T, first string, sent *[]string) func([]byte) ([]byte, error) {
	return func(token []byte) ([]byte, error) {
		*sent = append(*sent, string(token))
		if len(*sent) == 1 {
			return []byte(first), nil
		}
		fields, err := parseFields(string(token))
		require.NoError(t, err)
		d := digest{user: "kafka", realm: fields["realm"], nonce: fields["nonce"], cnonce: fields["cnonce"]}
		d.secret = Account{"kafka", "secret"}.secret(d.realm, latin1OrUTF8)
		if d.response("AUTHENTICATE") != fields["response"] {
			return nil, errors.New("refused")
		}
		return []byte("rspauth=" + d.response("")), nil
	}
}

// The example of RFC 2831, section 4, but for its service: what is digested is what the RFC says.
func TestResponsesAreThoseOfTheRFC(t *testing.T) {
	d := digest{user: "chris", realm: "elwood.innosoft.com", nonce: "OA6MG9tEQGm2hh", cnonce: "OA6MHXh6VqTrRk"}
	d.secret = Account{"chris", "secret"}.secret(d.realm, latin1OrUTF8)
	a1 := sum(string(d.secret[:]) + ":" + d.nonce + ":" + d.cnonce)
	for method, want := range map[string]string{"AUTHENTICATE": "d388dad90d4bbd760a152321f2143af7", "": "ea40f60335c427b5527b84dbabcdfffd"} {
		assert.Equal(t, want, sum(a1+":"+d.nonce+":"+count+":"+d.cnonce+":auth:"+sum(method+":imap/elwood.innosoft.com")))
	}
}

func TestAnAccountIsKnownByItsPassword(t *testing.T) {
	var sent []string
	require.NoError(t, Account{"kafka", "secret"}.login(server(t, challenge, &sent), "c0ffee"))
	require.Len(t, sent, 2)
	assert.Empty(t, sent[0], "the server begins")
	assert.Contains(t, sent[1], `username="kafka",realm="zk-sasl-md5",nonce="GGnI5LqsjMKTgVBfkv1o9lEHOfkTkxk",nc=00000001,cnonce="c0ffee",digest-uri="zookeeper/zk-sasl-md5"`)
	assert.NotContains(t, sent[1], "secret")

	sent = nil
	assert.EqualError(t, Account{"kafka", "wrong"}.Login("", server(t, challenge, &sent)), "refused")
}

func TestAServerHasToKnowThePasswordToo(t *testing.T) {
	asked := 0
	ask := func([]byte) ([]byte, error) {
		if asked++; asked == 1 {
			return []byte(challenge), nil
		}
		return []byte("rspauth=00000000000000000000000000000000"), nil
	}
	assert.ErrorIs(t, Account{"kafka", "secret"}.Login("", ask), errServer)
}

func TestWhatIsNoChallengeIsRefused(t *testing.T) {
	for text, want := range map[string]error{
		"":                              errChallenge, // a server without SASL
		"nonce=x":                       errChallenge,
		`nonce="x`:                      errQuote,
		"algorithm=md5-sess":            errChallenge,
		"word":                          errChallenge,
		strings.Repeat("a", maxToken+1): errChallenge,
		`nonce="x",algorithm=md5-sess,qop="auth-int,auth-conf"`: errNoAuth,
	} {
		err := Account{"kafka", "secret"}.Login("", func([]byte) ([]byte, error) { return []byte(text), nil })
		assert.ErrorIs(t, err, want, text)
	}
}

func TestTextIsDigestedAsJavaDigestsIt(t *testing.T) {
	assert.Equal(t, "m\xfcller", latin1OrUTF8("müller"))
	assert.Equal(t, "müller€", latin1OrUTF8("müller€"))
	assert.Equal(t, "m\xfcller?", latin1("müller€"))
	assert.Equal(t, `"a\"b\\c"`, quote(`a"b\c`))
	fields, err := parseFields(`realm="first", realm="second",x="a\"b,c" ,y=z`)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"realm": "first", "x": `a"b,c`, "y": "z"}, fields)
}

func FuzzChallenge(f *testing.F) {
	f.Add(challenge, "rspauth=x")
	f.Add(`nonce="\`, "")
	f.Fuzz(func(t *testing.T, first, second string) {
		asked := 0
		_ = Account{"kafka", "secret"}.Login("", func([]byte) ([]byte, error) {
			if asked++; asked == 1 {
				return []byte(first), nil
			}
			return []byte(second), nil
		})
	})
}
