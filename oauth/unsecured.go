package oauth

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Unsecured believes tokens that nobody has signed (RFC 7515, appendix A.5), which anybody can make for anybody: Kafka's default, meant for development [KIP-255].
type Unsecured struct {
	principalClaim string
	scopeClaim     string
	requiredScope  []string
	skew           time.Duration
}

// NewUnsecured reads the options unsecuredValidator*.
func NewUnsecured(c Config) (*Unsecured, error) {
	option := func(name, otherwise string) (string, string) {
		name = "unsecuredValidator" + name
		if value := strings.TrimSpace(c.Options[name]); value != "" {
			return name, value
		}
		return name, otherwise
	}
	u := &Unsecured{}
	_, u.principalClaim = option("PrincipalClaimName", "sub")
	_, u.scopeClaim = option("ScopeClaimName", "scope")
	name, scope := option("RequiredScope", "")
	u.requiredScope = strings.Fields(scope)
	for _, item := range u.requiredScope {
		if !isScope(item) {
			return nil, fmt.Errorf("%s: %q is no scope (RFC 6749, section 3.3)", name, item)
		}
	}
	name, skew := option("AllowableClockSkewMs", "0")
	ms, err := strconv.ParseInt(skew, 10, 32)
	if err != nil || ms < 0 {
		return nil, fmt.Errorf("%s: %q is no number of milliseconds", name, skew)
	}
	u.skew = time.Duration(ms) * time.Millisecond
	return u, nil
}

func isScope(item string) bool {
	return strings.IndexFunc(item, func(r rune) bool { return r < 0x21 || r > 0x7e || r == '"' || r == '\\' }) < 0
}

// Validate implements Validator.
func (u *Unsecured) Validate(token string, now time.Time) (Bearer, error) {
	b, scope, err := u.read(token)
	if err == nil {
		err = u.inTime(b, now)
	}
	if err != nil {
		return Bearer{}, invalidToken(err)
	}
	for _, required := range u.requiredScope {
		if !slices.Contains(scope, required) {
			return Bearer{}, &Refused{Status: "insufficient_scope", Scope: "[" + strings.Join(u.requiredScope, ", ") + "]", Reason: fmt.Errorf("the token lacks scope %s", required)}
		}
	}
	return b, nil
}

func (u *Unsecured) read(token string) (b Bearer, scope []string, err error) {
	sections := strings.Split(token, ".")
	if len(sections) != 3 || sections[1] == "" || sections[2] != "" {
		return b, nil, errors.New("not a token without a signature")
	}
	header, err := decodeClaims(sections[0])
	if err != nil {
		return b, nil, err
	}
	if algorithm, _ := header.text("alg"); algorithm != "none" {
		return b, nil, errors.New("the token says that it is signed")
	}
	c, err := decodeClaims(sections[1])
	if err != nil {
		return b, nil, err
	}
	expires, said, err := c.seconds("exp")
	if err == nil && !said {
		err = errors.New("the token does not say when it ends")
	}
	if err != nil {
		return b, nil, err
	}
	issued, said, err := c.seconds("iat")
	if err != nil {
		return b, nil, err
	}
	b = Bearer{Value: token, Expires: moment(expires)}
	if said {
		b.Issued = moment(issued)
	}
	// Not trimmed, as with Kafka: a name that another program takes for another is another.
	if b.Subject, err = c.text(u.principalClaim); err == nil && strings.TrimSpace(b.Subject) == "" {
		err = fmt.Errorf("claim %s names nobody", u.principalClaim)
	}
	if err != nil {
		return b, nil, err
	}
	scope, err = c.texts(u.scopeClaim)
	for i := range scope {
		scope[i] = strings.TrimSpace(scope[i])
	}
	return b, scope, err
}

func (u *Unsecured) inTime(b Bearer, now time.Time) error {
	switch {
	case b.Issued.After(now.Add(u.skew)):
		return fmt.Errorf("the token is issued at %s, in the future", b.Issued.UTC())
	case !now.Add(-u.skew).Before(b.Expires):
		return fmt.Errorf("the token ended at %s", b.Expires.UTC())
	case !b.Issued.IsZero() && !b.Expires.After(b.Issued):
		return errors.New("the token ends before it is issued")
	}
	return nil
}
