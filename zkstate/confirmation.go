package zkstate

import (
	"encoding/binary"
	"errors"
	"time"
)

// confirmation is the first packet that a server sends on a connection: length, version of the protocol, granted timeout in milliseconds, session id, password with its length, and in later
// versions a byte. A session id of 0 says that there is no such session, or that the password is not its.
type confirmation struct {
	timeout time.Duration
	session SessionKey
}

const (
	beforePassword  = 4 + 4 + 4 + 8 + 4
	maxConfirmation = 4096
)

var errNotZooKeeper = errors.New("the other side does not speak ZooKeeper's protocol")

// parseConfirmation reads the packet at the beginning of what a server sent; false while more has to come.
func parseConfirmation(sent []byte) (c confirmation, whole bool, err error) {
	if len(sent) < 4 {
		return c, false, nil
	}
	end := 4 + uint64(binary.BigEndian.Uint32(sent))
	if end < beforePassword || end > maxConfirmation {
		return c, false, errNotZooKeeper
	}
	if uint64(len(sent)) < end {
		return c, false, nil
	}
	password := sent[beforePassword:end]
	n := int32(binary.BigEndian.Uint32(sent[beforePassword-4:]))
	if int(n) > len(password) {
		return c, false, errNotZooKeeper
	}
	c.timeout = time.Duration(binary.BigEndian.Uint32(sent[8:])) * time.Millisecond
	c.session = SessionKey{ID: int64(binary.BigEndian.Uint64(sent[12:])), Password: append([]byte(nil), password[:max(n, 0)]...)}
	return c, true, nil
}
