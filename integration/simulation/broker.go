package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/controller"
	"barnabas/zkstate"
)

// broker is a model of a broker's side of the control plane: the epochs that it holds, the replicas that it hosts, the
// metadata that it was told, and as leader its wishes for the ISR. It keeps no records: a follower is in sync when it
// follows the leader in its epoch and can be reached.
type broker struct {
	n               *node
	epoch           int64 // 0 until registered
	told            int64 // the newest broker epoch heard of
	controllerEpoch int32
	hosted          map[controller.TopicPartition]*hosted
	metadata        map[controller.TopicPartition]kmsg.UpdateMetadataRequestTopicPartition
	controllerID    int32
	// lastTaken is, by node, the place of the last request taken of it.
	lastTaken map[int32]int
}

// hosted is one replica as this broker knows it.
type hosted struct {
	topicID                      controller.TopicID
	leader, leaderEpoch, zkEpoch int32
	isr, replicas                []int32
	recovery                     int8
	// wish is the ISR that was asked for and not answered; it is asked for until it is.
	wish   []int32
	asking bool
	seen   map[int32]time.Duration // when each follower last followed
}

func newBroker(n *node) *broker {
	return &broker{n: n, hosted: map[controller.TopicPartition]*hosted{}, controllerID: -1, lastTaken: map[int32]int{},
		metadata: map[controller.TopicPartition]kmsg.UpdateMetadataRequestTopicPartition{}}
}

// newEpoch takes up a newer broker epoch, from its own registration or from an order that came before the broker knew
// it. What it was told in its former registration may be old, and nobody will correct it: it is told everything again.
func (b *broker) newEpoch(epoch int64) {
	if epoch > b.told {
		b.told = epoch
		clear(b.metadata)
	}
}

// stale says why a control request is refused as a whole, or 0.
func (b *broker) stale(controllerEpoch int32, brokerEpoch int64) int16 {
	switch {
	case controllerEpoch < b.controllerEpoch && !b.n.s.sabotage.ignoreControllerEpoch:
		return kerr.StaleControllerEpoch.Code
	case brokerEpoch < b.told && !b.n.s.sabotage.ignoreBrokerEpoch:
		return kerr.StaleBrokerEpoch.Code
	}
	b.n.s.check(controllerEpoch >= b.controllerEpoch, "H25: broker %d obeys controller epoch %d after %d", b.n.id, controllerEpoch, b.controllerEpoch)
	b.n.s.check(brokerEpoch >= b.epoch, "H26: broker %d of epoch %d obeys an order for epoch %d", b.n.id, b.epoch, brokerEpoch)
	b.controllerEpoch = controllerEpoch
	b.newEpoch(brokerEpoch)
	return 0
}

// take handles a control request; nil means that the broker does not listen yet.
func (b *broker) take(req kmsg.Request) kmsg.Response {
	if b.epoch == 0 {
		return nil
	}
	switch req := req.(type) {
	case *kmsg.LeaderAndISRRequest:
		return b.leaderAndISR(req)
	case *kmsg.StopReplicaRequest:
		return b.stopReplica(req)
	case *kmsg.UpdateMetadataRequest:
		return b.updateMetadata(req)
	}
	return nil
}

