package ssl

import (
	"fmt"
	"regexp"
	"strings"

	"barnabas/javaregexp"
)

// Mapping is ssl.principal.mapping.rules (KIP-371): how a distinguished name becomes the name of a principal. The first rule that
// matches the whole name counts; a name that none matches is refused.
type Mapping struct{ rules []rule }

// rule is RULE:pattern/replacement/[LU], or DEFAULT when whole is nil: the name as it is.
type rule struct {
	whole, part *regexp.Regexp // part finds what is replaced
	replacement string
	letters     func(string) string
}

func same(s string) string { return s }

// ParseMapping reads a list of rules.
func ParseMapping(text string) (*Mapping, error) {
	m := &Mapping{}
	for rest := strings.TrimSpace(text); rest != ""; {
		r, after, err := parseRule(rest)
		if err != nil {
			return nil, fmt.Errorf("ssl.principal.mapping.rules: %w", err)
		}
		if r != nil {
			m.rules = append(m.rules, *r)
		}
		rest = strings.TrimLeft(after, " \t\r\n")
	}
	return m, nil
}

// parseRule reads the first rule of a list, and the comma behind it. An empty rule is none.
func parseRule(text string) (r *rule, rest string, err error) {
	rest = text
	if after, ok := strings.CutPrefix(text, "DEFAULT"); ok {
		r, rest = &rule{letters: same}, after
	} else if after, ok := strings.CutPrefix(text, "RULE:"); ok {
		if r, rest, err = parseReplacement(after); err != nil {
			return nil, "", err
		}
	}
	rest = strings.TrimLeft(rest, " \t\r\n")
	if after, more := strings.CutPrefix(rest, ","); more {
		return r, after, nil
	}
	if rest != "" {
		return nil, "", fmt.Errorf("invalid rule: %q", text)
	}
	return r, "", nil
}

func parseReplacement(text string) (r *rule, rest string, err error) {
	pattern, rest, ended := upToSlash(text)
	r = &rule{letters: same}
	if ended {
		r.replacement, rest, ended = upToSlash(rest)
	}
	if !ended {
		return nil, "", fmt.Errorf("invalid rule: %q", "RULE:"+text)
	}
	switch {
	case strings.HasPrefix(rest, "L"):
		r.letters, rest = strings.ToLower, rest[1:]
	case strings.HasPrefix(rest, "U"):
		r.letters, rest = strings.ToUpper, rest[1:]
	}
	if r.part, err = regexp.Compile(pattern); err == nil {
		r.whole, err = regexp.Compile(`\A(?:` + pattern + `)\z`)
	}
	return r, rest, err
}

// upToSlash splits at the first slash that has no backslash before it.
func upToSlash(text string) (before, after string, found bool) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '/':
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// Name is the principal's name for a distinguished name.
func (m *Mapping) Name(distinguished string) (string, error) {
	for _, r := range m.rules {
		if r.whole == nil {
			return distinguished, nil
		}
		if r.whole.MatchString(distinguished) {
			return r.letters(javaregexp.Replace(r.part, distinguished, r.replacement, true)), nil
		}
	}
	return "", fmt.Errorf("no rule of ssl.principal.mapping.rules applies to %s", distinguished)
}
