package controller

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/zkstate"
)

// isrChangesNotified takes up ISR changes that leaders wrote to ZooKeeper themselves (before 2.7-IV2, and by brokers
// that are still configured so): it reads the states, tells every broker, and removes the notifications.
func (c *Core) isrChangesNotified() error {
	names, err := c.children(zkstate.ISRChangeNotificationPath)
	if err != nil || len(names) == 0 {
		return err
	}
	ops := make([]zkstate.Op, len(names))
	for i, name := range names {
		ops[i] = zkstate.Get(zkstate.ISRChangeNotificationPath + "/" + name)
	}
	results, err := c.read(ops...)
	if err != nil {
		return err
	}
	changed := map[TopicPartition]bool{}
	for i, r := range results {
		if r.Err != nil {
			continue
		}
		tps, err := zkstate.DecodeISRChange(r.Data)
		if err != nil {
			c.logf(LogWarn, "%s is not readable; removed: %v", ops[i].Path, err)
			continue
		}
		for _, tp := range tps {
			if known := TopicPartition(tp); c.cluster.partition(known) != nil {
				changed[known] = true
			}
		}
	}
	tps := sortedPartitions(changed)
	if len(tps) > 0 {
		if _, err := c.refreshStates(tps); err != nil {
			return err
		}
		c.tellEverybody(tps...)
		if err := c.dropStrays(tps); err != nil {
			return err
		}
		for _, tp := range tps {
			if err := c.completeIfCaughtUp(tp); err != nil {
				return err
			}
		}
	}
	return c.deleteNodes(zkstate.ISRChangeNotificationPath, names)
}

// isrWish is one partition of an AlterPartition request.
type isrWish struct {
	tp   TopicPartition
	want leadership
	// epochs are the broker epochs that the leader saw of the members, parallel to want.isr; nil before version 3.
	epochs []int64
}

// isrVerdict is what comes of a wish: a leadership to answer with, or an error.
type isrVerdict struct {
	state   leadership
	err     *kerr.Error
	unaware bool // the leader has not heard of the assignment
}

// alterPartition is AlterPartition (api 56, KIP-497): a leader asks for another ISR of partitions that it leads.
func (c *Core) alterPartition(id uint64, req *kmsg.AlterPartitionRequest) error {
	resp := req.ResponseKind().(*kmsg.AlterPartitionResponse)
	if b := c.cluster.brokers[req.BrokerID]; b == nil || b.epoch != req.BrokerEpoch {
		c.logf(LogInfo, "AlterPartition of broker %d with broker epoch %d is refused as stale", req.BrokerID, req.BrokerEpoch)
		resp.ErrorCode = kerr.StaleBrokerEpoch.Code
		c.answer(id, resp)
		return nil
	}
	wishes, unknown := c.wishesOf(req)
	verdicts := map[TopicPartition]isrVerdict{}
	var granted []isrWish
	var unaware []TopicPartition
	var ops []zkstate.Op
	for _, w := range wishes {
		if v, settled := c.judge(req, w); settled {
			verdicts[w.tp] = v
			if v.unaware {
				unaware = append(unaware, w.tp)
			}
			continue
		}
		w.want.controllerEpoch = c.cluster.epoch
		granted = append(granted, w)
		ops = append(ops, zkstate.Set(zkstate.PartitionStatePath(w.tp.Topic, w.tp.Partition), encodeState(w.want), w.want.version))
	}
	results, err := c.write(ops...)
	if err != nil {
		return err
	}
	var stale []TopicPartition
	for i, w := range granted {
		switch {
		case results[i].Err == nil:
			l := w.want
			l.version = results[i].Stat.Version
			c.cluster.partition(w.tp).leadership = &l
			verdicts[w.tp] = isrVerdict{state: l}
		case errors.Is(results[i].Err, zkstate.ErrBadVersion):
			verdicts[w.tp] = isrVerdict{err: kerr.InvalidUpdateVersion}
			stale = append(stale, w.tp)
		default:
			c.logf(LogError, "writing the ISR of %s: %v", w.tp, results[i].Err)
			verdicts[w.tp] = isrVerdict{err: kerr.UnknownServerError}
		}
	}
	if err := c.writtenByOthers(stale); err != nil {
		return err
	}
	if err := c.electAgain(unaware); err != nil {
		return err
	}
	var told []TopicPartition
	for _, w := range wishes {
		if verdicts[w.tp].err == nil {
			told = append(told, w.tp)
		}
	}
	if len(told) > 0 {
		c.tellEverybody(told...)
	}
	resp.Topics = append(unknown, c.verdictTopics(req, verdicts)...)
	c.answer(id, resp)
	for _, w := range wishes {
		if verdicts[w.tp].err == nil {
			if err := c.completeIfCaughtUp(w.tp); err != nil {
				return err
			}
		}
	}
	return nil
}

