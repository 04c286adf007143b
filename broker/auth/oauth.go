package auth

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"barnabas/oauth"
)

// OAuthBearer is the mechanism OAUTHBEARER (RFC 7628, KIP-255): the client shows a token that it has from somebody whom the server believes.
//
//	client: n,a=user,^Aauth=Bearer TOKEN^Aextension=value^A^A        server: nothing, or {"status":"invalid_token"}
//	                                              client, then: ^A   server: the refusal
type OAuthBearer struct {
	Tokens oauth.Validator
	Now    func() time.Time
}

// Name implements Mechanism.
func (m *OAuthBearer) Name() string { return "OAUTHBEARER" }

// Begin implements Mechanism.
func (m *OAuthBearer) Begin() Exchange { return &bearerExchange{mechanism: m} }

// bearerExchange is an exchange; refused is why the token was not taken, which the client may hear once it has acknowledged that.
type bearerExchange struct {
	mechanism *OAuthBearer
	refused   error
}

var errBearerFormat = errors.New("not the first message of OAUTHBEARER")

// Step implements Exchange. The words of refusals are Kafka's.
func (x *bearerExchange) Step(client []byte) (answer []byte, proven Identity, err error) {
	if x.refused != nil {
		return nil, Identity{}, x.refused
	}
	m, err := parseBearerMessage(string(client))
	if err != nil {
		return nil, Identity{}, err
	}
	token, err := x.mechanism.Tokens.Validate(m.token, x.mechanism.Now())
	var refused *oauth.Refused
	switch {
	case errors.As(err, &refused):
		status := bearerStatus(refused)
		x.refused = fmt.Errorf("%w: %w", refused, Refusal(status))
		return []byte(status), Identity{}, nil
	case err != nil:
		return nil, Identity{}, err
	case m.actingAs != "" && m.actingAs != token.Subject:
		return nil, Identity{}, Refusal(fmt.Sprintf("Authentication failed: Client requested an authorization id (%s) that is different from the token's principal name (%s)", m.actingAs, token.Subject))
	}
	return []byte{}, Identity{User: token.Subject, Expires: token.Expires}, nil
}

// bearerStatus is what a client is told of a refusal (RFC 7628, section 3.2.2), to the byte as Kafka writes it.
func bearerStatus(r *oauth.Refused) string {
	if r.Scope == "" {
		return fmt.Sprintf(`{"status":"%s"}`, r.Status)
	}
	return fmt.Sprintf(`{"status":"%s", "scope":"%s"}`, r.Status, r.Scope)
}

// bearerMessage is a client's first message. What it shows besides is checked, and means nothing to a broker.
type bearerMessage struct {
	actingAs, token string
}

// parseBearerMessage reads a header without channel binding, and pairs that each end with a byte 1, as their list does.
func parseBearerMessage(text string) (m bearerMessage, err error) {
	header, pairs, _ := strings.Cut(text, ",\x01")
	header, noBinding := strings.CutPrefix(header, "n,")
	pairs, ended := strings.CutSuffix(pairs, "\x01")
	if !noBinding || !ended || pairs != "" && !strings.HasSuffix(pairs, "\x01") {
		return m, errBearerFormat
	}
	if header != "" {
		var ok bool
		if m.actingAs, ok = strings.CutPrefix(header, "a="); !ok || !isSASLName(m.actingAs) {
			return m, errBearerFormat
		}
	}
	for pair := range strings.SplitSeq(strings.TrimSuffix(pairs, "\x01"), "\x01") {
		name, value, _ := strings.Cut(pair, "=")
		if name == "auth" {
			if m.token, err = bearerToken(value); err != nil {
				return m, err
			}
		} else if !oauth.IsExtension(name, value) {
			return m, errBearerFormat
		}
	}
	if m.token == "" {
		return m, errBearerFormat
	}
	return m, nil
}

// isSASLName tells whether a text is a saslname of RFC 5801, in which comma and equals sign are written =2C and =3D. Kafka compares it as it is written.
func isSASLName(text string) bool {
	plain := strings.NewReplacer("=2C", "", "=3D", "").Replace(text)
	return text != "" && strings.IndexFunc(plain, func(r rune) bool { return r == 0 || r > 0x7f || r == ',' || r == '=' }) < 0
}

// bearerToken reads the scheme, which is Bearer in any case of letters, and the token behind it (RFC 6750, section 2.1).
func bearerToken(value string) (string, error) {
	scheme, token, _ := strings.Cut(value, " ")
	token = strings.TrimLeft(token, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return "", errBearerFormat
	}
	within := strings.TrimRight(token, "=")
	if within == "" || strings.IndexFunc(within, func(r rune) bool {
		return !(r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~+/", r))
	}) >= 0 {
		return "", errBearerFormat
	}
	return token, nil
}
