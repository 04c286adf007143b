package oauth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Signed believes tokens that a key of a set has signed, by the checks of Kafka's OAuthBearerValidatorCallbackHandler (KIP-768).
type Signed struct {
	keys         *Keys
	audience     []string
	issuer       string
	skew         time.Duration
	scopeClaim   string
	subjectClaim string
}

// NewSigned reads the settings sasl.oauthbearer.*.
func NewSigned(c Config, keys *Keys) (*Signed, error) {
	s := &Signed{
		keys:         keys,
		issuer:       c.text("sasl.oauthbearer.expected.issuer", ""),
		scopeClaim:   c.text("sasl.oauthbearer.scope.claim.name", "scope"),
		subjectClaim: c.text("sasl.oauthbearer.sub.claim.name", "sub"),
	}
	for item := range strings.SplitSeq(c.text("sasl.oauthbearer.expected.audience", ""), ",") {
		if item = strings.TrimSpace(item); item != "" {
			s.audience = append(s.audience, item)
		}
	}
	var err error
	s.skew, err = c.span("sasl.oauthbearer.clock.skew.seconds", time.Second, 30*time.Second)
	return s, err
}

// Validate implements Validator.
func (s *Signed) Validate(token string, now time.Time) (Bearer, error) {
	b, err := s.read(token, now)
	if err != nil {
		return Bearer{}, invalidToken(err)
	}
	return b, nil
}

func (s *Signed) read(token string, now time.Time) (Bearer, error) {
	jws, err := jose.ParseSignedCompact(token, algorithms)
	var unknown *jose.ErrUnexpectedSignatureAlgorithm
	switch {
	case errors.As(err, &unknown):
		return Bearer{}, fmt.Errorf("signed by %.20q, which is believed of no key", unknown.Got)
	case err != nil:
		return Bearer{}, fmt.Errorf("not a signed token: %w", err)
	}
	header := jws.Signatures[0].Header
	key, err := s.keys.find(jose.SignatureAlgorithm(header.Algorithm), header.KeyID)
	if err != nil {
		return Bearer{}, err
	}
	payload, err := jws.Verify(key)
	if err != nil {
		return Bearer{}, fmt.Errorf("the signature does not hold: %w", err)
	}
	c, err := parseClaims(payload)
	if err != nil {
		return Bearer{}, err
	}
	if err := s.meant(c); err != nil {
		return Bearer{}, err
	}
	b := Bearer{Value: token}
	if b.Issued, b.Expires, err = s.inTime(c, now); err != nil {
		return Bearer{}, err
	}
	if err := checkScope(c, s.scopeClaim); err != nil {
		return Bearer{}, err
	}
	b.Subject, err = c.subject(s.subjectClaim)
	return b, err
}

// meant checks for whom the token is, and from whom. A token that is for somebody is refused by who does not know his own name.
func (s *Signed) meant(c claims) error {
	for _, name := range []string{"iss", "sub", "jti"} {
		if _, err := c.text(name); err != nil {
			return err
		}
	}
	if issuer, _ := c.text("iss"); s.issuer != "" && issuer != s.issuer {
		return fmt.Errorf("the token is from %q, not from %q", issuer, s.issuer)
	}
	audience, err := c.texts("aud")
	if err != nil {
		return err
	}
	if len(s.audience) == 0 && c["aud"] == nil {
		return nil
	}
	for _, name := range audience {
		if slices.Contains(s.audience, name) {
			return nil
		}
	}
	return fmt.Errorf("the token is for %q, not for %q", audience, s.audience)
}

// inTime checks exp and iat, which have to be there, and nbf. They count in whole seconds, and so does the clock.
func (s *Signed) inTime(c claims, now time.Time) (issued, expires time.Time, err error) {
	var at [3]time.Time
	for i, name := range []string{"exp", "iat", "nbf"} {
		seconds, said, err := c.seconds(name)
		if err == nil && !said && name != "nbf" {
			err = fmt.Errorf("claim %s is missing", name)
		}
		if err != nil {
			return issued, expires, err
		}
		if said {
			at[i] = moment(float64(int64(seconds)))
		}
	}
	expires, issued, notBefore := at[0], at[1], at[2]
	now = now.Truncate(time.Second)
	switch {
	case !now.Add(-s.skew).Before(expires):
		err = fmt.Errorf("the token ended at %s", expires.UTC())
	case expires.Before(issued) || expires.Before(notBefore):
		err = errors.New("the token ends before it begins")
	case now.Add(s.skew).Before(notBefore):
		err = fmt.Errorf("the token is not good before %s", notBefore.UTC())
	case issued.Before(time.Unix(0, 0)):
		err = errors.New("the token was issued before 1970")
	}
	return issued, expires, err
}

// checkScope refuses a scope that says nothing, or the same twice. A claim that is no scope at all is passed over.
func checkScope(c claims, name string) error {
	switch c[name].(type) {
	case string, []any:
	default:
		return nil
	}
	scope, err := c.texts(name)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, item := range scope {
		item = strings.TrimSpace(item)
		if item == "" || seen[item] {
			return fmt.Errorf("claim %s has an item that is empty or there twice", name)
		}
		seen[item] = true
	}
	return nil
}
