package auth

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/wire"
)

// Offer is a mechanism that a listener offers, and how long a session lasts that was begun by it [connections.max.reauth.ms]; 0: as
// long as the connection.
type Offer struct {
	Mechanism
	Lifetime time.Duration
}

// Verdict is what becomes of a frame: it is passed on to whoever answers requests, or there is an answer (nil: none), or a failure,
// maybe with an answer, by which the connection ends.
type Verdict struct {
	Pass    bool
	Answer  []byte // length included
	Failure error
	// Proven is set when the client has shown by this frame who it is, ByToken when it did so by a delegation token.
	Proven  *wire.Principal
	ByToken bool
}

// leastReauthInterval is how soon a client may authenticate again.
const leastReauthInterval = time.Second

var (
	errExpired      = errors.New("the SASL session has ended and the client did not authenticate again")
	errTokenExpired = errors.New("the delegation token has expired")
)

type stage int8

// Before the exchange a client may ask once for the versions that the broker knows.
const (
	expectAny stage = iota
	expectHandshake
	expectToken
	proven
	failed
)

// Session is the authentication of one connection. What does not belong where it stands ends the connection, as in Kafka's
// SaslServerAuthenticator: nothing but ApiVersions, SaslHandshake and SaslAuthenticate is even read before the client is known.
//
// After SaslHandshake version 0 tokens are frames without a header (KIP-43), after version 1 they are SaslAuthenticate (KIP-152). A
// session that has a lifetime may be begun anew on the same connection, by the same principal and mechanism (KIP-368). A session that
// was begun by a token ends with the token at the latest: at once, where clocks differ and a mechanism takes a token that is over.
type Session struct {
	offers    []Offer
	stage     stage
	mechanism Offer
	exchange  Exchange
	headers   bool // tokens are SaslAuthenticate requests
	doomed    error

	principal  wire.Principal
	byToken    bool
	again      bool
	expires    time.Time // zero: never
	lastReauth time.Time
}

// NewSession begins with a client that has said nothing.
func NewSession(offers []Offer) *Session { return &Session{offers: offers} }

// Take judges one frame of the client, which arrived at now. Frames may not be kept.
func (s *Session) Take(frame []byte, now time.Time) Verdict {
	v := s.take(frame, now)
	if v.Failure != nil {
		s.stage = failed
	}
	return v
}

func (s *Session) take(frame []byte, now time.Time) Verdict {
	switch s.stage {
	case proven:
		return s.whenProven(frame, now)
	case expectToken:
		return s.token(frame, now)
	case failed:
		return Verdict{Failure: errors.New("authentication has failed before")}
	}
	key, known := apiKey(frame)
	switch {
	case known && key == wire.KeyApiVersions && s.stage == expectAny:
		if _, _, err := wire.ParseHeader(frame); err == nil {
			s.stage = expectHandshake // what cannot be read is answered, too, and asked again
		}
		return Verdict{Pass: true}
	case known && key == wire.KeySaslHandshake:
		return s.handshake(frame)
	case s.stage == expectAny && len(frame) > 0 && frame[0] == gssapiTag && s.beginWithoutHandshake():
		return s.token(frame, now)
	}
	return Verdict{Failure: errors.New("expected a SASL handshake: the client may be configured for another security protocol, or is no Kafka client")}
}

// gssapiTag begins the first token of GSSAPI, and no request.
const gssapiTag = 0x60

// beginWithoutHandshake begins GSSAPI, where it is offered, with a client that begins with its token: so did they all before there was a handshake (KIP-43), and so sarama does unless told otherwise.
func (s *Session) beginWithoutHandshake() bool {
	at := slices.IndexFunc(s.offers, func(o Offer) bool { return o.Name() == gssapi })
	if at >= 0 {
		s.mechanism, s.exchange, s.stage = s.offers[at], s.offers[at].Begin(), expectToken
	}
	return at >= 0
}

func apiKey(frame []byte) (int16, bool) {
	if len(frame) < 2 {
		return 0, false
	}
	return int16(binary.BigEndian.Uint16(frame)), true
}

// whenProven passes requests on until the session ends, and lets the client prove itself anew before that.
func (s *Session) whenProven(frame []byte, now time.Time) Verdict {
	if s.expires.IsZero() {
		return Verdict{Pass: true}
	}
	if key, _ := apiKey(frame); key == wire.KeySaslHandshake && now.Sub(s.lastReauth) >= leastReauthInterval {
		s.again, s.lastReauth = true, now
		return s.handshake(frame)
	}
	if now.After(s.expires) {
		return Verdict{Failure: errExpired}
	}
	return Verdict{Pass: true}
}

