package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// LoginModule is one entry of a JAAS configuration: a Java class, and what it is told. Its options hold secrets.
type LoginModule struct {
	Class   string
	Options map[string]string
}

// The classes of the mechanisms that are served.
const (
	PlainLoginModule = "org.apache.kafka.common.security.plain.PlainLoginModule"
	ScramLoginModule = "org.apache.kafka.common.security.scram.ScramLoginModule"
)

// moduleOf is the class of a mechanism.
func moduleOf(mechanism string) string {
	if mechanism == Plain {
		return PlainLoginModule
	}
	return ScramLoginModule
}

// Account is as whom a client authenticates. With ByToken, User is the id of a delegation token and Password its HMAC in base64 (KIP-48).
type Account struct {
	User, Password string
	ByToken        bool
}

// Login finds as whom to authenticate by a mechanism.
func Login(modules []LoginModule, mechanism string) (a Account, found bool) {
	for _, m := range modules {
		if user, named := m.Options["username"]; named && m.Class == moduleOf(mechanism) {
			return Account{User: user, Password: m.Options["password"], ByToken: strings.EqualFold(m.Options["tokenauth"], "true")}, true
		}
	}
	return Account{}, false
}

// JAASFile is what a JAAS file says, by the names of its sections.
type JAASFile map[string][]LoginModule

// LoginFile finds the JAAS file that the options of a Java program name, as KAFKA_OPTS holds them; "" when they name none.
func LoginFile(javaOptions string) string {
	return strings.TrimPrefix(javaProperty(javaOptions, "java.security.auth.login.config"), "file:")
}

// javaProperty is the value of a system property among the options of a Java program; the last counts.
func javaProperty(javaOptions, name string) (value string) {
	for _, option := range strings.Fields(javaOptions) {
		if v, ok := strings.CutPrefix(strings.Trim(option, `"'`), "-D"+name+"="); ok {
			value = strings.Trim(v, `"'`)
		}
	}
	return value
}

// digestLoginModule is how ZooKeeper's clients authenticate by DIGEST-MD5.
const digestLoginModule = "org.apache.zookeeper.server.auth.DigestLoginModule"

// ZooKeeperLogin is as whom ZooKeeper is to know this process, from the options of a Java program: by the account or the login to Kerberos in section Client of their JAAS file, or in that which
// zookeeper.sasl.clientconfig names. Both nil: as nobody.
func ZooKeeperLogin(javaOptions string) (*Account, *Kerberos, error) {
	if strings.EqualFold(javaProperty(javaOptions, "zookeeper.sasl.client"), "false") {
		return nil, nil, nil
	}
	name := LoginFile(javaOptions)
	file, err := ReadJAASFile(name)
	if err != nil {
		return nil, nil, fmt.Errorf("the JAAS file that KAFKA_OPTS names: %w", err)
	}
	section := javaProperty(javaOptions, "zookeeper.sasl.clientconfig")
	if section == "" {
		section = "Client"
	}
	if len(file[section]) == 0 {
		return nil, nil, nil
	}
	m := file[section][0]
	switch m.Class {
	case krb5LoginModule:
		ticket, err := m.kerberos()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: section %s: %w", name, section, err)
		}
		if ticket.Service = javaProperty(javaOptions, "zookeeper.sasl.client.username"); ticket.Service == "" {
			ticket.Service = "zookeeper"
		}
		return nil, &ticket, nil
	case digestLoginModule:
		if m.Options["username"] == "" {
			return nil, nil, fmt.Errorf("%s: section %s has no username", name, section)
		}
		return &Account{User: m.Options["username"], Password: m.Options["password"]}, nil, nil
	}
	return nil, nil, fmt.Errorf("%s: section %s wants %s, and towards ZooKeeper %s and %s are served (-Dzookeeper.sasl.client=false goes without)", name, section, m.Class, digestLoginModule, krb5LoginModule)
}

