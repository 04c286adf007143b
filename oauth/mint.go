package oauth

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
)

// mint makes tokens that nobody signs.
type mint struct {
	claims   map[string]any
	subject  string
	lifetime time.Duration
}

// newMint reads the options unsecuredLogin*.
func newMint(options map[string]string) (*mint, error) {
	const prefix = "unsecuredLogin"
	m := &mint{claims: map[string]any{}, lifetime: time.Hour}
	for option, value := range options {
		kind, name, _ := strings.Cut(strings.TrimPrefix(option, prefix), "Claim_")
		if name == "" || !strings.HasPrefix(option, prefix) {
			continue
		}
		if name == "iat" || name == "exp" {
			return nil, fmt.Errorf("the login module's option %s: the claim %s is not for options to say", option, name)
		}
		switch kind {
		case "String":
			m.claims[name] = value
		case "Number":
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return nil, fmt.Errorf("the login module's option %s is no number", option)
			}
			m.claims[name] = n
		case "List":
			m.claims[name] = listed(value)
		}
	}
	if text := options[prefix+"LifetimeSeconds"]; text != "" {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("the login module's option %sLifetimeSeconds is no number of seconds", prefix)
		}
		m.lifetime = time.Duration(seconds) * time.Second
	}
	principal := strings.TrimSpace(options[prefix+"PrincipalClaimName"])
	if principal == "" {
		principal = "sub"
	}
	m.subject, _ = m.claims[principal].(string)
	if strings.TrimSpace(m.subject) == "" {
		return nil, fmt.Errorf("the login module has no option %sStringClaim_%s, which says who the holder of the token is", prefix, principal)
	}
	if _, err := json.Marshal(m.claims); err != nil {
		return nil, errors.New("the login module's options make no claims") // a number that is none
	}
	return m, nil
}

// listed reads a list, whose first character parts its items.
func listed(value string) []string {
	if len(value) < 2 {
		return []string{}
	}
	return strings.Split(value[1:], value[:1])
}

func (m *mint) token(now time.Time) Bearer {
	c := maps.Clone(m.claims)
	b := Bearer{Subject: m.subject, Issued: now, Expires: now.Add(m.lifetime)}
	c["iat"], c["exp"] = float64(b.Issued.UnixMilli())/1000, float64(b.Expires.UnixMilli())/1000
	text, _ := json.Marshal(c) // newMint has tried
	encode := base64.RawURLEncoding.EncodeToString
	b.Value = encode([]byte(`{"alg":"none"}`)) + "." + encode(text) + "."
	return b
}
