package simulation

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/zkstate"
)

// isrChanges carries out the ISR changes of a broker as the product's shells do: by AlterPartition, one request in
// flight with all that was asked meanwhile, repeated until it is answered; or by writing the state, reading it back
// when the answer is lost.
type isrChanges struct {
	b       *broker
	waiting map[commitlog.TopicPartition]isrItem
	busy    bool
	attempt int
	refused int // the last attempt that was answered with a member that is not eligible
}

type isrItem struct {
	partition.ISRChange
	done func(partition.ISRChanged, error)
}

var noState = partition.ISRChanged{PartitionEpoch: partition.None}

// ChangeISR implements partition.ISRChanger.
func (c *isrChanges) ChangeISR(req partition.ISRChange, done func(partition.ISRChanged, error)) {
	if c.b.n.s.planted("ISR changes are done when they are asked for") {
		now := partition.ISRChanged{LeaderID: req.LeaderID, LeaderEpoch: req.LeaderEpoch, PartitionEpoch: req.PartitionEpoch}
		for _, m := range req.ISR {
			now.ISR = append(now.ISR, m.ID)
		}
		done(now, nil)
		done = func(partition.ISRChanged, error) {}
	}
	if !c.b.n.s.alterPartition {
		c.write(isrItem{req, done})
		return
	}
	earlier, twice := c.waiting[req.TP]
	c.waiting[req.TP] = isrItem{req, done}
	if twice {
		earlier.done(noState, kerr.OperationNotAttempted)
	}
	c.send()
}

func (c *isrChanges) send() {
	if c.busy || len(c.waiting) == 0 {
		return
	}
	n := c.b.n
	c.busy = true
	c.attempt++
	mine := c.attempt
	if c.b.controllerID < 1 {
		n.later(50*time.Millisecond, func() { c.busy = false; c.send() })
		return
	}
	items := make([]isrItem, 0, len(c.waiting))
	for _, i := range c.waiting {
		items = append(items, i)
	}
	clear(c.waiting)
	slices.SortFunc(items, func(a, b isrItem) int {
		return cmp.Or(cmp.Compare(a.TP.Topic, b.TP.Topic), cmp.Compare(a.TP.Partition, b.TP.Partition))
	})
	req := c.request(items)
	failed := func() {
		if n.s.planted("a lost answer is an answer") {
			c.busy = false
			c.send()
			return
		}
		for _, i := range items {
			if _, newer := c.waiting[i.TP]; newer {
				i.done(noState, kerr.OperationNotAttempted)
			} else {
				c.waiting[i.TP] = i
			}
		}
		n.later(50*time.Millisecond, func() { c.busy = false; c.send() })
	}
	call(n, n.s.nodes[c.b.controllerID-1], controlTimeout, func(target *node, answer func(kmsg.Response)) {
		// A connection keeps order and repeats nothing. An attempt that came after the answer that a member is not eligible would
		// make an ISR true that its leader has given up; nothing in the protocol could tell, and Kafka's leaders, too, go on.
		if mine <= c.refused {
			return
		}
		target.ask(overTheWire(req), answer)
	}, func(resp kmsg.Response) {
		if c.attempt != mine {
			return
		}
		r, ok := resp.(*kmsg.AlterPartitionResponse)
		if !ok || r.ErrorCode != 0 {
			failed()
			return
		}
		c.busy = false
		if refusesMembers(r) {
			c.refused = mine
		}
		c.answered(items, r)
		c.send()
		c.b.afterwards()
	})
}

func refusesMembers(r *kmsg.AlterPartitionResponse) bool {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode == kerr.IneligibleReplica.Code {
				return true
			}
		}
	}
	return false
}

func (c *isrChanges) request(items []isrItem) *kmsg.AlterPartitionRequest {
	req := kmsg.NewPtrAlterPartitionRequest()
	req.Version = c.b.n.s.alterPartitionVersion
	req.BrokerID, req.BrokerEpoch = c.b.n.id, c.b.epoch
	for _, i := range items {
		if i.TopicID.IsZero() {
			req.Version = min(req.Version, 1)
		}
		p := kmsg.NewAlterPartitionRequestTopicPartition()
		p.Partition, p.LeaderEpoch, p.PartitionEpoch = i.TP.Partition, i.LeaderEpoch, i.PartitionEpoch
		if i.Recovering {
			p.LeaderRecoveryState = 1
		}
		for _, m := range i.ISR {
			p.NewISR = append(p.NewISR, m.ID)
			p.NewEpochISR = append(p.NewEpochISR, kmsg.AlterPartitionRequestTopicPartitionNewEpochISR{BrokerID: m.ID, BrokerEpoch: m.BrokerEpoch})
		}
		req.Topics = append(req.Topics, kmsg.AlterPartitionRequestTopic{Topic: i.TP.Topic, TopicID: i.TopicID,
			Partitions: []kmsg.AlterPartitionRequestTopicPartition{p}})
	}
	return req
}

