package auth

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/wire"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// plainSession is one of a listener that offers PLAIN, and a second name for it.
func plainSession(lifetime time.Duration) *Session {
	m := &Plain{Passwords: passwords}
	return NewSession([]Offer{{m, lifetime}, {other{m}, lifetime}})
}

type other struct{ *Plain }

func (other) Name() string { return "OTHER" }

// frame is a request as the server reads it, without its length.
func frame(req kmsg.Request, version int16) []byte {
	req.SetVersion(version)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, 7)[4:]
}

func apiVersions(version int16) []byte {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "test", "1"
	return frame(req, version)
}

func handshake(version int16, mechanism string) []byte {
	req := kmsg.NewPtrSASLHandshakeRequest()
	req.Mechanism = mechanism
	return frame(req, version)
}

func token(version int16, text string) []byte {
	req := kmsg.NewPtrSASLAuthenticateRequest()
	req.SASLAuthBytes = []byte(text)
	return frame(req, version)
}

func metadata() []byte { return frame(kmsg.NewPtrMetadataRequest(), 9) }

const (
	asAlice = "\x00alice\x00alice's secret"
	asBob   = "\x00bob\x00b=o,b"
)

// read decodes an answer of which the length and the correlation id are right.
func read[R kmsg.Response](t *testing.T, v Verdict, resp R, version int16) R {
	t.Helper()
	require.Greater(t, len(v.Answer), 8)
	require.EqualValues(t, len(v.Answer)-4, binary.BigEndian.Uint32(v.Answer))
	require.EqualValues(t, 7, binary.BigEndian.Uint32(v.Answer[4:]))
	body := v.Answer[8:]
	resp.SetVersion(version)
	if resp.IsFlexible() {
		body = body[1:]
	}
	require.NoError(t, resp.ReadFrom(body))
	return resp
}

func shaken(t *testing.T, v Verdict, version int16) *kmsg.SASLHandshakeResponse {
	t.Helper()
	return read(t, v, kmsg.NewPtrSASLHandshakeResponse(), version)
}

func answered(t *testing.T, v Verdict, version int16) *kmsg.SASLAuthenticateResponse {
	t.Helper()
	return read(t, v, kmsg.NewPtrSASLAuthenticateResponse(), version)
}

// authenticate goes through a whole exchange, at the time now.
func authenticate(t *testing.T, s *Session, now time.Time, mechanism, text string) Verdict {
	t.Helper()
	v := s.Take(handshake(1, mechanism), now)
	require.NoError(t, v.Failure)
	require.Zero(t, shaken(t, v, 1).ErrorCode)
	return s.Take(token(2, text), now)
}

func TestNothingIsPassedOnBeforeTheClientIsKnown(t *testing.T) {
	for name, first := range map[string][]byte{"a request": metadata(), "a token": token(2, asAlice), "nothing": {}, "a byte": {1}, "HTTP": []byte("GET / HTTP/1.1\r\n"), "an unknown handshake": handshake(2, "PLAIN"), "half a handshake": handshake(1, "PLAIN")[:12]} {
		s := plainSession(0)
		v := s.Take(first, began)
		assert.False(t, v.Pass, name)
		assert.Nil(t, v.Answer, name)
		assert.Error(t, v.Failure, name)
		assert.Error(t, s.Take(handshake(1, "PLAIN"), began).Failure, "%s: what failed stays so", name)
	}
	s := plainSession(0)
	require.NoError(t, s.Take(handshake(1, "PLAIN"), began).Failure)
	assert.Error(t, s.Take(metadata(), began).Failure)
}

