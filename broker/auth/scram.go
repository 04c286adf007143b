package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strings"
	"time"
)

// Scram is a mechanism of the SCRAM family (RFC 5802, RFC 7677), without channel binding: the client proves that it knows the
// password without sending it, and the server that it knows the credential.
//
//	client: n,,n=user,r=NONCE               server: r=NONCE+more,s=salt,i=iterations
//	client: c=biws,r=NONCE+more,p=proof     server: v=signature
//
// With the extension tokenauth=true the client's first message names a delegation token instead of a user, whose HMAC in base64 is the
// password (KIP-48).
type Scram struct {
	name  string
	hash  func() hash.Hash
	known Known
	nonce func() string
}

// Known is where a server looks up whom it can recognize.
type Known struct {
	// User finds a user's credential.
	User func(name string) (Credential, bool)
	// Token finds a delegation token by its id; nil where tokens are not served.
	Token func(id string) (Token, bool)
}

// Token is a delegation token: a credential whose holder is taken for Owner until Expires.
type Token struct {
	Credential
	Owner   string
	Expires time.Time
}

// Credential is what a server knows of a password.
type Credential struct {
	Salt, StoredKey, ServerKey []byte
	Iterations                 int
}

// LeastIterations are what Kafka takes at least, and what it makes the credentials of delegation tokens with.
const LeastIterations = 4096

// NewScram256 makes the mechanism SCRAM-SHA-256. nonce gives printable text without commas that nobody can guess.
func NewScram256(known Known, nonce func() string) *Scram {
	return &Scram{"SCRAM-SHA-256", sha256.New, known, nonce}
}

// NewScram512 makes the mechanism SCRAM-SHA-512.
func NewScram512(known Known, nonce func() string) *Scram {
	return &Scram{"SCRAM-SHA-512", sha512.New, known, nonce}
}

// Name implements Mechanism.
func (m *Scram) Name() string { return m.name }

// Begin implements Mechanism.
func (m *Scram) Begin() Exchange { return &scramExchange{mechanism: m} }

// scramExchange is an exchange; first is nil until the client's first message has come.
type scramExchange struct {
	mechanism  *Scram
	first      *clientFirst
	as         Identity // who the client is when its proof holds
	credential Credential
	nonce      string // the client's and ours
	challenge  string
	over       bool
}

var (
	errScramFormat = errors.New("not a SCRAM message of this place in the exchange")
	errScramUser   = errors.New("no such user")
	errScramProof  = errors.New("the proof does not hold")
	errScramOver   = errors.New("the exchange is over")
	errToken       = errors.New("no such delegation token")
)

// Step implements Exchange.
func (x *scramExchange) Step(client []byte) (answer []byte, proven Identity, err error) {
	switch {
	case x.over:
		return nil, Identity{}, errScramOver
	case x.first == nil:
		answer, err = x.challengeTo(string(client))
	default:
		x.over = true
		if answer, err = x.verify(string(client)); err == nil {
			proven = x.as
		}
	}
	x.over = x.over || err != nil
	return answer, proven, err
}

func (x *scramExchange) challengeTo(message string) ([]byte, error) {
	first, err := parseClientFirst(message)
	if err != nil {
		return nil, err
	}
	if err := x.lookUp(first); err != nil {
		return nil, err
	}
	if first.actingAs != "" && first.actingAs != first.user {
		return nil, Refusal("Authentication failed: Client requested an authorization id that is different from username")
	}
	if x.credential.Iterations < LeastIterations {
		return nil, fmt.Errorf("the credential has %d iterations, %d are the least", x.credential.Iterations, LeastIterations)
	}
	x.first, x.nonce = first, first.nonce+x.mechanism.nonce()
	x.challenge = fmt.Sprintf("r=%s,s=%s,i=%d", x.nonce, base64.StdEncoding.EncodeToString(x.credential.Salt), x.credential.Iterations)
	return []byte(x.challenge), nil
}

// lookUp finds the credential of who the client says it is.
func (x *scramExchange) lookUp(first *clientFirst) error {
	var found bool
	if !first.byToken {
		if x.credential, found = x.mechanism.known.User(first.user); !found {
			return errScramUser
		}
		x.as = Identity{User: first.user}
		return nil
	}
	if x.mechanism.known.Token == nil {
		return errToken
	}
	token, found := x.mechanism.known.Token(first.user)
	if !found {
		return errToken
	}
	x.credential, x.as = token.Credential, Identity{User: token.Owner, ByToken: true, Expires: token.Expires}
	return nil
}

