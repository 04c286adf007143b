package oauth

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Bearer is a token (RFC 6750) and what it says of its holder, as far as that counts.
type Bearer struct {
	Value   string
	Subject string // who the holder is
	Issued  time.Time
	Expires time.Time
}

// Refused is why a token is not believed. A client is told of status and scope alone.
type Refused struct {
	Status string // one of those of RFC 6750, section 3.1
	Scope  string // what the token lacks; "": that is not the reason
	Reason error
}

func (r *Refused) Error() string { return r.Reason.Error() }
func (r *Refused) Unwrap() error { return r.Reason }

func invalidToken(reason error) *Refused { return &Refused{Status: "invalid_token", Reason: reason} }

// Validator judges tokens. It may be asked by many at a time, and answers at once.
type Validator interface {
	// Validate tells whose a token is. Its error is a [Refused].
	Validate(token string, now time.Time) (Bearer, error)
}

// claims are what a token says (RFC 7519), as JSON has it. What is null is not said.
type claims map[string]any

var errNotJSON = errors.New("what should be a JSON object is none")

func parseClaims(text []byte) (claims, error) {
	var c claims
	if err := json.Unmarshal(text, &c); err != nil || c == nil {
		return nil, errNotJSON // whose words might quote the token
	}
	return c, nil
}

// decodeClaims reads a section of a token. Kafka reads some in the alphabet that RFC 7515 does not mean, so there are tokens in either.
func decodeClaims(section string) (claims, error) {
	text, err := base64.RawURLEncoding.DecodeString(strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(section, "=")))
	if err != nil {
		return nil, errors.New("a section is not in base64")
	}
	return parseClaims(text)
}

// text reads a claim that is a text; "" when it is not there.
func (c claims) text(name string) (string, error) {
	if c[name] == nil {
		return "", nil
	}
	value, ok := c[name].(string)
	if !ok {
		return "", fmt.Errorf("claim %s is no text", name)
	}
	return value, nil
}

func (c claims) seconds(name string) (value float64, said bool, err error) {
	if c[name] == nil {
		return 0, false, nil
	}
	value, ok := c[name].(float64)
	if !ok {
		return 0, true, fmt.Errorf("claim %s is no number", name)
	}
	return value, true, nil
}

// texts reads a claim that is a text or a list of texts.
func (c claims) texts(name string) ([]string, error) {
	switch value := c[name].(type) {
	case nil:
		return nil, nil
	case string:
		return []string{value}, nil
	case []any:
		all := make([]string, 0, len(value))
		for _, item := range value {
			text, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("claim %s is a list of more than texts", name)
			}
			all = append(all, text)
		}
		return all, nil
	}
	return nil, fmt.Errorf("claim %s is neither a text nor a list", name)
}

// subject is who the token is about: a claim with more than blanks in it, which are cut off around it.
func (c claims) subject(name string) (string, error) {
	value, err := c.text(name)
	if err != nil {
		return "", err
	}
	if value = strings.TrimSpace(value); value == "" {
		return "", fmt.Errorf("claim %s names nobody", name)
	}
	return value, nil
}

// moment is a time that claims tell in seconds, cut off where nobody lives to see it.
func moment(seconds float64) time.Time {
	const yearAfter9999 = 253402300800
	return time.UnixMilli(int64(math.Round(max(-yearAfter9999, min(seconds, yearAfter9999)) * 1000)))
}
