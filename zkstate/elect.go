package zkstate

import (
	"context"
	"errors"
	"fmt"
)

// Election is how an election ended.
type Election struct {
	Won          bool
	ControllerID int32 // who is the controller: the one asking when it won
	Epoch        int32 // the controller epoch; only when won
	EpochVersion int32 // ZooKeeper's version of ControllerEpochPath, for Client.FenceIn; only when won
	Generation   int   // the session in which it was won
}

// Elect tries to become the controller. Creating /controller and raising /controller_epoch are one multi (KAFKA-6082),
// so no two controllers ever have one epoch, and a crash in between leaves nothing half done. When the answer of the
// multi is lost, or /controller already names a live session of ours, the two nodes say how it ended: who owns
// /controller made the last epoch. The register node's timestamp is nowMs.
func (c *Client) Elect(ctx context.Context, broker int32, nowMs int64) (Election, error) {
	g, err := c.generationOf(ctx)
	if err != nil {
		return Election{}, err
	}
	ctx = WithGeneration(ctx, g.number)
	if err := g.wait(ctx); err != nil {
		return Election{}, err
	}
	for {
		// The server of this session may lag behind; a decision must not rest on an old view.
		if _, err := c.One(ctx, Sync(ControllerEpochPath)); err != nil && !errors.Is(err, ErrNoNode) {
			return Election{}, err
		}
		found, e, err := c.sittingController(ctx, g)
		if err != nil || found {
			return e, err
		}
		epoch, version, err := c.controllerEpoch(ctx)
		if err != nil {
			return Election{}, err
		}
		node := Controller{Version: 2, BrokerID: broker, TimestampMs: nowMs, KRaftEpoch: -1}
		rs, err := c.Multi(ctx, []Op{
			CreateEphemeral(ControllerPath, node.Encode()),
			Set(ControllerEpochPath, EncodeControllerEpoch(epoch+1), version),
		})
		switch {
		case err == nil:
			return Election{Won: true, ControllerID: broker, Epoch: epoch + 1, EpochVersion: rs[1].Stat.Version, Generation: g.number}, nil
		case errors.Is(err, ErrNodeExists), errors.Is(err, ErrBadVersion), errors.Is(err, ErrConnectionLoss) && ctx.Err() == nil:
		default:
			return Election{}, fmt.Errorf("electing the controller: %w", err)
		}
	}
}

// sittingController tells who is the controller, if anybody is.
func (c *Client) sittingController(ctx context.Context, g *generation) (found bool, e Election, err error) {
	r, err := c.One(ctx, Get(ControllerPath))
	if errors.Is(err, ErrNoNode) {
		return false, e, nil
	}
	if err != nil {
		return false, e, err
	}
	node, err := DecodeController(r.Data)
	if err != nil {
		return false, e, err
	}
	e = Election{ControllerID: node.BrokerID}
	if r.Stat.EphemeralOwner != g.sessionID() {
		return true, e, nil
	}
	// The node is ours. As long as it stands nobody else can raise the epoch, since that takes the node.
	epoch, err := c.One(ctx, Get(ControllerEpochPath))
	if err != nil {
		return false, e, err
	}
	e.Won, e.EpochVersion, e.Generation = true, epoch.Stat.Version, g.number
	e.Epoch, err = DecodeControllerEpoch(epoch.Data)
	return true, e, err
}

// controllerEpoch is the epoch and its version; the node is made with 0 in a new cluster.
func (c *Client) controllerEpoch(ctx context.Context) (epoch, version int32, err error) {
	for {
		r, err := c.One(ctx, Get(ControllerEpochPath))
		if err == nil {
			epoch, err = DecodeControllerEpoch(r.Data)
			return epoch, r.Stat.Version, err
		}
		if !errors.Is(err, ErrNoNode) {
			return 0, 0, err
		}
		if err := c.CreateRecursive(ctx, ControllerEpochPath, EncodeControllerEpoch(0)); err != nil {
			return 0, 0, err
		}
	}
}

// ControllerID is who is the controller now; ErrNoNode when nobody is.
func (c *Client) ControllerID(ctx context.Context) (int32, error) {
	r, err := c.One(ctx, Get(ControllerPath))
	if err != nil {
		return -1, err
	}
	node, err := DecodeController(r.Data)
	return node.BrokerID, err
}