func (b *broker) leaderAndISR(req *kmsg.LeaderAndISRRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.LeaderAndISRResponse)
	if resp.ErrorCode = b.stale(req.ControllerEpoch, req.BrokerEpoch); resp.ErrorCode != 0 {
		return resp
	}
	for _, t := range req.TopicStates {
		out := kmsg.LeaderAndISRResponseTopic{TopicID: t.TopicID}
		for _, p := range t.PartitionStates {
			code := b.becomeReplica(controller.TopicPartition{Topic: t.Topic, Partition: p.Partition}, t.TopicID, p)
			part := kmsg.LeaderAndISRResponseTopicPartition{Topic: t.Topic, Partition: p.Partition, ErrorCode: code}
			out.Partitions = append(out.Partitions, part)
			resp.Partitions = append(resp.Partitions, part)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

func (b *broker) becomeReplica(tp controller.TopicPartition, id controller.TopicID, p kmsg.LeaderAndISRRequestTopicPartition) int16 {
	now := b.hosted[tp]
	if now != nil && id != (controller.TopicID{}) && now.topicID != id {
		now = nil // another topic of this name: the old log is set aside
	}
	switch {
	case !slices.Contains(p.Replicas, b.n.id):
		return kerr.UnknownTopicOrPartition.Code
	case now != nil && p.LeaderEpoch < now.leaderEpoch:
		return kerr.StaleControllerEpoch.Code
	case now != nil && p.LeaderEpoch == now.leaderEpoch:
		return 0
	}
	b.hosted[tp] = &hosted{topicID: id, leader: p.Leader, leaderEpoch: p.LeaderEpoch, zkEpoch: p.ZKVersion, isr: p.ISR, replicas: p.Replicas,
		recovery: p.LeaderRecoveryState, seen: map[int32]time.Duration{}}
	b.n.disk[tp] = id
	if p.Leader == b.n.id {
		b.n.s.ledBy(tp, id, p.LeaderEpoch, b.n.id)
	}
	return 0
}

func (b *broker) stopReplica(req *kmsg.StopReplicaRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.StopReplicaResponse)
	if resp.ErrorCode = b.stale(req.ControllerEpoch, req.BrokerEpoch); resp.ErrorCode != 0 {
		return resp
	}
	stop := func(tp controller.TopicPartition, epoch int32, deleteIt bool) {
		part := kmsg.StopReplicaResponsePartition{Topic: tp.Topic, Partition: tp.Partition}
		now := b.hosted[tp]
		if now != nil && epoch >= 0 && epoch < now.leaderEpoch && !b.n.s.sabotage.ignoreStopEpoch {
			part.ErrorCode = kerr.FencedLeaderEpoch.Code
		} else {
			if deleteIt {
				b.n.s.deletes(b.n, tp, now)
				delete(b.n.disk, tp)
			}
			delete(b.hosted, tp)
		}
		resp.Partitions = append(resp.Partitions, part)
	}
	for _, t := range req.Topics {
		for _, p := range t.PartitionStates {
			stop(controller.TopicPartition{Topic: t.Topic, Partition: p.Partition}, p.LeaderEpoch, p.Delete)
		}
		if req.Version < 3 {
			for _, p := range t.Partitions {
				stop(controller.TopicPartition{Topic: t.Topic, Partition: p}, -1, req.DeletePartitions)
			}
		}
	}
	return resp
}

func (b *broker) updateMetadata(req *kmsg.UpdateMetadataRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.UpdateMetadataResponse)
	if resp.ErrorCode = b.stale(req.ControllerEpoch, req.BrokerEpoch); resp.ErrorCode != 0 {
		return resp
	}
	b.controllerID = req.ControllerID
	for _, t := range req.TopicStates {
		for _, p := range t.PartitionStates {
			tp := controller.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			if p.Leader == -2 {
				delete(b.metadata, tp)
			} else {
				b.metadata[tp] = p
			}
		}
	}
	return resp
}

const (
	tickEvery = 150 * time.Millisecond
	lagMax    = 600 * time.Millisecond
)

// tick lets a broker do what it does from time to time.
func (n *node) tick() {
	n.later(n.s.w.between(tickEvery/2, tickEvery), n.tick)
	if n.broker.epoch == 0 {
		return
	}
	for _, tp := range sortedHosted(n.broker.hosted) {
		if h := n.broker.hosted[tp]; h.leader == n.id && !h.asking {
			n.broker.reviewISR(tp, h)
		}
	}
}

// reviewISR asks for another ISR when followers have caught up or fallen behind.
func (b *broker) reviewISR(tp controller.TopicPartition, h *hosted) {
	want := h.wish
	if want == nil {
		want = b.wantedISR(tp, h)
	}
	if slices.Equal(want, h.isr) {
		return
	}
	h.asking = true
	b.n.later(2*controlTimeout, func() { h.asking = false })
	if b.n.s.alterPartition {
		h.wish = want
		b.askController(tp, h, want)
	} else {
		b.writeISR(tp, h, want)
	}
}

func (b *broker) wantedISR(tp controller.TopicPartition, h *hosted) []int32 {
	want := []int32{}
	for _, id := range h.isr {
		if id == b.n.id || b.followed(tp, h, id) || b.n.s.w.now-h.seen[id] < lagMax && h.seen[id] > 0 {
			want = append(want, id)
		} else if h.seen[id] == 0 {
			h.seen[id] = b.n.s.w.now
			want = append(want, id)
		}
	}
	for _, id := range h.replicas {
		if !slices.Contains(want, id) && !slices.Contains(h.isr, id) && b.followed(tp, h, id) {
			want = append(want, id)
		}
	}
	return want
}