func TestVersionsMayBeAskedOnceBeforeTheHandshake(t *testing.T) {
	s := plainSession(0)
	assert.True(t, s.Take(apiVersions(3), began).Pass)
	assert.Error(t, s.Take(apiVersions(3), began).Failure)

	s = plainSession(0)
	tooNew := apiVersions(3)
	binary.BigEndian.PutUint16(tooNew[2:], 99)
	assert.True(t, s.Take(tooNew, began).Pass, "it is answered what is known")
	assert.True(t, s.Take(apiVersions(3), began).Pass, "and asked again")
	assert.NoError(t, s.Take(handshake(1, "PLAIN"), began).Failure)
}

func TestAClientThatIsKnownIsPassedOn(t *testing.T) {
	s := plainSession(0)
	v := s.Take(handshake(1, "PLAIN"), began)
	assert.Equal(t, []string{"PLAIN", "OTHER"}, shaken(t, v, 1).SupportedMechanisms)
	for version := int16(0); version <= 2; version++ {
		s := plainSession(0)
		require.NoError(t, s.Take(handshake(1, "PLAIN"), began).Failure)
		v := s.Take(token(version, asAlice), began)
		require.NoError(t, v.Failure)
		assert.Equal(t, &wire.Principal{Type: "User", Name: "alice"}, v.Proven)
		resp := answered(t, v, version)
		assert.Zero(t, resp.ErrorCode)
		assert.Empty(t, resp.SASLAuthBytes)
		assert.Zero(t, resp.SessionLifetimeMillis)
		for _, later := range [][]byte{metadata(), apiVersions(3), handshake(1, "PLAIN"), token(2, asAlice)} {
			assert.True(t, s.Take(later, began.Add(1000*time.Hour)).Pass)
		}
	}
}

func TestAfterTheFirstHandshakeTokensHaveNoHeader(t *testing.T) {
	s := plainSession(0)
	require.NoError(t, s.Take(handshake(0, "PLAIN"), began).Failure)
	v := s.Take([]byte(asAlice), began)
	require.NoError(t, v.Failure)
	assert.Equal(t, []byte{0, 0, 0, 0}, v.Answer)
	assert.Equal(t, "alice", v.Proven.Name)
	assert.True(t, s.Take(metadata(), began).Pass)

	s = plainSession(0)
	require.NoError(t, s.Take(handshake(0, "PLAIN"), began).Failure)
	v = s.Take([]byte(asAlice+"x"), began)
	assert.Error(t, v.Failure)
	assert.Nil(t, v.Answer, "there is no way of telling")
}

func TestAMechanismThatIsNotOfferedIsRefusedWithThoseThatAre(t *testing.T) {
	for version := int16(0); version <= 1; version++ {
		v := plainSession(0).Take(handshake(version, "GSSAPI"), began)
		assert.Error(t, v.Failure)
		resp := shaken(t, v, version)
		assert.Equal(t, kerr.UnsupportedSaslMechanism.Code, resp.ErrorCode)
		assert.Equal(t, []string{"PLAIN", "OTHER"}, resp.SupportedMechanisms)
	}
}

func TestAFailureIsToldInKafkasWords(t *testing.T) {
	s := plainSession(0)
	v := authenticate(t, s, began, "PLAIN", asAlice+"x")
	assert.ErrorContains(t, v.Failure, "authentication with SASL mechanism PLAIN failed")
	assert.Nil(t, v.Proven)
	resp := answered(t, v, 2)
	assert.Equal(t, kerr.SaslAuthenticationFailed.Code, resp.ErrorCode)
	assert.Equal(t, "Authentication failed: Invalid username or password", *resp.ErrorMessage)
	assert.Error(t, s.Take(token(2, asAlice), began).Failure)

	s = NewSession([]Offer{{Mechanism: NewScram512(Known{User: func(string) (Credential, bool) { return Credential{}, false }}, nonce)}})
	v = authenticate(t, s, began, "SCRAM-SHA-512", "n,,n=eve,r=x")
	assert.Equal(t, "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512", *answered(t, v, 2).ErrorMessage)
}

