package auth

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	franz "github.com/twmb/franz-go/pkg/sasl/oauth"

	"barnabas/oauth"
)

// believer believes tokens that say whose they are; those of mallory's lack scope.
type believer struct{ expires time.Time }

func (b believer) Validate(token string, _ time.Time) (oauth.Bearer, error) {
	name, good := strings.CutPrefix(token, "of.")
	switch {
	case !good:
		return oauth.Bearer{}, &oauth.Refused{Status: "invalid_token", Reason: errors.New("not of anybody")}
	case name == "mallory":
		return oauth.Bearer{}, &oauth.Refused{Status: "insufficient_scope", Scope: "[a, b]", Reason: errors.New("mallory lacks scope")}
	}
	return oauth.Bearer{Value: token, Subject: name, Expires: b.expires}, nil
}

func bearerMechanism(expires time.Time) *OAuthBearer {
	return &OAuthBearer{Tokens: believer{expires}, Now: func() time.Time { return began }}
}

func TestATokenTellsWhoTheClientIs(t *testing.T) {
	m := bearerMechanism(began.Add(time.Hour))
	for _, client := range []franz.Auth{{Token: "of.alice"}, {Token: "of.alice", Zid: "alice"}, {Token: "of.alice", Extensions: map[string]string{"traceId": "a b", "x": "=y,"}}} {
		proven, err := identify(client.AsMechanism(), m)
		require.NoError(t, err)
		assert.Equal(t, Identity{User: "alice", Expires: began.Add(time.Hour)}, proven)
	}
	_, err := identify(franz.Auth{Token: "of.alice", Zid: "bob"}.AsMechanism(), m)
	assert.EqualError(t, err, "Authentication failed: Client requested an authorization id (bob) that is different from the token's principal name (alice)")
	assert.ErrorAs(t, err, new(Refusal))
}

func TestARefusedTokenIsToldBeforeTheExchangeFails(t *testing.T) {
	for token, want := range map[string]string{"x": `{"status":"invalid_token"}`, "of.mallory": `{"status":"insufficient_scope", "scope":"[a, b]"}`} {
		for _, then := range []string{"\x01", "", "n,,\x01auth=Bearer of.alice\x01\x01"} {
			x := bearerMechanism(began).Begin()
			answer, proven, err := x.Step([]byte("n,,\x01auth=Bearer " + token + "\x01\x01"))
			require.NoError(t, err)
			assert.Empty(t, proven)
			assert.Equal(t, want, string(answer))
			_, proven, err = x.Step([]byte(then))
			assert.Empty(t, proven)
			var refusal Refusal
			require.ErrorAs(t, err, &refusal, "%q", then)
			assert.Equal(t, want, refusal.Error())
			assert.ErrorAs(t, err, new(*oauth.Refused), "the log is told more")
		}
	}
}

