// Package sasl is the client's side of SASL towards ZooKeeper: DIGEST-MD5 (RFC 2831) with authentication alone, which is what ZooKeeper's DigestLoginModule stands for, and GSSAPI.
package sasl

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// What ZooKeeper's servers call themselves in the exchange, whatever their host's name is.
const (
	service = "zookeeper"
	host    = "zk-sasl-md5"
)

// Errors of an exchange. None quotes what a server sent.
var (
	errChallenge = errors.New("SASL: the server's challenge is not one of DIGEST-MD5")
	errNoAuth    = errors.New("SASL: the server wants more than authentication")
	errServer    = errors.New("SASL: the server does not know the password")
)

// Account is a client that proves itself by a password.
type Account struct{ User, Password string }

func (a Account) String() string { return a.User }

// Login implements Login.
func (a Account) Login(_ string, ask func(token []byte) ([]byte, error)) error {
	nonce := make([]byte, 24)
	_, _ = rand.Read(nonce) // never fails
	return a.login(ask, hex.EncodeToString(nonce))
}

func (a Account) login(ask func(token []byte) ([]byte, error), cnonce string) error {
	challenge, err := ask([]byte{}) // the server has the first word
	if err != nil {
		return err
	}
	fields, err := parseFields(string(challenge))
	if err != nil {
		return err
	}
	if fields["nonce"] == "" || fields["algorithm"] != "md5-sess" {
		return errChallenge
	}
	if qop, told := fields["qop"]; told && !contains(qop, "auth") {
		return errNoAuth
	}
	d := digest{user: a.User, realm: fields["realm"], nonce: fields["nonce"], cnonce: cnonce}
	charset := ""
	encode := latin1
	if fields["charset"] == "utf-8" {
		charset, encode = "charset=utf-8,", latin1OrUTF8
	}
	d.secret = a.secret(d.realm, encode)
	answer := charset + "username=" + quote(a.User) + ",realm=" + quote(d.realm) + ",nonce=" + quote(d.nonce) + ",nc=" + count + ",cnonce=" + quote(cnonce) +
		",digest-uri=" + quote(service+"/"+host) + ",maxbuf=65536,response=" + d.response("AUTHENTICATE") + ",qop=auth"
	last, err := ask([]byte(answer))
	if err != nil {
		return err
	}
	if fields, err = parseFields(string(last)); err != nil {
		return err
	}
	if !hmac.Equal([]byte(fields["rspauth"]), []byte(d.response(""))) {
		return errServer
	}
	return nil
}

// secret is what a server keeps in place of a password.
func (a Account) secret(realm string, encode func(string) string) [md5.Size]byte {
	return md5.Sum([]byte(encode(a.User) + ":" + encode(realm) + ":" + encode(a.Password)))
}

// count is which use of the nonce this is: each connection has its own.
const count = "00000001"

// digest is what both sides know.
type digest struct {
	user, realm, nonce, cnonce string
	secret                     [md5.Size]byte // of user, realm and password
}

// response proves that the password is known: the client's with the method AUTHENTICATE, the server's with none.
func (d digest) response(method string) string {
	a1 := sum(string(d.secret[:]) + ":" + d.nonce + ":" + d.cnonce)
	a2 := sum(method + ":" + service + "/" + host)
	return sum(a1 + ":" + d.nonce + ":" + count + ":" + d.cnonce + ":auth:" + a2)
}

func sum(text string) string {
	h := md5.Sum([]byte(text))
	return hex.EncodeToString(h[:])
}

// latin1OrUTF8 is how text is digested where charset=utf-8 was agreed on: as ISO 8859-1 if that has all of its letters.
func latin1OrUTF8(text string) string {
	for _, r := range text {
		if r > 0xff {
			return text
		}
	}
	return latin1(text)
}

// latin1 has a question mark for what ISO 8859-1 lacks, as Java has.
func latin1(text string) string {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 0xff {
			r = '?'
		}
		out = append(out, byte(r))
	}
	return string(out)
}

func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

func contains(list, word string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(item) == word {
			return true
		}
	}
	return false
}

// maxToken bounds what is looked at: RFC 2831 allows 2048 bytes.
const maxToken = 4096

// parseFields reads name=value,name="quoted",... Of fields that come twice the first counts: a server may offer several realms.
func parseFields(text string) (map[string]string, error) {
	if len(text) > maxToken {
		return nil, errChallenge
	}
	fields := map[string]string{}
	for {
		text = strings.TrimLeft(text, ", \t\r\n")
		if text == "" {
			return fields, nil
		}
		name, rest, found := strings.Cut(text, "=")
		if !found {
			return nil, errChallenge
		}
		value, rest, err := parseValue(rest)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errChallenge, err)
		}
		name = strings.TrimSpace(name)
		if _, twice := fields[name]; !twice {
			fields[name] = value
		}
		text = rest
	}
}

var errQuote = errors.New("a quoted text does not end")

func parseValue(text string) (value, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexByte(text, ',')
		if end < 0 {
			end = len(text)
		}
		return strings.TrimSpace(text[:end]), text[end:], nil
	}
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return out.String(), text[i+1:], nil
		case c == '\\' && i+1 < len(text):
			i++
			out.WriteByte(text[i])
		default:
			out.WriteByte(c)
		}
	}
	return "", "", errQuote
}
