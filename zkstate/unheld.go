package zkstate

import (
	"context"
	"errors"
	"time"
)

// AwaitUnheld waits until an ephemeral node of another session is gone, for as long as a dead session may live. nil means that RegisterEphemeral will make the node at once, unless
// somebody else does first; the error is the *HeldError that it would answer. A process that is started again waits here before it listens: nobody is to take it for its predecessor.
func (c *Client) AwaitUnheld(ctx context.Context, path string) error {
	g, err := c.generationOf(ctx)
	if err != nil {
		return err
	}
	if err := g.wait(ctx); err != nil {
		return err
	}
	events := c.Subscribe()
	defer events.Close()
	patience := c.reapedWithin()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for told := false; ; told = true {
		r, err := c.One(ctx, Get(path).Watched())
		switch owner := r.Stat.EphemeralOwner; {
		case errors.Is(err, ErrNoNode):
			return nil
		case err != nil:
			return err
		case owner != 0 && (owner == g.sessionID() || c.wasOurs(owner)):
			return nil
		}
		held := &HeldError{Path: path, Owner: r.Stat.EphemeralOwner, Data: r.Data}
		if held.Owner == 0 {
			return held
		}
		if !told {
			c.log.WithField("path", path).Warnf("ZooKeeper: the node belongs to session 0x%x; waiting up to %v for that session to end, as after a crash", held.Owner, patience)
		}
		if err := awaitDeletion(ctx, events, path, deadline.C, held); err != nil {
			return err
		}
	}
}