func TestFirstMessagesHaveOneForm(t *testing.T) {
	for text, want := range map[string]bearerMessage{
		"n,,\x01auth=Bearer t\x01\x01":                         {token: "t"},
		"n,,\x01auth=bEARER    a-._~+/Z9==\x01\x01":            {token: "a-._~+/Z9=="},
		"n,a=al=2Cice,\x01auth=Bearer t\x01\x01":               {actingAs: "al=2Cice", token: "t"},
		"n,,\x01x=1\x01auth=Bearer a\x01auth=Bearer b\x01\x01": {token: "b"},
	} {
		m, err := parseBearerMessage(text)
		require.NoError(t, err, "%q", text)
		assert.Equal(t, want, m)
	}
	for _, text := range []string{
		"", "\x01", "n,,", "n,,\x01", "n,,\x01\x01", "y,,\x01auth=Bearer t\x01\x01", "p=x,,\x01auth=Bearer t\x01\x01", "n,,\x01auth=Bearer t\x01", "n,,\x01auth=Bearer t\x01\x01\x01", "n,,\x01auth=Bearer t",
		"n,a=,\x01auth=Bearer t\x01\x01", "n,b=x,\x01auth=Bearer t\x01\x01", "n,a=x=,\x01auth=Bearer t\x01\x01", "n,a=x,y,\x01auth=Bearer t\x01\x01", "n,a=\u00e4,\x01auth=Bearer t\x01\x01",
		"n,,\x01x=y\x01\x01", "n,,\x01auth=Bearer \x01\x01", "n,,\x01auth=Bearer\x01\x01", "n,,\x01auth=Basic t\x01\x01", "n,,\x01auth=Bearer t u\x01\x01", "n,,\x01auth=Bearer =\x01\x01", "n,,\x01auth=Bearer t\x00\x01\x01",
		"n,,\x01auth=Bearer t\x01x=\x01\x01", "n,,\x01auth=Bearer t\x01=x\x01\x01", "n,,\x01auth=Bearer t\x01x1=y\x01\x01", "n,,\x01auth=Bearer t\x01x=\xff\x01\x01", "n,,\x01auth=Bearer t\x01x\x01\x01",
	} {
		_, err := parseBearerMessage(text)
		assert.ErrorIs(t, err, errBearerFormat, "%q", text)
	}
}

func TestASessionEndsWithItsBearerTokenAtTheLatest(t *testing.T) {
	const message = "n,,\x01auth=Bearer of.alice\x01\x01"
	for lifetime, want := range map[time.Duration]time.Duration{0: time.Minute, 2 * time.Minute: time.Minute, 10 * time.Second: 10 * time.Second} {
		s := NewSession([]Offer{{bearerMechanism(began.Add(time.Minute)), lifetime}})
		v := authenticate(t, s, began, "OAUTHBEARER", message)
		assert.Equal(t, "alice", v.Proven.Name)
		assert.False(t, v.ByToken, "it is no delegation token")
		assert.EqualValues(t, want.Milliseconds(), answered(t, v, 2).SessionLifetimeMillis)
		assert.True(t, s.Take(metadata(), began.Add(want)).Pass)
		assert.ErrorIs(t, s.Take(metadata(), began.Add(want+time.Millisecond)).Failure, errExpired)
	}

	s := NewSession([]Offer{{bearerMechanism(began.Add(-time.Second)), 0}})
	v := authenticate(t, s, began, "OAUTHBEARER", message)
	require.NoError(t, v.Failure, "clocks may differ")
	assert.Zero(t, answered(t, v, 2).SessionLifetimeMillis)
	assert.ErrorIs(t, s.Take(metadata(), began).Failure, errExpired)

	s = NewSession([]Offer{{bearerMechanism(began.Add(time.Minute)), 0}})
	v = authenticate(t, s, began, "OAUTHBEARER", "n,,\x01auth=Bearer x\x01\x01")
	require.NoError(t, v.Failure)
	v = s.Take(token(2, "\x01"), began)
	assert.ErrorContains(t, v.Failure, "not of anybody")
	assert.Equal(t, kerr.SaslAuthenticationFailed.Code, answered(t, v, 2).ErrorCode)
	assert.Equal(t, `{"status":"invalid_token"}`, *answered(t, v, 2).ErrorMessage)
}

func FuzzBearerMessage(f *testing.F) {
	f.Add("n,a=alice,\x01x=y\x01auth=Bearer of.alice\x01\x01")
	f.Add("n,,\x01auth=Bearer x\x01\x01")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseBearerMessage(text)
		x := bearerMechanism(began.Add(time.Hour)).Begin()
		_, proven, stepped := x.Step([]byte(text))
		if err != nil {
			require.Error(t, stepped)
			require.Empty(t, proven)
			return
		}
		require.NotEmpty(t, m.token)
		require.Contains(t, text, m.token)
		if proven.User != "" {
			require.Equal(t, "of."+proven.User, m.token)
		}
	})
}
