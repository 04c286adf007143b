package controller

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"barnabas/zkstate"
)

const (
	// electionAttempts bounds how often an election is tried in a row when its outcome is unclear or the epoch moved.
	electionAttempts = 5
	// electionBackoff is how long the core waits before it stands again after giving the controllership up.
	electionBackoff = time.Second
)

func (c *Core) sessionReady(ev SessionReady) error {
	if c.session == ev.Session {
		return nil
	}
	c.session, c.generation = ev.Session, ev.Generation
	return c.standForElection()
}

// standForElection looks at /controller, leaving a watch, and acts on what it finds: it follows the broker that owns it,
// stands for election if nobody does, takes up its duties if this very session owns it (whoever finds his own name there
// and does nothing leaves the cluster without a controller), and resigns if it thought that it was the controller.
func (c *Core) standForElection() error {
	if c.session == 0 {
		return nil
	}
	for attempt := range electionAttempts {
		if attempt > 0 { // an old view, of a server that lags behind, cannot win; but it could lose for ever
			if err := c.sync(); err != nil {
				return err
			}
		}
		owner, err := c.readOwner()
		if err != nil {
			return err
		}
		switch {
		case owner.session == c.session:
			if c.cluster != nil {
				return nil
			}
			if done, err := c.takeOver(owner); done || err != nil {
				return err
			}
		case owner.exists && owner.broker == c.cfg.BrokerID && slices.Contains(c.former, owner.session):
			// A session of this process that ended: ZooKeeper has not noticed yet. Nobody else may use the name.
			c.leaveIfActive()
			if err := c.removeOwner(owner); err != nil {
				return err
			}
		case owner.exists:
			c.leaveIfActive()
			id := owner.broker
			if id == c.cfg.BrokerID {
				id = -1 // a former life of this broker; its node goes when ZooKeeper ends that session, and the watch fires
			}
			c.setStatus(StatusChanged{ControllerID: id})
			return nil
		default:
			c.leaveIfActive()
			c.setStatus(StatusChanged{ControllerID: -1})
			if c.holdOff {
				return nil
			}
			if won, err := c.runForController(); won || err != nil {
				return err
			}
		}
	}
	c.logf(LogWarn, "the election is unsettled after %d attempts; trying again", electionAttempts)
	c.emit(SetTimer{ID: TimerElect, After: electionBackoff})
	return nil
}

func (c *Core) leaveIfActive() {
	if c.cluster != nil {
		c.leave()
	}
}

// owner is what /controller says.
type owner struct {
	exists  bool
	broker  int32
	session int64
	czxid   int64
}

// readOwner reads /controller and leaves a watch. The watch comes first and by itself: a watch left on a missing node
// fires when it is made, one left on a node that is there fires when it goes.
func (c *Core) readOwner() (owner, error) {
	watched, err := c.read(zkstate.Exists(zkstate.ControllerPath).Watched())
	if err != nil {
		return owner{}, err
	}
	if errors.Is(watched[0].Err, zkstate.ErrNoNode) {
		return owner{}, nil
	}
	got, err := c.read(zkstate.Get(zkstate.ControllerPath))
	switch {
	case err != nil:
		return owner{}, err
	case errors.Is(got[0].Err, zkstate.ErrNoNode):
		return owner{}, nil
	case got[0].Err != nil:
		return owner{}, got[0].Err
	}
	node, err := zkstate.DecodeController(got[0].Data)
	if err != nil {
		c.logf(LogError, "/controller is not readable: %v", err)
		node.BrokerID = -1
	}
	return owner{exists: true, broker: node.BrokerID, session: got[0].Stat.EphemeralOwner, czxid: got[0].Stat.Czxid}, nil
}

