package simulation

import (
	"barnabas/broker/group"
	"barnabas/broker/txn"
)

// join takes the guard away that tells a member by its instance id.
func (p plants) join(req *group.JoinRequest) {
	if p.name == "instance ids are not compared" {
		req.InstanceID = nil
	}
}

// commit lets commits of the past through: as if the member's generation were the present one.
func (p plants) commit(c *club, req *group.CommitRequest) {
	switch {
	case p.name == "offsets of a transaction without their generation" && req.Producer != nil:
		req.Generation, req.MemberID, req.InstanceID = group.NoGeneration, "", nil
	case p.name == "generations of commits are not compared":
		for _, m := range c.members {
			if m.coordinator != nil && m.generation > req.Generation {
				req.Generation, req.MemberID, req.InstanceID = m.generation, m.id, m.instance
			}
		}
	}
}

// producer lets a fenced producer go on: with the epoch of its successor.
func (p plants) producer(id string, producer *txn.Producer) {
	if p.name == "epochs of transactional producers are not compared" {
		*producer = p.s.deeds.newest[id]
	}
}
