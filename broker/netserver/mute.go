package netserver

import (
	"errors"
	"time"
)

var errMuted = errors.New("the connection ended while it was muted")

// unmuted waits until the next frame may be read (KIP-219). What is answered goes out first: the client is told how
// long it has to wait. Nothing is read meanwhile, so a client that sends on fills its own buffers. A frame that was
// being read when the mute came is still handled: held back, it would hold memory that all connections share.
func (c *conn) unmuted() error {
	for {
		until := c.wire.MutedUntil()
		if until.IsZero() { // as ever, without asking what time it is
			return nil
		}
		wait := time.Until(until)
		if wait <= 0 {
			return nil
		}
		c.flush()
		over := time.NewTimer(wait)
		select {
		case <-over.C:
		case <-c.server.stopped:
			over.Stop()
			return errStopping
		case <-c.dying:
			over.Stop()
			return errMuted
		}
	}
}