// ReadJAASFile reads a JAAS file; no name is an empty one.
func ReadJAASFile(name string) (JAASFile, error) {
	if name == "" {
		return JAASFile{}, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f, err := ParseJAASFile(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// Errors of JAAS texts never quote them.
var (
	errJAASQuote = errors.New("JAAS: a quoted text or a comment does not end")
	errJAASEntry = errors.New("JAAS: an entry is not of the form CLASS FLAG option=value ... ;")
	errJAASFile  = errors.New("JAAS: a section is not of the form NAME { entries };")
	errJAASOne   = errors.New("JAAS: one login module is wanted")
)

// ParseJAASFile reads sections of the form NAME { CLASS FLAG option=value ... ; ... };
func ParseJAASFile(text string) (JAASFile, error) {
	tokens, err := jaasTokens(text)
	if err != nil {
		return nil, err
	}
	f := JAASFile{}
	for len(tokens) > 0 {
		if len(tokens) < 2 || tokens[0].mark || !tokens[1].is("{") {
			return nil, errJAASFile
		}
		name := tokens[0].text
		tokens = tokens[2:]
		for len(tokens) > 0 && !tokens[0].is("}") {
			var m LoginModule
			if m, tokens, err = jaasEntry(tokens); err != nil {
				return nil, err
			}
			f[name] = append(f[name], m)
		}
		if len(tokens) < 2 || !tokens[1].is(";") {
			return nil, errJAASFile
		}
		tokens = tokens[2:]
	}
	return f, nil
}

// ParseJAASConfig reads the value of sasl.jaas.config: one entry.
func ParseJAASConfig(text string) (LoginModule, error) {
	tokens, err := jaasTokens(text)
	if err != nil {
		return LoginModule{}, err
	}
	m, rest, err := jaasEntry(tokens)
	if err == nil && len(rest) > 0 {
		err = errJAASOne
	}
	return m, err
}

func jaasEntry(tokens []jaasToken) (m LoginModule, rest []jaasToken, err error) {
	if len(tokens) < 3 || tokens[0].mark || tokens[1].mark {
		return m, nil, errJAASEntry
	}
	switch strings.ToLower(tokens[1].text) {
	case "required", "requisite", "sufficient", "optional":
	default:
		return m, nil, errJAASEntry
	}
	m = LoginModule{Class: tokens[0].text, Options: map[string]string{}}
	for rest = tokens[2:]; len(rest) > 0 && !rest[0].is(";"); rest = rest[3:] {
		if len(rest) < 4 || rest[0].mark || !rest[1].is("=") || rest[2].mark {
			return m, nil, errJAASEntry
		}
		m.Options[rest[0].text] = rest[2].text
	}
	if len(rest) == 0 {
		return m, nil, errJAASEntry
	}
	return m, rest[1:], nil
}

// jaasToken is a word, or one of the marks { } ; =
type jaasToken struct {
	text string
	mark bool
}

func (t jaasToken) is(mark string) bool { return t.mark && t.text == mark }

const jaasMarks = "{};="

// jaasTokens splits a text into words, quoted ones included, and marks; comments are left out.
func jaasTokens(text string) ([]jaasToken, error) {
	var tokens []jaasToken
	for text != "" {
		switch c := text[0]; {
		case strings.IndexByte(" \t\r\n\f", c) >= 0:
			text = text[1:]
		case strings.IndexByte(jaasMarks, c) >= 0:
			tokens, text = append(tokens, jaasToken{text[:1], true}), text[1:]
		case strings.HasPrefix(text, "//"):
			_, text, _ = strings.Cut(text, "\n")
		case strings.HasPrefix(text, "/*"):
			_, rest, ended := strings.Cut(text[2:], "*/")
			if !ended {
				return nil, errJAASQuote
			}
			text = rest
		case c == '"' || c == '\'':
			word, rest, ended := jaasQuoted(text[1:], c)
			if !ended {
				return nil, errJAASQuote
			}
			tokens, text = append(tokens, jaasToken{word, false}), rest
		default:
			end := strings.IndexAny(text, " \t\r\n\f\"'"+jaasMarks)
			if end < 0 {
				end = len(text)
			}
			tokens, text = append(tokens, jaasToken{text[:end], false}), text[end:]
		}
	}
	return tokens, nil
}

// jaasQuoted reads up to the quote that ends a text; a backslash takes the next character as it is, but for those that Java names.
func jaasQuoted(text string, quote byte) (word, rest string, ended bool) {
	named := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'f': '\f', 'b': '\b', 'a': '\a', 'v': '\v'}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == quote {
			return out.String(), text[i+1:], true
		}
		if c == '\\' && i+1 < len(text) {
			i++
			if c = text[i]; named[c] != 0 {
				c = named[c]
			}
		}
		out.WriteByte(c)
	}
	return "", "", false
}