func (s *Session) handshake(frame []byte) Verdict {
	h, body, err := wire.ParseHeader(frame)
	if err != nil {
		return Verdict{Failure: err}
	}
	decoded, err := wire.DecodeRequest(h, body)
	if err != nil {
		return Verdict{Failure: err}
	}
	asked := decoded.(*kmsg.SASLHandshakeRequest).Mechanism
	resp := kmsg.NewPtrSASLHandshakeResponse()
	var chosen *Offer
	for i := range s.offers {
		resp.SupportedMechanisms = append(resp.SupportedMechanisms, s.offers[i].Name())
		if s.offers[i].Name() == asked {
			chosen = &s.offers[i]
		}
	}
	if chosen == nil {
		resp.ErrorCode = kerr.UnsupportedSaslMechanism.Code
		return Verdict{Answer: wire.AppendResponse(nil, h, resp), Failure: fmt.Errorf("unsupported SASL mechanism %q", asked)}
	}
	if s.again && chosen.Name() != s.mechanism.Name() {
		// As with Kafka, it is the next message that fails.
		s.doomed = fmt.Errorf("SASL mechanism %s was asked for to authenticate again where %s was used before", asked, s.mechanism.Name())
	}
	s.mechanism, s.exchange, s.headers, s.stage = *chosen, chosen.Begin(), h.Version >= 1, expectToken
	return Verdict{Answer: wire.AppendResponse(nil, h, resp)}
}

// token goes one step on in the exchange.
func (s *Session) token(frame []byte, now time.Time) Verdict {
	if s.doomed != nil {
		return Verdict{Failure: s.doomed}
	}
	if !s.headers {
		answer, p, err := s.step(frame, now)
		if err != nil {
			return Verdict{Failure: s.failure(err)}
		}
		v := Verdict{Proven: p, ByToken: s.byToken}
		if answer != nil { // a client by GSSAPI waits for no answer to its last message
			v.Answer = append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...)
		}
		return v
	}
	h, body, err := wire.ParseHeader(frame)
	if err != nil {
		return Verdict{Failure: err}
	}
	if h.Key != wire.KeySaslAuthenticate {
		return Verdict{Failure: fmt.Errorf("API key %d during SASL authentication", h.Key)}
	}
	decoded, err := wire.DecodeRequest(h, body)
	if err != nil {
		return Verdict{Failure: err}
	}
	resp := kmsg.NewPtrSASLAuthenticateResponse()
	answer, p, err := s.step(decoded.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes, now)
	if transient := (Transient{}); errors.As(err, &transient) {
		return Verdict{Failure: s.failure(err)}
	}
	if err != nil {
		resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		resp.ErrorMessage = kmsg.StringPtr(s.told(err))
		return Verdict{Answer: wire.AppendResponse(nil, h, resp), Failure: s.failure(err)}
	}
	resp.SASLAuthBytes = append([]byte{}, answer...)
	if p != nil && !s.expires.IsZero() {
		resp.SessionLifetimeMillis = max(0, s.expires.Sub(now).Milliseconds())
	}
	return Verdict{Answer: wire.AppendResponse(nil, h, resp), Proven: p, ByToken: s.byToken}
}

// step gives a token to the mechanism, and settles who the client is when that was the last.
func (s *Session) step(token []byte, now time.Time) ([]byte, *wire.Principal, error) {
	answer, shown, err := s.exchange.Step(token)
	if err != nil || shown.User == "" {
		return answer, nil, err
	}
	if shown.ByToken && !now.Before(shown.Expires) {
		return nil, nil, errTokenExpired
	}
	p := wire.Principal{Type: wire.Anonymous.Type, Name: shown.User}
	if s.again && p != s.principal {
		return nil, nil, Refusal(fmt.Sprintf("Cannot change principals during re-authentication from %s.%s: %s.%s", s.principal.Type, s.principal.Name, p.Type, p.Name))
	}
	s.principal, s.byToken, s.stage, s.exchange = p, shown.ByToken, proven, nil
	s.expires = shown.Expires
	if limit := now.Add(s.mechanism.Lifetime); s.mechanism.Lifetime > 0 && (shown.Expires.IsZero() || limit.Before(shown.Expires)) {
		s.expires = limit
	}
	return answer, &p, nil
}

func (s *Session) activity() string {
	if s.again {
		return "re-authentication"
	}
	return "authentication"
}

// told is what the client is told of an error, in Kafka's words.
func (s *Session) told(err error) string {
	var refusal Refusal
	if errors.As(err, &refusal) {
		return refusal.Error()
	}
	return fmt.Sprintf("Authentication failed during %s due to invalid credentials with SASL mechanism %s", s.activity(), s.mechanism.Name())
}

// failure is what the log is told.
func (s *Session) failure(err error) error {
	return fmt.Errorf("%s with SASL mechanism %s failed: %w", s.activity(), s.mechanism.Name(), err)
}