func TestASessionEndsUnlessTheClientAuthenticatesAgain(t *testing.T) {
	s := plainSession(10 * time.Second)
	v := authenticate(t, s, began, "PLAIN", asAlice)
	assert.EqualValues(t, 10000, answered(t, v, 2).SessionLifetimeMillis)
	assert.True(t, s.Take(metadata(), began.Add(10*time.Second)).Pass)

	again := authenticate(t, s, began.Add(9*time.Second), "PLAIN", asAlice)
	assert.Equal(t, "alice", again.Proven.Name)
	assert.True(t, s.Take(metadata(), began.Add(19*time.Second)).Pass)
	assert.True(t, s.Take(handshake(1, "PLAIN"), began.Add(9500*time.Millisecond)).Pass, "twice within a second is not taken up")

	v = s.Take(metadata(), began.Add(19*time.Second+1))
	assert.ErrorIs(t, v.Failure, errExpired)
	assert.Nil(t, v.Answer)
}

func TestAnotherUserOrMechanismCannotTakeAConnectionOver(t *testing.T) {
	s := plainSession(10 * time.Second)
	authenticate(t, s, began, "PLAIN", asAlice)
	v := authenticate(t, s, began.Add(5*time.Second), "PLAIN", asBob)
	assert.Error(t, v.Failure)
	assert.Equal(t, "Cannot change principals during re-authentication from User.alice: User.bob", *answered(t, v, 2).ErrorMessage)

	s = plainSession(10 * time.Second)
	authenticate(t, s, began, "PLAIN", asAlice)
	v = authenticate(t, s, began.Add(5*time.Second), "PLAIN", asAlice+"x")
	assert.ErrorContains(t, v.Failure, "re-authentication")

	s = plainSession(10 * time.Second)
	authenticate(t, s, began, "PLAIN", asAlice)
	v = authenticate(t, s, began.Add(5*time.Second), "OTHER", asAlice)
	assert.ErrorContains(t, v.Failure, "OTHER was asked for")
	assert.Nil(t, v.Answer)
}

// FuzzSession says two things and then what only a client that is known may say.
func FuzzSession(f *testing.F) {
	f.Add(handshake(1, "PLAIN"), token(2, asAlice+"x"))
	f.Add(apiVersions(3), handshake(0, "PLAIN"))
	f.Add(handshake(0, "PLAIN"), []byte(asAlice+"x"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		s := NewSession([]Offer{{Mechanism: &Plain{Passwords: map[string]string{}}}})
		for _, frame := range [][]byte{first, second} {
			v := s.Take(frame, began)
			require.Nil(t, v.Proven)
			if v.Pass {
				key, _ := apiKey(frame)
				require.EqualValues(t, wire.KeyApiVersions, key)
			}
		}
		require.Error(t, s.Take(metadata(), began).Failure)
	})
}

// byToken is a mechanism whose every message proves a token of alice's that is good until expires.
type byToken struct{ expires time.Time }

func (m *byToken) Name() string    { return "TOKEN" }
func (m *byToken) Begin() Exchange { return m }
func (m *byToken) Step([]byte) ([]byte, Identity, error) {
	return nil, Identity{User: "alice", ByToken: true, Expires: m.expires}, nil
}

func TestASessionEndsWithItsTokenAtTheLatest(t *testing.T) {
	for lifetime, want := range map[time.Duration]time.Duration{0: time.Minute, 2 * time.Minute: time.Minute, 10 * time.Second: 10 * time.Second} {
		m := &byToken{expires: began.Add(time.Minute)}
		s := NewSession([]Offer{{m, lifetime}})
		v := authenticate(t, s, began, "TOKEN", "x")
		assert.True(t, v.ByToken)
		assert.EqualValues(t, want.Milliseconds(), answered(t, v, 2).SessionLifetimeMillis)
		assert.True(t, s.Take(metadata(), began.Add(want)).Pass)

		m.expires = began.Add(time.Hour)
		again := authenticate(t, s, began.Add(want-5*time.Second), "TOKEN", "x")
		require.NoError(t, again.Failure)
		assert.True(t, s.Take(metadata(), began.Add(want+time.Second)).Pass, "it was renewed")
		assert.ErrorIs(t, s.Take(metadata(), began.Add(time.Hour+time.Millisecond)).Failure, errExpired)
	}
}