// writtenByOthers takes up states that somebody wrote behind this controller's back. The leader counts on a version that
// is gone, so that none of its wishes would ever be granted.
func (c *Core) writtenByOthers(tps []TopicPartition) error {
	if len(tps) == 0 {
		return nil
	}
	if _, err := c.refreshStates(tps); err != nil {
		return err
	}
	for _, tp := range tps {
		c.logf(LogWarn, "the state of partition %s was written by somebody else: %s", tp, c.cluster.partition(tp).leadership)
	}
	return c.electAgain(tps)
}

// electAgain elects leaders again, in a new epoch: an order in the leader epoch that they have would teach them nothing.
func (c *Core) electAgain(tps []TopicPartition) error {
	if len(tps) == 0 {
		return nil
	}
	for _, tp := range tps {
		p := c.cluster.partition(tp)
		if replicas := c.cluster.onlineReplicas(tp, p.assignment.replicas); slices.Contains(replicas, p.leadership.leader) {
			l, err := c.writeNoOp(tp)
			if err = c.tolerate(tp, err); err != nil {
				return err
			}
			if l.isr != nil {
				p.leadership = &l
			}
			c.outbox.leaderAndISR(c, replicas, tp, false)
		} else {
			c.outbox.updateMetadata(c, c.cluster.registered(), tp)
		}
	}
	c.outbox.flush(c)
	return nil
}

// wishesOf resolves the topics of a request; since version 2 they are named by id, and ids that nobody knows are
// answered at once.
func (c *Core) wishesOf(req *kmsg.AlterPartitionRequest) (wishes []isrWish, unknown []kmsg.AlterPartitionResponseTopic) {
	for _, t := range req.Topics {
		name := t.Topic
		if req.Version >= 2 {
			var ok bool
			if name, ok = c.cluster.topicNames[t.TopicID]; !ok {
				out := kmsg.AlterPartitionResponseTopic{TopidID: t.TopicID}
				for _, p := range t.Partitions {
					out.Partitions = append(out.Partitions, kmsg.AlterPartitionResponseTopicPartition{
						Partition: p.Partition, ErrorCode: kerr.UnknownTopicID.Code})
				}
				unknown = append(unknown, out)
				continue
			}
		}
		for _, p := range t.Partitions {
			w := isrWish{tp: TopicPartition{name, p.Partition}, want: leadership{leader: req.BrokerID, leaderEpoch: p.LeaderEpoch,
				isr: p.NewISR, recovery: p.LeaderRecoveryState, version: p.PartitionEpoch}}
			if req.Version >= 3 {
				w.want.isr = nil
				for _, member := range p.NewEpochISR {
					w.want.isr = append(w.want.isr, member.BrokerID)
					w.epochs = append(w.epochs, member.BrokerEpoch)
				}
			}
			wishes = append(wishes, w)
		}
	}
	return wishes, unknown
}