// followed tells whether a follower fetches from this leader in this epoch right now.
func (b *broker) followed(tp controller.TopicPartition, h *hosted, id int32) bool {
	f := b.n.s.nodes[id-1]
	if !f.up || f.paused || f.broker.epoch == 0 || b.n.s.isCut(b.n, f) {
		return false
	}
	theirs := f.broker.hosted[tp]
	if theirs == nil || theirs.leader != b.n.id || theirs.leaderEpoch != h.leaderEpoch || theirs.topicID != h.topicID {
		return false
	}
	h.seen[id] = b.n.s.w.now
	return true
}

// askController sends AlterPartition to the broker that was last heard of as controller.
func (b *broker) askController(tp controller.TopicPartition, h *hosted, want []int32) {
	if b.controllerID < 1 {
		return
	}
	req := kmsg.NewPtrAlterPartitionRequest()
	req.Version = b.n.s.alterPartitionVersion
	req.BrokerID, req.BrokerEpoch = b.n.id, b.epoch
	p := kmsg.NewAlterPartitionRequestTopicPartition()
	p.Partition, p.LeaderEpoch, p.PartitionEpoch, p.NewISR, p.LeaderRecoveryState = tp.Partition, h.leaderEpoch, h.zkEpoch, want, h.recovery
	for _, id := range want {
		p.NewEpochISR = append(p.NewEpochISR, kmsg.AlterPartitionRequestTopicPartitionNewEpochISR{BrokerID: id, BrokerEpoch: b.n.s.nodes[id-1].broker.epoch})
	}
	req.Topics = []kmsg.AlterPartitionRequestTopic{{Topic: tp.Topic, TopicID: h.topicID, Partitions: []kmsg.AlterPartitionRequestTopicPartition{p}}}
	target, life := b.n.s.nodes[b.controllerID-1], b.n.life
	b.n.s.net(b.n, target, func() {
		target.ask(overTheWire(req), func(resp kmsg.Response) {
			b.n.s.net(target, b.n, func() {
				if b.n.life == life {
					b.answered(tp, h, resp.(*kmsg.AlterPartitionResponse))
				}
			})
		})
	})
}

func (b *broker) answered(tp controller.TopicPartition, h *hosted, resp *kmsg.AlterPartitionResponse) {
	h.asking = false
	if resp.ErrorCode != 0 || b.hosted[tp] != h {
		return
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != kerr.NotController.Code {
				h.wish = nil
			}
			if p.ErrorCode == 0 && p.LeaderEpoch == h.leaderEpoch && p.PartitionEpoch > h.zkEpoch {
				h.isr, h.zkEpoch = p.ISR, p.PartitionEpoch
			}
		}
	}
}

// writeISR is how a leader changes the ISR before AlterPartition: it writes the state itself, and notifies.
func (b *broker) writeISR(tp controller.TopicPartition, h *hosted, want []int32) {
	path := zkstate.PartitionStatePath(tp.Topic, tp.Partition)
	b.n.zk.submit(&unit{ops: []zkstate.Op{zkstate.Get(path)}, done: func(rs []zkstate.Result, err error) {
		if err != nil || rs[0].Err != nil || b.hosted[tp] != h {
			h.asking = false
			return
		}
		state, err := zkstate.DecodePartitionState(rs[0].Data)
		if err != nil || state.Leader != b.n.id || state.LeaderEpoch != h.leaderEpoch {
			h.asking = false
			return
		}
		state.ISR = want
		version := rs[0].Stat.Version
		if h.zkEpoch != version {
			// Written since, by this leader with a lost answer or by somebody else: take over what stands there.
			h.zkEpoch = version
			if before, err := zkstate.DecodePartitionState(rs[0].Data); err == nil {
				h.isr = before.ISR
			}
			h.asking = false
			b.n.notifyISR(zkstate.EncodeISRChange([]zkstate.TopicPartition{zkstate.TopicPartition(tp)})) // or nobody would learn of it
			return
		}
		b.n.zk.submit(&unit{ops: []zkstate.Op{zkstate.Set(path, state.Encode(), version)}, done: func(rs []zkstate.Result, err error) {
			h.asking = false
			if errors.Is(err, zkstate.ErrConnectionLoss) || err != nil || rs[0].Err != nil || b.hosted[tp] != h {
				return
			}
			h.isr, h.zkEpoch = want, rs[0].Stat.Version
			note := zkstate.EncodeISRChange([]zkstate.TopicPartition{zkstate.TopicPartition(tp)})
			b.n.notifyISR(note)
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
