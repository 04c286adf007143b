package controller

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Who may lead without having been in sync. Of a member of the ISR it is known that it has the records; of a replica that
// is being added not even that it has a log. Its broker may still have before it the order to delete what it had of an
// earlier assignment, and would delete it as the leader that it was elected as in the meantime (H27). After a failover the
// same holds of a replica that is being removed: the former controller may have ordered it deleted.
//
// So such a replica is awaited: it is no candidate of an unclean election until its broker has answered an order
// (LeaderAndIsr) that this controller sent since. Requests to a broker are answered in their order, and a broker that took
// this one refuses what is older, by controller epoch and leader epoch. Nothing is lost by waiting, since the replica
// could not lead before it has taken that order. Apache Kafka's controller does not wait.

// await makes replicas wait for an answer to an order of this leader epoch or a later one.
func (p *partition) await(ids []int32, leaderEpoch int32) {
	for _, id := range ids {
		if p.awaited == nil {
			p.awaited = map[int32]int32{}
		}
		p.awaited[id] = leaderEpoch
	}
}

// awaitAfterFailover awaits whom the former controller may have ordered to delete.
func (p *partition) awaitAfterFailover() {
	if p.leadership != nil {
		p.await(p.assignment.adding, p.leadership.leaderEpoch)
		p.await(p.assignment.removing, p.leadership.leaderEpoch)
	}
}

// nobodyYet is the outcome of an unclean election that found nobody. If there is an awaited replica, its answer brings another.
func (c *Core) nobodyYet(tp TopicPartition) error {
	p := c.cluster.partition(tp)
	online := c.cluster.onlineReplicas(tp, sortedKeys(p.awaited))
	if len(online) == 0 {
		return errNoLeader
	}
	p.electionDue = true
	return fmt.Errorf("%w before brokers %v have confirmed that they have it", errNoLeader, online)
}

// awaitedAnswered takes in whom a broker's answer makes a candidate, and elects where only that was missing.
func (c *Core) awaitedAnswered(id int32, req *kmsg.LeaderAndISRRequest, resp *kmsg.LeaderAndISRResponse) error {
	if req.ControllerEpoch != c.cluster.epoch {
		return nil
	}
	var told map[TopicPartition]int32
	var due []TopicPartition
	for _, answered := range leaderAndISRErrors(c, resp) {
		p := c.cluster.partition(answered.tp)
		if p == nil || answered.code != 0 && answered.code != kerr.StaleControllerEpoch.Code {
			continue
		}
		since, awaited := p.awaited[id]
		if !awaited {
			continue
		}
		if told == nil {
			told = leaderEpochsTold(req)
		}
		if epoch, named := told[answered.tp]; !named || epoch < since {
			continue
		}
		delete(p.awaited, id)
		if p.electionDue && !c.cluster.dying(answered.tp.Topic) && !c.cluster.online(p.leadership.leader, answered.tp) {
			due = append(due, answered.tp)
		}
	}
	if len(due) == 0 {
		return nil
	}
	slices.SortFunc(due, comparePartitions)
	_, err := c.bringOnline(due, forOffline)
	return err
}
