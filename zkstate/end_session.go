package zkstate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"barnabas/zkstate/embedded/client"
)

// SessionKey is what it takes to speak for a session: its id, and the password that the server gave for it.
type SessionKey struct {
	ID       int64
	Password []byte
}

// endWithin bounds EndSession: what it could save at most is the wait for a session's timeout.
const endWithin = 5 * time.Second

// errOtherSession is told of a server that confirms another session than it was asked for.
var errOtherSession = errors.New("the server confirmed another session")

// SessionKey is the key of the session of that id, if it is this client's of now.
func (c *Client) SessionKey(id int64) (SessionKey, bool) {
	confirmed := c.current().wire.confirmed.Load()
	if confirmed == nil || id == 0 || confirmed.session.ID != id {
		return SessionKey{}, false
	}
	return confirmed.session, true
}

// EndSession ends another process's session as that process would by closing it: its ephemeral nodes go at once. The caller has to know that nobody lives by it. true means that it was ended
// now; false that no server knows it any more, or that the password is not its: servers make no difference. After an error, which names each server that was tried, it may be over or not.
func (c *Client) EndSession(ctx context.Context, key SessionKey) (bool, error) {
	g, err := c.generationOf(ctx)
	if err != nil {
		return false, err
	}
	if err := g.wait(ctx); err != nil {
		return false, err
	}
	// The server that this client has found to be well comes first, and none may use up the time of those after it.
	servers := []string{g.conn.Server()}
	servers = append(servers, slices.DeleteFunc(slices.Clone(c.servers), func(s string) bool { return s == servers[0] })...)
	until := time.Now().Add(endWithin)
	var errs []error
	for i, server := range servers {
		share := time.Until(until) / time.Duration(len(servers)-i)
		ended, err := endSessionAt(ctx, g.wire, server, key, share)
		if err == nil {
			return ended, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", server, err))
	}
	return false, errors.Join(errs...)
}

// endSessionAt takes the session over from whichever server has it, and closes it. It asks for limit as the session's timeout, so that one whose closing fails halfway does not last much longer.
func endSessionAt(ctx context.Context, wire *dialer, server string, key SessionKey, limit time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := wire.open(ctx, server, client.Session{ID: key.ID, Password: key.Password}, limit)
	if errors.Is(err, client.ErrExpired) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer conn.Drop()
	if conn.Session().ID != key.ID {
		return false, errOtherSession
	}
	defer context.AfterFunc(ctx, conn.Drop)()
	if err := conn.Close(); err != nil {
		return false, err
	}
	return true, nil
}
