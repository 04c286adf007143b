package admin

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/zkstate"
)

// Credentials for SASL/SCRAM (RFC 5802) are settings of users (KIP-554): what a server needs to check a password, not
// the password.

// ScramMechanism is a mechanism as the protocol numbers it.
type ScramMechanism int8

// The mechanisms.
const (
	ScramSHA256 ScramMechanism = 1
	ScramSHA512 ScramMechanism = 2
)

// Bounds on iterations, as Kafka has them. Its tools take the least when nothing is said.
const (
	MinScramIterations = 4096
	MaxScramIterations = 16384
)

var scramNames = map[ScramMechanism]string{ScramSHA256: "SCRAM-SHA-256", ScramSHA512: "SCRAM-SHA-512"}

// scramMechanisms in the order of answers.
var scramMechanisms = []ScramMechanism{ScramSHA256, ScramSHA512}

// String is the mechanism's name, which is also the key of the setting.
func (m ScramMechanism) String() string { return scramNames[m] }

// ScramMechanisms are all of them, in the order of answers.
func ScramMechanisms() []ScramMechanism { return slices.Clone(scramMechanisms) }

// ParseScramMechanism reads the name of one.
func ParseScramMechanism(name string) (ScramMechanism, bool) {
	at := slices.IndexFunc(scramMechanisms, func(m ScramMechanism) bool { return m.String() == name })
	if at < 0 {
		return 0, false
	}
	return scramMechanisms[at], true
}

func (m ScramMechanism) hash() func() hash.Hash {
	if m == ScramSHA512 {
		return sha512.New
	}
	return sha256.New
}

// ScramCredential is the value of the setting.
type ScramCredential struct {
	Salt, StoredKey, ServerKey []byte
	Iterations                 int
}

// SaltPassword is what clients send instead of a password. iterations is at least 1.
func SaltPassword(m ScramMechanism, password string, salt []byte, iterations int) ([]byte, error) {
	return pbkdf2.Key(m.hash(), password, salt, iterations, m.hash()().Size())
}

// NewSalt makes a salt of the size that Kafka's tool gives it.
func NewSalt() []byte {
	const size = 24
	salt := make([]byte, size)
	_, _ = rand.Read(salt) // never fails
	return salt
}