// runForController makes /controller and raises the epoch in one multi, so that no two controllers share an epoch, and begins the controllership that it won. False means that whether this session
// won is to be read from /controller: which is right also when the answer was lost.
func (c *Core) runForController() (bool, error) {
	read, err := c.read(zkstate.Get(zkstate.ControllerEpochPath))
	if err != nil {
		return false, err
	}
	var ops []zkstate.Op
	epoch := int32(0)
	switch {
	case errors.Is(read[0].Err, zkstate.ErrNoNode): // a new cluster
		ops = append(ops, zkstate.Create(zkstate.ControllerEpochPath, zkstate.EncodeControllerEpoch(epoch)))
	case read[0].Err != nil:
		return false, read[0].Err
	default:
		if epoch, err = zkstate.DecodeControllerEpoch(read[0].Data); err != nil {
			c.emit(SetTimer{ID: TimerElect, After: electionBackoff})
			return false, fmt.Errorf("nobody can be elected: %w", err)
		}
	}
	epoch++
	results, err := c.batch(ZKBatch{Multi: true, Fence: unfenced, Ops: append(ops,
		zkstate.CreateEphemeral(zkstate.ControllerPath, zkstate.Controller{
			Version: controllerNodeVersion, BrokerID: c.cfg.BrokerID, TimestampMs: c.now.UnixMilli(), KRaftEpoch: -1}.Encode()),
		zkstate.Set(zkstate.ControllerEpochPath, zkstate.EncodeControllerEpoch(epoch), read[0].Stat.Version),
	)})
	if errors.Is(err, errAbandoned) || errors.Is(err, errSessionGone) {
		return false, err
	}
	if err != nil {
		c.logf(LogDebug, "election for epoch %d: %v", epoch, err)
		return false, nil
	}
	raised := results[len(results)-1].Stat
	watched, err := c.read(zkstate.Exists(zkstate.ControllerPath).Watched())
	if err != nil || watched[0].Err != nil || watched[0].Stat.Czxid != raised.Mzxid {
		return false, err // removed in between, and perhaps another's by now
	}
	return true, c.lead(epoch, raised.Version)
}

// takeOver begins the controllership that /controller, made by this session, stands for. The epoch belongs to it only if
// both were written by one transaction: /controller may have been removed and another controller elected since it was
// read. False means that it is to be read again.
func (c *Core) takeOver(mine owner) (bool, error) {
	read, err := c.read(zkstate.Get(zkstate.ControllerEpochPath))
	if err != nil {
		return false, err
	}
	if read[0].Err != nil {
		return false, read[0].Err
	}
	if read[0].Stat.Mzxid != mine.czxid {
		// Or the epoch was changed without an election, and nobody can be controller while this /controller stands.
		return false, c.removeOwner(mine)
	}
	epoch, err := zkstate.DecodeControllerEpoch(read[0].Data)
	if err != nil {
		return false, err
	}
	return true, c.lead(epoch, read[0].Stat.Version)
}

// lead begins the controllership of an epoch, whose node has this version.
func (c *Core) lead(epoch, version int32) error {
	c.cluster = newCluster(epoch, version)
	c.setStatus(StatusChanged{ControllerID: c.cfg.BrokerID, Active: true, Epoch: epoch})
	c.logf(LogInfo, "elected as controller of epoch %d", epoch)
	err := c.failover()
	if err == nil || errors.Is(err, errAbandoned) || errors.Is(err, errSessionGone) || errors.Is(err, zkstate.ErrFenced) {
		return err
	}
	return fmt.Errorf("%w: failover: %w", errIllegalState, err)
}

// removeOwner removes a /controller that is left over from this process, and only that one: the epoch is read before
// the owner is looked at again, and an election in between would change it and make the removal fail.
func (c *Core) removeOwner(gone owner) error {
	read, err := c.read(zkstate.Get(zkstate.ControllerEpochPath))
	if err != nil || read[0].Err != nil {
		return err
	}
	if now, err := c.readOwner(); err != nil || now != gone {
		return err
	}
	c.logf(LogWarn, "removing %s, which is left over from this broker", zkstate.ControllerPath)
	_, err = c.batch(ZKBatch{Multi: true, Fence: read[0].Stat.Version,
		Ops: []zkstate.Op{zkstate.Delete(zkstate.ControllerPath, zkstate.AnyVersion)}})
	if errors.Is(err, errAbandoned) || errors.Is(err, errSessionGone) {
		return err
	}
	return nil
}

// giveUp ends the controllership from this side: another broker, or this one after a pause, begins from what ZooKeeper
// says.
func (c *Core) giveUp() error {
	if c.cluster == nil {
		return nil
	}
	fence := c.cluster.epochVersion
	c.leave()
	c.holdOff = true
	c.emit(SetTimer{ID: TimerElect, After: electionBackoff})
	_, err := c.batch(ZKBatch{Multi: true, Fence: fence, Ops: []zkstate.Op{zkstate.Delete(zkstate.ControllerPath, zkstate.AnyVersion)}})
	if errors.Is(err, errAbandoned) || errors.Is(err, errSessionGone) {
		return err
	}
	// Deleted, or another controller's by now: reading says which, and leaves the watch.
	return c.standForElection()
}
