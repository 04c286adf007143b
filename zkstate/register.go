package zkstate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Registration: an ephemeral node must be made by this session and by no other. What stands in the way may be
//
//   - our own node after all: the answer to the first try was lost
//   - the node of an earlier session of this very client, which the ensemble has not reaped yet: it is deleted
//   - a node that another process left when it was killed, perhaps our own predecessor on this machine: it goes with
//     its session, so we wait for that
//   - a living stranger with the same id: after that wait an error says so
//
// Deleting anything but our own would let two brokers with one id fight for ever.

// HeldError is the answer of RegisterEphemeral when another session keeps the node alive.
type HeldError struct {
	Path  string
	Owner int64 // session id; 0 when the node is not even ephemeral
	Data  []byte
}

func (e *HeldError) Error() string {
	if e.Owner == 0 {
		return fmt.Sprintf("%s exists in ZooKeeper and is not ephemeral: %.200s", e.Path, e.Data)
	}
	return fmt.Sprintf("%s is held in ZooKeeper by another live session, 0x%x: another process uses the same id: %.200s", e.Path, e.Owner, e.Data)
}

// reapedWithin is how long a session may live after its client is gone: its timeout, and the tick in whose steps the
// ensemble looks, which is at most half a timeout. A predecessor is taken to have had this session's timeout.
func (c *Client) reapedWithin() time.Duration {
	timeout := c.SessionTimeout()
	return timeout + max(timeout/2, time.Second)
}

// RegisterEphemeral makes an ephemeral node of this session and answers its Stat, whose Czxid is the broker epoch when
// the node is a broker's. It waits for the node of a dead session for as long as such a session may live, and
// answers a *HeldError when the holder is still there.
func (c *Client) RegisterEphemeral(ctx context.Context, path string, data []byte) (Stat, error) {
	g, err := c.generationOf(ctx)
	if err != nil {
		return Stat{}, err
	}
	ctx = WithGeneration(ctx, g.number)
	if err := g.wait(ctx); err != nil {
		return Stat{}, err
	}
	own := g.sessionID()
	events := c.Subscribe()
	defer events.Close()
	patience := c.reapedWithin()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	told := false
	for {
		// As Kafka does it: the node is made empty and filled in one multi, so that its data version is 1.
		made, err := c.Multi(ctx, []Op{CreateEphemeral(path, nil), Set(path, data, 0)})
		if err == nil {
			return made[1].Stat, nil
		}
		if !errors.Is(err, ErrNodeExists) && !(errors.Is(err, ErrConnectionLoss) && ctx.Err() == nil) {
			return Stat{}, err
		}
		r, err := c.One(ctx, Get(path).Watched())
		switch {
		case errors.Is(err, ErrNoNode):
			continue
		case err != nil:
			return Stat{}, err
		case r.Stat.EphemeralOwner == own:
			if string(r.Data) == string(data) {
				return r.Stat, nil
			}
			set, err := c.One(ctx, Set(path, data, r.Stat.Version))
			if err == nil {
				return set.Stat, nil
			}
			if !errors.Is(err, ErrConnectionLoss) && !errors.Is(err, ErrBadVersion) {
				return Stat{}, err
			}
			continue
		case c.wasOurs(r.Stat.EphemeralOwner):
			c.log.WithField("path", path).Info("ZooKeeper: deleting the node of this process's ended session")
			if _, err := c.One(ctx, Delete(path, r.Stat.Version)); err != nil && !errors.Is(err, ErrNoNode) &&
				!errors.Is(err, ErrBadVersion) && !errors.Is(err, ErrConnectionLoss) {
				return Stat{}, err
			}
			continue
		}
		held := &HeldError{Path: path, Owner: r.Stat.EphemeralOwner, Data: r.Data}
		if held.Owner == 0 {
			return Stat{}, held
		}
		if !told {
			told = true
			c.log.WithField("path", path).Warnf("ZooKeeper: the node belongs to session 0x%x; waiting up to %v for that session to end, as after a crash",
				held.Owner, patience)
		}
		if err := awaitDeletion(ctx, events, path, deadline.C, held); err != nil {
			return Stat{}, err
		}
	}
}

// awaitDeletion returns nil when it is worth looking again.
func awaitDeletion(ctx context.Context, events *Subscription, path string, deadline <-chan time.Time, held *HeldError) error {
	for {
		select {
		case e, ok := <-events.C():
			switch {
			case !ok:
				return ErrClosed
			case e.Kind == SessionExpired:
				return ErrSessionExpired
			case e.Kind == Connected, e.Path == path:
				return nil
			}
		case <-deadline:
			return held
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *Client) wasOurs(session int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return session != 0 && slices.Contains(c.mu.past, session)
}