// NewScramCredential makes the credential of a salted password.
func NewScramCredential(m ScramMechanism, salt, saltedPassword []byte, iterations int) ScramCredential {
	mac := func(text string) []byte {
		h := hmac.New(m.hash(), saltedPassword)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	stored := m.hash()()
	stored.Write(mac("Client Key"))
	return ScramCredential{Salt: salt, StoredKey: stored.Sum(nil), ServerKey: mac("Server Key"), Iterations: iterations}
}

// String is the form in which Kafka stores it.
func (c ScramCredential) String() string {
	b := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("salt=%s,stored_key=%s,server_key=%s,iterations=%d", b(c.Salt), b(c.StoredKey), b(c.ServerKey), c.Iterations)
}

// ParseScramCredential reads the stored form.
func ParseScramCredential(s string) (ScramCredential, error) {
	var c ScramCredential
	for _, field := range strings.Split(s, ",") {
		key, value, _ := strings.Cut(field, "=")
		var err error
		switch key {
		case "salt":
			c.Salt, err = base64.StdEncoding.DecodeString(value)
		case "stored_key":
			c.StoredKey, err = base64.StdEncoding.DecodeString(value)
		case "server_key":
			c.ServerKey, err = base64.StdEncoding.DecodeString(value)
		case "iterations":
			c.Iterations, err = strconv.Atoi(value)
		default:
			err = errors.New("unknown")
		}
		if err != nil {
			return ScramCredential{}, fmt.Errorf("SCRAM credential: field %q: %w", key, err)
		}
	}
	if c.Salt == nil || c.StoredKey == nil || c.ServerKey == nil || c.Iterations <= 0 {
		return ScramCredential{}, errors.New("SCRAM credential: a field is missing")
	}
	return c, nil
}

// ScramInfo is what may be told of a credential.
type ScramInfo struct {
	Mechanism  ScramMechanism
	Iterations int32
}

// ScramDescription answers for one user.
type ScramDescription struct {
	User        string
	Err         error
	Credentials []ScramInfo
}

// DescribeUserScramCredentials tells the credentials of the users named, or of all that have any when users is empty.
func (a *Admin) DescribeUserScramCredentials(ctx context.Context, users []string) ([]ScramDescription, error) {
	if len(users) == 0 {
		return a.describeAllScram(ctx)
	}
	var out []ScramDescription
	for i, user := range users {
		d := ScramDescription{User: user}
		first := slices.Index(users, user) == i
		twice := slices.Contains(users[i+1:], user)
		switch {
		case !first:
			continue
		case user == "":
			d.Err = failed(kerr.ResourceNotFound, "Username must not be empty")
		case twice:
			d.Err = failed(kerr.DuplicateResource, "Cannot describe SCRAM credentials for the same user twice in a single request: %s", user)
		default:
			d.Credentials, d.Err = a.scramOf(ctx, zkstate.SanitizeName(user))
			if d.Err == nil && len(d.Credentials) == 0 {
				d.Err = failed(kerr.ResourceNotFound, "Attempt to describe a user credential that does not exist: %s", user)
			}
			d.Err = unavailable(d.Err)
		}
		out = append(out, d)
	}
	return out, nil
}

func (a *Admin) describeAllScram(ctx context.Context) ([]ScramDescription, error) {
	names, err := a.children(ctx, zkstate.EntityTypePath(zkstate.UserEntity))
	if err != nil {
		return nil, unavailable(err)
	}
	var out []ScramDescription
	for _, name := range names {
		infos, err := a.scramOf(ctx, name)
		if err == nil && len(infos) == 0 {
			continue
		}
		user, nameErr := zkstate.DesanitizeName(name)
		if nameErr != nil {
			user = name
		}
		out = append(out, ScramDescription{User: user, Credentials: infos, Err: unavailable(err)})
	}
	slices.SortFunc(out, func(a, b ScramDescription) int { return strings.Compare(a.User, b.User) })
	return out, nil
}

func (a *Admin) scramOf(ctx context.Context, name string) ([]ScramInfo, error) {
	configs, _, err := a.readConfig(ctx, zkstate.UserEntity, name)
	if err != nil {
		return nil, err
	}
	var infos []ScramInfo
	for _, m := range scramMechanisms {
		value, ok := configs[m.String()]
		if !ok {
			continue
		}
		c, err := ParseScramCredential(value)
		if err != nil {
			return nil, err
		}
		infos = append(infos, ScramInfo{Mechanism: m, Iterations: int32(c.Iterations)})
	}
	return infos, nil
}

// ScramUpsertion sets a credential of a user.
type ScramUpsertion struct {
	User                 string
	Mechanism            ScramMechanism
	Iterations           int32
	Salt, SaltedPassword []byte
}

// ScramDeletion removes a credential of a user.
type ScramDeletion struct {
	User      string
	Mechanism ScramMechanism
}

// ScramResult answers for one user: all changes of a user succeed or fail together.
type ScramResult struct {
	User string
	Err  error
}

// AlterUserScramCredentials sets and removes credentials.
func (a *Admin) AlterUserScramCredentials(ctx context.Context, upsertions []ScramUpsertion, deletions []ScramDeletion) []ScramResult {
	var users []string
	note := func(user string) {
		if !slices.Contains(users, user) {
			users = append(users, user)
		}
	}
	for _, d := range deletions {
		note(d.User)
	}
	for _, u := range upsertions {
		note(u.User)
	}
	results := make([]ScramResult, len(users))
	for i, user := range users {
		mineUp := slices.DeleteFunc(slices.Clone(upsertions), func(u ScramUpsertion) bool { return u.User != user })
		mineDown := slices.DeleteFunc(slices.Clone(deletions), func(d ScramDeletion) bool { return d.User != user })
		results[i] = ScramResult{User: user, Err: unavailable(a.alterScram(ctx, user, mineUp, mineDown))}
	}
	return results
}

func (a *Admin) alterScram(ctx context.Context, user string, upsertions []ScramUpsertion, deletions []ScramDeletion) error {
	if err := checkScram(user, upsertions, deletions); err != nil {
		return err
	}
	name := zkstate.SanitizeName(user)
	configs, order, err := a.readConfig(ctx, zkstate.UserEntity, name)
	if err != nil {
		return err
	}
	for _, d := range deletions {
		if _, ok := configs[d.Mechanism.String()]; !ok {
			return failed(kerr.ResourceNotFound, "Attempt to delete a user credential that does not exist")
		}
		delete(configs, d.Mechanism.String())
	}
	for _, u := range upsertions {
		if len(u.SaltedPassword) == 0 { // from which no key can be made
			return failed(kerr.UnknownServerError, "The server experienced an unexpected error when processing the request.")
		}
		configs[u.Mechanism.String()] = NewScramCredential(u.Mechanism, u.Salt, u.SaltedPassword, int(u.Iterations)).String()
		order = append(order, u.Mechanism.String())
	}
	return a.setClientConfig(ctx, zkstate.UserEntity, name, configs, order)
}

func checkScram(user string, upsertions []ScramUpsertion, deletions []ScramDeletion) error {
	if user == "" {
		return failed(kerr.UnacceptableCredential, "Username must not be empty")
	}
	touched := map[ScramMechanism]int{}
	var err error // the last one is told, and those of upsertions before those of deletions
	for _, d := range deletions {
		if d.Mechanism.String() == "" {
			err = failed(kerr.UnsupportedSaslMechanism, "Unknown SCRAM mechanism")
		}
		touched[d.Mechanism]++
	}
	for _, u := range upsertions {
		switch {
		case u.Mechanism.String() == "":
			err = failed(kerr.UnsupportedSaslMechanism, "Unknown SCRAM mechanism")
		case u.Iterations > MaxScramIterations:
			err = failed(kerr.UnacceptableCredential, "Too many iterations")
		case u.Iterations < MinScramIterations:
			err = failed(kerr.UnacceptableCredential, "Too few iterations")
		}
		touched[u.Mechanism]++
	}
	if err != nil {
		return err
	}
	for _, n := range touched {
		if n > 1 {
			return failed(kerr.DuplicateResource, "A user credential cannot be altered twice in the same request")
		}
	}
	return nil
}
