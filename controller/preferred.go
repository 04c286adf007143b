package controller

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/zkstate"
)

// Giving the leadership to the first replica of the assignment, on demand (the node /admin/preferred_replica_election,
// the API ElectLeaders) or when too many partitions of a broker are led by others (leader.imbalance.*). ElectLeaders can
// also ask for an unclean election.

func (c *Core) resumePreferredElections() error { return c.preferredElectionNodeChanged() }

// preferredElectionNodeChanged carries out what the node asks for and removes it, leaving a watch for the next one.
func (c *Core) preferredElectionNodeChanged() error {
	if _, err := c.read(zkstate.Exists(zkstate.PreferredReplicaElectionPath).Watched()); err != nil {
		return err
	}
	results, err := c.read(zkstate.Get(zkstate.PreferredReplicaElectionPath))
	switch {
	case err != nil:
		return err
	case errors.Is(results[0].Err, zkstate.ErrNoNode):
		return nil
	case results[0].Err != nil:
		return results[0].Err
	}
	asked, err := zkstate.DecodePreferredReplicaElection(results[0].Data)
	if err != nil {
		c.logf(LogError, "%s is not readable and will be removed: %v", zkstate.PreferredReplicaElectionPath, err)
	}
	var tps []TopicPartition
	for _, tp := range asked {
		known := TopicPartition(tp)
		if c.electable(known) == nil && !c.preferredLeads(known) && !slices.Contains(tps, known) {
			tps = append(tps, known)
		}
	}
	if _, err := c.bringOnline(tps, forPreferred); err != nil {
		return err
	}
	if _, err := c.write(zkstate.Delete(zkstate.PreferredReplicaElectionPath, zkstate.AnyVersion)); err != nil {
		return err
	}
	c.enqueue(look{zkstate.PreferredReplicaElectionPath})
	return nil
}

// electable tells why no election can be held for a partition, or nil.
func (c *Core) electable(tp TopicPartition) *fault {
	switch p := c.cluster.partition(tp); {
	case p == nil || p.leadership == nil:
		return noPartition
	case c.cluster.queuedForDeletion(tp.Topic):
		return &fault{kerr.InvalidTopicException.Code, "The topic is being deleted"}
	}
	return nil
}

func (c *Core) preferredLeads(tp TopicPartition) bool {
	p := c.cluster.partition(tp)
	return p.leadership != nil && len(p.assignment.replicas) > 0 && p.leadership.leader == p.assignment.replicas[0]
}

// The election types of ElectLeaders (KIP-460).
const (
	electPreferredType int8 = 0
	electUncleanType   int8 = 1
)

// electLeaders is ElectLeaders (api 43).
func (c *Core) electLeaders(id uint64, req *kmsg.ElectLeadersRequest) error {
	resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
	s, failure := forPreferred, kerr.PreferredLeaderNotAvailable
	switch req.ElectionType {
	case electPreferredType:
	case electUncleanType:
		s, failure = forOfflineUnclean, kerr.EligibleLeadersNotAvailable
	default:
		c.answer(id, refusal(req, kerr.InvalidRequest))
		return nil
	}
	faults := map[TopicPartition]*fault{}
	var electing []TopicPartition
	for _, tp := range c.namedForElection(req) {
		faults[tp] = c.electable(tp)
		if faults[tp] != nil {
			continue
		}
		if c.electionNeeded(tp, s) {
			electing = append(electing, tp)
		} else {
			faults[tp] = &fault{kerr.ElectionNotNeeded.Code, kerr.ElectionNotNeeded.Description + "."} // as Kafka words it
		}
	}
	outcomes, err := c.bringOnline(electing, s)
	if err != nil {
		return err
	}
	for _, tp := range electing {
		if outcome, held := outcomes[tp]; !held || outcome != nil {
			faults[tp] = &fault{failure.Code, "Failed to elect leader for partition " + tp.String() + " under strategy " + kafkaStrategies[s]}
		}
	}
	for _, tp := range sortedPartitions(faults) {
		failed := faults[tp]
		if req.Topics == nil && failed != nil && failed.code == kerr.ElectionNotNeeded.Code {
			continue // asked for all: those that needed nothing are left out
		}
		if n := len(resp.Topics); n == 0 || resp.Topics[n-1].Topic != tp.Topic {
			resp.Topics = append(resp.Topics, kmsg.ElectLeadersResponseTopic{Topic: tp.Topic})
		}
		t := &resp.Topics[len(resp.Topics)-1]
		part := kmsg.ElectLeadersResponseTopicPartition{Partition: tp.Partition}
		if failed != nil {
			part.ErrorCode, part.ErrorMessage = failed.code, &failed.text
		}
		t.Partitions = append(t.Partitions, part)
	}
	c.answer(id, resp)
	return nil
}

func (c *Core) namedForElection(req *kmsg.ElectLeadersRequest) []TopicPartition {
	if req.Topics == nil {
		return c.cluster.partitionsWhere(func(TopicPartition, *topic, *partition) bool { return true })
	}
	named := map[TopicPartition]bool{}
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			named[TopicPartition{t.Topic, p}] = true
		}
	}
	return sortedPartitions(named)
}

func (c *Core) electionNeeded(tp TopicPartition, s strategy) bool {
	if s == forPreferred {
		return !c.preferredLeads(tp)
	}
	leader := c.cluster.partition(tp).leadership.leader
	return leader == noLeader || !c.cluster.alive(leader)
}

// rebalanceLeaders elects preferred leaders for every broker that leads too few of the partitions of which it is the
// first replica, where it can win.
func (c *Core) rebalanceLeaders() error {
	c.emit(SetTimer{ID: TimerRebalance, After: c.cfg.RebalanceInterval})
	preferred := map[int32][]TopicPartition{}
	c.cluster.each(func(tp TopicPartition, t *topic, p *partition) {
		if !t.queuedForDeletion && len(p.assignment.replicas) > 0 {
			preferred[p.assignment.replicas[0]] = append(preferred[p.assignment.replicas[0]], tp)
		}
	})
	for _, id := range sortedKeys(preferred) {
		led := 0
		var candidates []TopicPartition
		for _, tp := range preferred[id] {
			p := c.cluster.partition(tp)
			if p.leadership == nil || p.leadership.leader == id {
				led++
				continue
			}
			if c.cluster.online(id, tp) && slices.Contains(p.leadership.isr, id) {
				candidates = append(candidates, tp)
			}
		}
		others, all := len(preferred[id])-led, len(preferred[id])
		if others*100 <= c.cfg.RebalancePercent*all || len(candidates) == 0 {
			continue
		}
		c.logf(LogInfo, "broker %d leads %d of the %d partitions that prefer it; electing it for %d", id, led, all, len(candidates))
		if _, err := c.bringOnline(candidates, forPreferred); err != nil {
			return err
		}
	}
	return nil
}