func TestATokenThatHasExpiredProvesNothing(t *testing.T) {
	s := NewSession([]Offer{{&byToken{expires: began}, 0}})
	v := authenticate(t, s, began, "TOKEN", "x")
	assert.ErrorIs(t, v.Failure, errTokenExpired)
	assert.Nil(t, v.Proven)
	assert.Equal(t, kerr.SaslAuthenticationFailed.Code, answered(t, v, 2).ErrorCode)
}

// wordless is a mechanism that says nothing, in as many messages as it wants; it ends with err, or knows alice.
type wordless struct {
	wants int
	err   error
}

func (m *wordless) Name() string    { return "WORDLESS" }
func (m *wordless) Begin() Exchange { return &wordless{m.wants, m.err} }
func (m *wordless) Step([]byte) ([]byte, Identity, error) {
	if m.wants--; m.wants > 0 {
		return []byte{}, Identity{}, nil
	}
	if m.err != nil {
		return nil, Identity{}, m.err
	}
	return nil, Identity{User: "alice"}, nil
}

func TestTheLastMessageMayHaveNoAnswer(t *testing.T) {
	s := NewSession([]Offer{{&wordless{wants: 2}, 0}})
	require.NoError(t, s.Take(handshake(0, "WORDLESS"), began).Failure)
	v := s.Take(nil, began)
	require.NoError(t, v.Failure)
	assert.Equal(t, []byte{0, 0, 0, 0}, v.Answer)
	v = s.Take([]byte{1}, began)
	require.NoError(t, v.Failure)
	assert.Nil(t, v.Answer)
	assert.Equal(t, "alice", v.Proven.Name)

	s = NewSession([]Offer{{&wordless{wants: 2}, 0}})
	authenticate(t, s, began, "WORDLESS", "")
	v = s.Take(token(2, ""), began)
	assert.Empty(t, answered(t, v, 2).SASLAuthBytes, "a request has an answer")
	assert.Equal(t, "alice", v.Proven.Name)
}

// ancient is a mechanism whose exchange a client may begin by itself.
type ancient struct{ wordless }

func (*ancient) Name() string { return gssapi }

func TestAClientOfBeforeTheHandshakeBeginsWithItsToken(t *testing.T) {
	s := NewSession([]Offer{{&Plain{}, 0}, {&ancient{wordless{wants: 2}}, 0}})
	v := s.Take([]byte{gssapiTag, 0x82}, began)
	require.NoError(t, v.Failure)
	assert.Equal(t, []byte{0, 0, 0, 0}, v.Answer)
	v = s.Take([]byte{1}, began)
	require.NoError(t, v.Failure)
	assert.Equal(t, "alice", v.Proven.Name)
	assert.True(t, s.Take(metadata(), began).Pass)

	s = NewSession([]Offer{{&ancient{wordless{wants: 2}}, 0}})
	require.True(t, s.Take(apiVersions(3), began).Pass)
	assert.Error(t, s.Take([]byte{gssapiTag, 0x82}, began).Failure, "who knows requests knows the handshake")
	assert.Error(t, plainSession(0).Take([]byte{gssapiTag, 0x82}, began).Failure)
}

func TestAFailureThatMayPassIsNotTold(t *testing.T) {
	s := NewSession([]Offer{{&wordless{err: Transient{errTokenExpired}}, 0}})
	v := authenticate(t, s, began, "WORDLESS", "x")
	assert.ErrorIs(t, v.Failure, errTokenExpired)
	assert.Nil(t, v.Answer)
}
