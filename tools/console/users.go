package console

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"os"
	"strings"
)

// Users are who may sign in, by name; nil is nobody in particular.
type Users map[string]signIn

type signIn struct {
	password [sha256.Size]byte // its hash, so that comparing takes as long for all lengths
	operator bool
}

const maxUsersFile = 1 << 20

// ReadUsers reads a file of lines name:role:password, where role is viewer or operator; # begins a comment. An empty path is no users.
func ReadUsers(path string) (Users, error) {
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxUsersFile {
		return nil, fmt.Errorf("%s is too large for a file of users", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	users := Users{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest, _ := strings.Cut(line, ":")
		role, password, ok := strings.Cut(rest, ":")
		if !ok || name == "" || password == "" || role != "viewer" && role != "operator" {
			return nil, fmt.Errorf("%s, line %d: name:viewer:password or name:operator:password is needed", path, n)
		}
		if _, twice := users[name]; twice {
			return nil, fmt.Errorf("%s, line %d: %s is there twice", path, n, name)
		}
		users[name] = signIn{sha256.Sum256([]byte(password)), role == "operator"}
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("%s names no users", path)
	}
	return users, lines.Err()
}

// check tells whether a password is a user's, and whether he may act.
func (u Users) check(name, password string) (acts, ok bool) {
	one, there := u[name]
	sum := sha256.Sum256([]byte(password))
	same := subtle.ConstantTimeCompare(sum[:], one.password[:]) == 1
	return one.operator, there && same
}