// judge settles a wish that is not to be written: it is refused, or fulfilled already. The order of the questions is
// part of the protocol: the error tells the leader what to do next.
func (c *Core) judge(req *kmsg.AlterPartitionRequest, w isrWish) (isrVerdict, bool) {
	refuse := func(e *kerr.Error, why string) (isrVerdict, bool) {
		c.logf(LogInfo, "AlterPartition of broker %d for %s to %s is refused: %s", req.BrokerID, w.tp, w.want, why)
		return isrVerdict{err: e}, true
	}
	p := c.cluster.partition(w.tp)
	if p == nil || p.leadership == nil {
		return refuse(kerr.UnknownTopicOrPartition, "unknown partition")
	}
	now := *p.leadership
	switch {
	case w.want.version > now.version || w.want.leaderEpoch > now.leaderEpoch:
		// The leader knows more than this controller: it may be deposed, and the leader should look for the new one.
		return refuse(kerr.NotController, "the leader is ahead of this controller")
	case w.want.leaderEpoch < now.leaderEpoch:
		return refuse(kerr.FencedLeaderEpoch, "older leader epoch")
	case w.want.sameState(now):
		// Asked again because the answer was lost: the same answer, before the partition epoch is looked at.
		return isrVerdict{state: now}, true
	case w.want.version < now.version:
		return refuse(kerr.InvalidUpdateVersion, "older partition epoch")
	case w.want.leader != now.leader:
		return refuse(kerr.InvalidRequest, "it does not lead the partition")
	case w.want.recovery == recovering && len(w.want.isr) > 1:
		return refuse(kerr.InvalidRequest, "a recovering leader is alone in its ISR")
	case now.recovery == recovered && w.want.recovery == recovering:
		return refuse(kerr.InvalidRequest, "a leader that has recovered cannot become a recovering one")
	case len(w.want.isr) == 0 || !slices.Contains(w.want.isr, now.leader):
		return refuse(kerr.InvalidRequest, "the ISR must have the leader")
	case !subset(w.want.isr, p.assignment.replicas):
		// A former controller wrote the assignment and died before it told the leader, who would ask for the same again and again.
		v, settled := refuse(kerr.InvalidRequest, "the ISR must have nobody who is not a replica")
		v.unaware = true
		return v, settled
	}
	if req.Version == 0 {
		// Kafka 2.7 to 3.1 sends it, whose controllers do not look at who is alive. A leader of 2.8 that gets another error than the ones above
		// sends again from within its callback, finds its own entry still queued, and never changes its ISR again in this leader epoch. A dead
		// member leaves by its leader's lag check, a stopping one when its session ends.
		return isrVerdict{}, false
	}
	for i, member := range w.want.isr {
		// KIP-841 keeps dead and stopping brokers out; KIP-903 those that restarted since the leader saw them fetch.
		ineligible := !c.cluster.alive(member)
		if !ineligible && w.epochs != nil && w.epochs[i] != unknownEpoch {
			ineligible = w.epochs[i] != c.cluster.brokers[member].epoch
		}
		if ineligible && req.Version > 1 {
			return refuse(kerr.IneligibleReplica, "a member is not eligible")
		} else if ineligible {
			return refuse(kerr.OperationNotAttempted, "a member is not eligible")
		}
	}
	return isrVerdict{}, false
}

func (c *Core) verdictTopics(req *kmsg.AlterPartitionRequest, verdicts map[TopicPartition]isrVerdict) []kmsg.AlterPartitionResponseTopic {
	var topics []kmsg.AlterPartitionResponseTopic
	var last string
	for _, tp := range sortedPartitions(verdicts) {
		if len(topics) == 0 || last != tp.Topic {
			last = tp.Topic
			out := kmsg.AlterPartitionResponseTopic{Topic: tp.Topic}
			if t := c.cluster.topics[tp.Topic]; t != nil && req.Version >= 2 {
				out.TopidID = t.id
			}
			topics = append(topics, out)
		}
		t := &topics[len(topics)-1]
		v := verdicts[tp]
		part := kmsg.AlterPartitionResponseTopicPartition{Partition: tp.Partition}
		if v.err != nil {
			part.ErrorCode = v.err.Code
		} else {
			part.LeaderID, part.LeaderEpoch, part.ISR = v.state.leader, v.state.leaderEpoch, v.state.isr
			part.LeaderRecoveryState, part.PartitionEpoch = v.state.recovery, v.state.version
		}
		t.Partitions = append(t.Partitions, part)
	}
	return topics
}
