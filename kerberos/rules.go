package kerberos

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"barnabas/javaregexp"
)

// Rules are sasl.kerberos.principal.to.local.rules: what a principal is called here. The first rule that applies counts; a principal to which none applies is refused.
type Rules struct {
	realm string // the default realm
	rules []rule
}

// rule is DEFAULT, or RULE:[components:format](whole)s/part/replacement/g/L.
type rule struct {
	text        string
	isDefault   bool
	components  int
	format      string
	whole, part *regexp.Regexp // nil: anything matches, nothing is replaced
	replacement string
	all         bool
	letters     func(string) string
}

var ruleForm = regexp.MustCompile(`^(?:(DEFAULT)|RULE:\[(\d*):([^\]]*)\](\(([^)]*)\))?(s/([^/]*)/([^/]*)/(g)?)?/?([LU])?)`)

// ParseRules reads a list of rules. What could only fail when it is applied, a replacement that speaks of groups that are not there, is refused now.
func ParseRules(list []string, defaultRealm string) (*Rules, error) {
	rules := &Rules{realm: defaultRealm}
	for _, text := range list {
		r, err := parseRule(text)
		if err != nil {
			return nil, fmt.Errorf("sasl.kerberos.principal.to.local.rules: rule %q: %w", text, err)
		}
		rules.rules = append(rules.rules, r)
	}
	return rules, nil
}

func parseRule(text string) (r rule, err error) {
	found := ruleForm.FindStringSubmatch(text)
	if found == nil {
		return r, errors.New("neither DEFAULT nor of the form RULE:[n:string](regexp)s/pattern/replacement/g/L")
	}
	if rest := text[len(found[0]):]; rest != "" {
		return r, fmt.Errorf("%q is too much", rest)
	}
	r = rule{text: text, isDefault: found[1] != "", format: found[3], replacement: found[8], all: found[9] != "", letters: letters[found[10]]}
	if r.isDefault {
		return r, nil
	}
	if r.components, err = strconv.Atoi(found[2]); err != nil {
		return r, errors.New("no number of components")
	}
	if found[4] != "" {
		if r.whole, err = regexp.Compile(`\A(?:` + found[5] + `)\z`); err != nil {
			return r, err
		}
	}
	if found[6] != "" {
		if r.part, err = regexp.Compile(found[7]); err == nil {
			err = javaregexp.CheckReplacement(r.part, r.replacement)
		}
	}
	return r, err
}

var letters = map[string]func(string) string{"": func(s string) string { return s }, "L": strings.ToLower, "U": strings.ToUpper}

// ShortName is what a principal is called.
func (r *Rules) ShortName(n Name) (string, error) {
	for _, rule := range r.rules {
		short, applies, err := rule.apply(n, r.realm)
		if err != nil {
			return "", err
		}
		if applies {
			return short, nil
		}
	}
	return "", fmt.Errorf("no rule of sasl.kerberos.principal.to.local.rules applies to %s", n)
}

func (r *rule) apply(n Name, defaultRealm string) (short string, applies bool, err error) {
	if r.isDefault {
		return n.Primary, n.Realm == defaultRealm, nil
	}
	parts := []string{n.Realm, n.Primary}
	if n.Instance != "" {
		parts = append(parts, n.Instance)
	}
	if len(parts)-1 != r.components {
		return "", false, nil
	}
	if short, err = format(r.format, parts); err != nil {
		return "", false, fmt.Errorf("rule %s: %w", r.text, err)
	}
	if r.whole != nil && !r.whole.MatchString(short) {
		return "", false, nil
	}
	if r.part != nil {
		short = javaregexp.Replace(r.part, short, r.replacement, r.all)
	}
	if short == "" || strings.ContainsAny(short, "/@") {
		return "", false, fmt.Errorf("rule %s makes %q of %s, which is no name", r.text, short, n)
	}
	return r.letters(short), true, nil
}

// format puts parts in the place of $0, $1 and $2; all digits behind a $ are its number.
func format(text string, parts []string) (string, error) {
	var out strings.Builder
	for {
		before, after, more := strings.Cut(text, "$")
		out.WriteString(before)
		if !more {
			return out.String(), nil
		}
		text = strings.TrimLeft(after, "0123456789")
		number := after[:len(after)-len(text)]
		n, err := strconv.Atoi(number)
		if err != nil || n >= len(parts) {
			return "", fmt.Errorf("there is no $%s", number)
		}
		out.WriteString(parts[n])
	}
}