func (c *isrChanges) answered(items []isrItem, resp *kmsg.AlterPartitionResponse) {
	for _, i := range items {
		found := false
		for _, t := range resp.Topics {
			if t.Topic != i.TP.Topic && (i.TopicID.IsZero() || t.TopidID != i.TopicID) {
				continue
			}
			for _, p := range t.Partitions {
				if p.Partition != i.TP.Partition || found {
					continue
				}
				found = true
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					i.done(noState, err)
					continue
				}
				i.done(partition.ISRChanged{LeaderID: p.LeaderID, LeaderEpoch: p.LeaderEpoch, ISR: p.ISR, PartitionEpoch: p.PartitionEpoch, Recovering: p.LeaderRecoveryState == 1}, nil)
			}
		}
		if !found {
			i.done(noState, kerr.UnknownServerError)
		}
	}
}

// write is how a leader changes the ISR before AlterPartition: it writes the state itself, and notifies.
func (c *isrChanges) write(i isrItem) {
	n := c.b.n
	path := zkstate.PartitionStatePath(i.TP.Topic, i.TP.Partition)
	want := zkstate.PartitionState{Leader: i.LeaderID, LeaderEpoch: i.LeaderEpoch, ControllerEpoch: i.ControllerEpoch}
	for _, m := range i.ISR {
		want.ISR = append(want.ISR, m.ID)
	}
	done := func(got partition.ISRChanged, err error) {
		i.done(got, err)
		c.b.afterwards()
	}
	written := func(version int32) {
		n.notifyISR(zkstate.EncodeISRChange([]zkstate.TopicPartition{{Topic: i.TP.Topic, Partition: i.TP.Partition}}))
		done(partition.ISRChanged{LeaderID: want.Leader, LeaderEpoch: want.LeaderEpoch, ISR: want.ISR, PartitionEpoch: version}, nil)
	}
	n.zk.submit(&unit{ops: []zkstate.Op{zkstate.Set(path, want.Encode(), i.PartitionEpoch)}, done: func(rs []zkstate.Result, err error) {
		if err == nil && rs[0].Err != nil {
			err = rs[0].Err
		}
		switch {
		case err == nil:
			written(rs[0].Stat.Version)
			return
		case n.s.planted("a lost answer is an answer"):
			return
		case !errors.Is(err, zkstate.ErrBadVersion) && !errors.Is(err, zkstate.ErrConnectionLoss):
			done(noState, err)
			return
		}
		n.zk.submit(&unit{ops: []zkstate.Op{zkstate.Get(path)}, done: func(rs []zkstate.Result, err error) {
			if err == nil && rs[0].Err != nil {
				err = rs[0].Err
			}
			if err != nil {
				done(noState, err)
				return
			}
			state, err := zkstate.DecodePartitionState(rs[0].Data)
			switch {
			case err != nil:
				done(noState, err)
			case state.LeaderEpoch != want.LeaderEpoch || state.Leader != want.Leader:
				done(noState, kerr.FencedLeaderEpoch)
			case n.s.planted("the state of before is taken for the outcome") && rs[0].Stat.Version == i.PartitionEpoch:
				done(noState, kerr.OperationNotAttempted)
			case !slices.Equal(state.ISR, want.ISR):
				done(partition.ISRChanged{LeaderID: state.Leader, LeaderEpoch: state.LeaderEpoch, ISR: state.ISR, PartitionEpoch: rs[0].Stat.Version}, kerr.InvalidUpdateVersion)
			default:
				written(rs[0].Stat.Version)
			}
		}})
	}})
}

// notifyISR tells the controller of a written ISR, again and again until it is certain.
func (n *node) notifyISR(note []byte) {
	n.zk.submit(&unit{ops: []zkstate.Op{zkstate.CreateSequential(zkstate.ISRChangeNotificationPath+"/isr_change_", note)},
		done: func(_ []zkstate.Result, err error) {
			if err != nil && !errors.Is(err, zkstate.ErrSessionExpired) {
				n.later(100*time.Millisecond, func() { n.notifyISR(note) })
			} else if err != nil {
				n.later(time.Second, func() { n.notifyISR(note) })
			}
		}})
}

// notifyDirs tells the controller of a directory that failed or came back.
func (n *node) notifyDirs() {
	n.zk.submit(&unit{ops: []zkstate.Op{zkstate.CreateSequential(zkstate.LogDirEventNotificationPath+"/log_dir_event_", zkstate.EncodeLogDirEvent(n.id))},
		done: func(_ []zkstate.Result, err error) {
			if err != nil {
				n.later(time.Second, n.notifyDirs)
			}
		}})
}

// call asks another node something over the network. answered is called once while this incarnation lives: with the
// answer, or with none when the time is over.
func call[R any](n, target *node, timeout time.Duration, do func(*node, func(R)), answered func(R)) {
	life, over := n.life, false
	finish := func(r R) {
		if !over && n.life == life {
			over = true
			answered(r)
		}
	}
	n.s.net(n, target, func() {
		do(target, func(r R) { n.s.net(target, n, func() { finish(r) }) })
	})
	n.later(timeout, func() {
		var none R
		finish(none)
	})
}