// verify checks the proof: the client's key, hidden under a signature that the stored key can make, must be the one whose hash is
// stored.
func (x *scramExchange) verify(message string) ([]byte, error) {
	final, err := parseClientFinal(message)
	if err != nil {
		return nil, err
	}
	// RFC 5802 wants the nonce as it is. librdkafka before 2.6.1 puts its own part before it once more, and Kafka takes that.
	if final.binding != x.first.gs2 || !strings.HasSuffix(final.nonce, x.nonce) {
		return nil, errScramProof
	}
	exchanged := []byte(x.first.bare + "," + x.challenge + "," + final.withoutProof)
	signature := x.mac(x.credential.StoredKey, exchanged)
	if len(final.proof) != len(signature) {
		return nil, errScramProof
	}
	key := make([]byte, len(signature))
	subtle.XORBytes(key, final.proof, signature)
	h := x.mechanism.hash()
	h.Write(key)
	if !hmac.Equal(h.Sum(nil), x.credential.StoredKey) {
		return nil, errScramProof
	}
	return []byte("v=" + base64.StdEncoding.EncodeToString(x.mac(x.credential.ServerKey, exchanged))), nil
}

func (x *scramExchange) mac(key, text []byte) []byte {
	h := hmac.New(x.mechanism.hash, key)
	h.Write(text)
	return h.Sum(nil)
}

type clientFirst struct {
	gs2            string // what stands before bare, its comma included
	bare           string
	actingAs, user string
	nonce          string
	byToken        bool // user is the id of a delegation token
}

// parseClientFirst reads gs2-header (no channel binding, maybe whom to act as), user, nonce and extensions.
func parseClientFirst(message string) (*clientFirst, error) {
	fields := strings.Split(message, ",")
	if len(fields) < 4 || fields[0] != "n" && fields[0] != "y" {
		return nil, errScramFormat
	}
	f := &clientFirst{gs2: fields[0] + "," + fields[1] + ","}
	f.bare = message[len(f.gs2):]
	var ok bool
	if fields[1] != "" {
		if f.actingAs, ok = saslName(fields[1], "a="); !ok {
			return nil, errScramFormat
		}
	}
	if f.user, ok = saslName(fields[2], "n="); !ok {
		return nil, errScramFormat
	}
	if f.nonce, ok = strings.CutPrefix(fields[3], "r="); !ok || !printable(f.nonce) {
		return nil, errScramFormat
	}
	for _, extension := range fields[4:] {
		if name, value, _ := strings.Cut(extension, "="); name == "tokenauth" {
			f.byToken = strings.EqualFold(value, "true")
		}
	}
	return f, nil
}

// saslName reads a name in which comma and equals sign are written =2C and =3D.
func saslName(field, prefix string) (string, bool) {
	name, ok := strings.CutPrefix(field, prefix)
	if !ok || name == "" {
		return "", false
	}
	if strings.Count(name, "=") != strings.Count(name, "=2C")+strings.Count(name, "=3D") {
		return "", false
	}
	return strings.NewReplacer("=2C", ",", "=3D", "=").Replace(name), true
}

func printable(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e }) < 0
}

type clientFinal struct {
	binding, nonce string
	proof          []byte
	withoutProof   string
}

// parseClientFinal reads channel binding, nonce, extensions and proof.
func parseClientFinal(message string) (*clientFinal, error) {
	fields := strings.Split(message, ",")
	if len(fields) < 3 {
		return nil, errScramFormat
	}
	binding, bound := bytes.CutPrefix([]byte(fields[0]), []byte("c="))
	nonce, named := strings.CutPrefix(fields[1], "r=")
	last := fields[len(fields)-1]
	proof, proven := strings.CutPrefix(last, "p=")
	if !bound || !named || !proven {
		return nil, errScramFormat
	}
	f := &clientFinal{nonce: nonce, withoutProof: strings.TrimSuffix(message, ","+last)}
	header, err := base64.StdEncoding.DecodeString(string(binding))
	if err == nil {
		f.proof, err = base64.StdEncoding.DecodeString(proof)
	}
	f.binding = string(header)
	if err != nil {
		return nil, errScramFormat
	}
	return f, nil
}
