package simulation

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/controller"
)

// broker is one incarnation of a broker: the partitions, logs and fetchers of the product over the node's disk, and
// models of what lies between them and the wire.
type broker struct {
	n            *node
	epoch        int64 // 0 until registered
	told         int64 // the newest broker epoch heard of
	obeyed       int32 // the newest controller epoch of what was carried out
	metadata     map[controller.TopicPartition]kmsg.UpdateMetadataRequestTopicPartition
	names        map[commitlog.TopicID]string
	controllerID int32
	// lastTaken is, by node, the place of the last request taken of it.
	lastTaken map[int32]int

	logs         *commitlog.Driven
	replicas     partition.Driven
	follows      map[int32]*following // by leader
	coordinators *coordinators
	isr          *isrChanges
	flushing     bool
	failed       bool // the directory failed: the process ends, or there is no room
}

const (
	tickEvery = 150 * time.Millisecond
	lagMax    = 600 * time.Millisecond
	dataDir   = "/data"
	farAway   = 10000 * time.Hour // of the real clock: the simulation has deadlines of its own
)

func newBroker(n *node) *broker {
	b := &broker{n: n, controllerID: -1, lastTaken: map[int32]int{}, metadata: map[controller.TopicPartition]kmsg.UpdateMetadataRequestTopicPartition{},
		names: map[commitlog.TopicID]string{}, follows: map[int32]*following{}}
	b.coordinators = &coordinators{b: b, shards: map[controller.TopicPartition]*shard{}}
	b.isr = &isrChanges{b: b, waiting: map[commitlog.TopicPartition]isrItem{}}
	s := n.s
	config := s.logConfig
	config.UncleanElection = s.unclean
	if s.planted("min.insync.replicas is not looked at") {
		config.MinInsync = 1
	}
	logs, err := commitlog.OpenDriven(commitlog.ManagerConfig{
		Dirs: []string{dataDir}, FS: s.plants.disk(n.disk), Default: config, TopicConfig: func(string) commitlog.Config { return config },
		ProducerIDExpiration: 10 * 365 * 24 * time.Hour, // a clock that jumps a year would forget producers, as it is asked to
		CheckpointInterval:   10 * time.Second, Now: n.clock, Log: s.logger(n), OnDirFailure: b.dirFailed,
	}, s.wallClock())
	if err != nil {
		s.check(false, "I17: node %d does not recover: %v", n.id, err)
		return b
	}
	b.logs = logs
	policy := s.flush
	if policy == partition.FlushThinISR && s.planted("no flush of a thin ISR") || policy == partition.FlushAlways && s.planted("no flush before commit") {
		policy = partition.FlushAsKafka
	}
	b.replicas = partition.NewDriven(partition.Config{
		BrokerID: n.id, ReplicaLagTimeMax: lagMax, Flush: policy, FS: n.disk, Log: s.logger(n), Now: s.wallClock, OnRoles: b.roles, OnReturn: n.notifyDirs,
	}, logs.Manager, b.isr, (*followings)(b))
	return b
}

// die ends the incarnation. The logs are dropped as a crash drops them.
func (b *broker) die() {
	if b.replicas.Manager != nil {
		b.replicas.Close()
	}
}

// logger writes into the trace, if there is one.
func (s *Sim) logger(n *node) *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	l.SetLevel(logrus.PanicLevel)
	if s.w.trace != nil {
		l.SetLevel(logrus.InfoLevel)
		l.SetFormatter(lines{s, n})
		l.SetOutput(s.w.trace)
	}
	return logrus.NewEntry(l)
}

type lines struct {
	s *Sim
	n *node
}

func (l lines) Format(e *logrus.Entry) ([]byte, error) {
	return fmt.Appendf(nil, "%9.3fs  node %d: [%v] %s %v\n", l.s.w.now.Seconds(), l.n.id, e.Data["partition"], e.Message, e.Data["error"]), nil
}

// dirFailed is called inside of whatever met the error; a broker with one directory ends its process.
func (b *broker) dirFailed(dir string, err error) {
	if b.failed {
		return
	}
	b.failed = true
	b.n.s.w.tell("node %d: directory %s failed: %v", b.n.id, dir, err)
	if b.replicas.Manager != nil {
		b.replicas.LogDirFailed(dir)
	}
	b.n.later(0, func() {
		b.replicas.FollowDirs()
		if b.logs != nil && b.logs.Dirs()[0].Full {
			b.n.notifyDirs()
			b.n.later(lookForRoom, b.awaitRoom)
			return
		}
		b.n.crash(processEnds)
		b.n.s.w.in(b.n.s.w.between(100*time.Millisecond, 2*time.Second), b.n.startAgain)
	})
}

const (
	lookForRoom = 300 * time.Millisecond
	askAgain    = 5 * time.Second
)

// awaitRoom goes on without a restart when there is room on the disk.
func (b *broker) awaitRoom() {
	switch err := b.logs.Reopen(dataDir); {
	case errors.Is(err, commitlog.ErrNoRoom):
		b.n.later(lookForRoom, b.awaitRoom)
	case err != nil:
		b.n.s.check(false, "H46: node %d: a directory that lacked only room does not come back: %v", b.n.id, err)
	default:
		b.n.s.Done.Reopened++
		b.failed = false
		b.replicas.LogDirReturned(dataDir)
		b.replicas.FollowDirs()
		b.n.later(askAgain, b.n.notifyDirs) // as the product does
	}
}

// newEpoch takes up a newer broker epoch, from its own registration or from an order that came before the broker knew
// it. What it was told in its former registration may be old, and nobody will correct it: it is told everything again.
func (b *broker) newEpoch(epoch int64) {
	if epoch > b.told {
		b.told = epoch
		clear(b.metadata)
	}
}

// registered takes up the epoch of its own registration.
func (b *broker) registered(epoch int64) {
	b.epoch = epoch
	b.newEpoch(epoch)
	b.replicas.SetBrokerEpoch(epoch)
}

// take handles a control request; nil means that the broker does not listen yet.
func (b *broker) take(req kmsg.Request) kmsg.Response {
	if b.epoch == 0 || b.logs == nil {
		return nil
	}
	defer b.afterwards()
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

// obeys judges an order that was carried out.
func (b *broker) obeys(controllerEpoch int32, brokerEpoch int64) {
	s := b.n.s
	s.check(controllerEpoch >= b.obeyed, "H25: broker %d obeys controller epoch %d after %d", b.n.id, controllerEpoch, b.obeyed)
	s.check(brokerEpoch >= b.epoch, "H26: broker %d of epoch %d obeys an order for epoch %d", b.n.id, b.epoch, brokerEpoch)
	b.obeyed = max(b.obeyed, controllerEpoch)
	b.newEpoch(brokerEpoch)
}

func (b *broker) leaderAndISR(req *kmsg.LeaderAndISRRequest) kmsg.Response {
	order := partition.LeaderAndISR{ControllerID: req.ControllerID, ControllerEpoch: req.ControllerEpoch, BrokerEpoch: req.BrokerEpoch,
		Type: req.Type, Version: req.Version, LiveLeaders: map[int32]partition.Endpoint{}}
	b.n.s.plants.order(b, &order.ControllerEpoch, &order.BrokerEpoch)
	for _, l := range req.LiveLeaders {
		order.LiveLeaders[l.BrokerID] = partition.Endpoint{ID: l.BrokerID, Host: l.Host, Port: l.Port}
	}
	add := func(topic string, id controller.TopicID, p *kmsg.LeaderAndISRRequestTopicPartition) {
		order.Partitions = append(order.Partitions, partition.LeaderAndISRPartition{
			Topic: topic, TopicID: commitlog.TopicID(id), Partition: p.Partition, ControllerEpoch: p.ControllerEpoch, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch,
			ISR: p.ISR, PartitionEpoch: p.ZKVersion, Replicas: p.Replicas, Adding: p.AddingReplicas, Removing: p.RemovingReplicas, IsNew: p.IsNew,
			LeaderRecovery: p.LeaderRecoveryState,
		})
	}
	for i := range req.PartitionStates {
		add(req.PartitionStates[i].Topic, controller.TopicID{}, &req.PartitionStates[i])
	}
	for i := range req.TopicStates {
		t := &req.TopicStates[i]
		b.names[commitlog.TopicID(t.TopicID)] = t.Topic
		for j := range t.PartitionStates {
			add(t.Topic, t.TopicID, &t.PartitionStates[j])
		}
	}
	b.n.s.plants.roles(&order)
	resp := req.ResponseKind().(*kmsg.LeaderAndISRResponse)
	all, each := b.replicas.ApplyLeaderAndISR(order)
	if resp.ErrorCode = codeOf(all); all == nil {
		b.obeys(req.ControllerEpoch, req.BrokerEpoch)
	} else {
		each = nil
	}
	at := map[commitlog.TopicID]int{}
	for i, e := range each {
		part := kmsg.LeaderAndISRResponseTopicPartition{Topic: e.TP.Topic, Partition: e.TP.Partition, ErrorCode: codeOf(e.Err)}
		resp.Partitions = append(resp.Partitions, part)
		id := commitlog.TopicID(order.Partitions[i].TopicID)
		if _, known := at[id]; !known {
			at[id] = len(resp.Topics)
			resp.Topics = append(resp.Topics, kmsg.LeaderAndISRResponseTopic{TopicID: id})
		}
		resp.Topics[at[id]].Partitions = append(resp.Topics[at[id]].Partitions, part)
	}
	return resp
}

func codeOf(err error) int16 {
	if err == nil {
		return 0
	}
	for e := err; e != nil; {
		if k, ok := e.(*kerr.Error); ok {
			return k.Code
		}
		switch u := e.(type) {
		case interface{ Unwrap() error }:
			e = u.Unwrap()
		case interface{ Unwrap() []error }:
			for _, inner := range u.Unwrap() {
				if code := codeOf(inner); code != kerr.UnknownServerError.Code {
					return code
				}
			}
			return kerr.UnknownServerError.Code
		default:
			return kerr.UnknownServerError.Code
		}
	}
	return kerr.UnknownServerError.Code
}

func (b *broker) stopReplica(req *kmsg.StopReplicaRequest) kmsg.Response {
	order := partition.StopReplicas{ControllerID: req.ControllerID, ControllerEpoch: req.ControllerEpoch, BrokerEpoch: req.BrokerEpoch, Version: req.Version}
	b.n.s.plants.order(b, &order.ControllerEpoch, &order.BrokerEpoch)
	for _, t := range req.Topics {
		for _, p := range t.PartitionStates {
			order.Partitions = append(order.Partitions, partition.StopReplica{Topic: t.Topic, Partition: p.Partition, LeaderEpoch: p.LeaderEpoch, Delete: p.Delete})
		}
		if req.Version < 3 {
			for _, p := range t.Partitions {
				order.Partitions = append(order.Partitions, partition.StopReplica{Topic: t.Topic, Partition: p, LeaderEpoch: partition.EpochNotGiven, Delete: req.DeletePartitions})
			}
		}
	}
	b.n.s.plants.stops(&order)
	ids := make([]*commitlog.TopicID, len(order.Partitions))
	for i, p := range order.Partitions {
		if log := b.logs.Get(commitlog.TopicPartition{Topic: p.Topic, Partition: p.Partition}); log != nil {
			id := log.TopicID()
			ids[i] = &id
		}
	}
	resp := req.ResponseKind().(*kmsg.StopReplicaResponse)
	all, each := b.replicas.StopReplicas(order)
	if resp.ErrorCode = codeOf(all); all != nil {
		return resp
	}
	b.obeys(req.ControllerEpoch, req.BrokerEpoch)
	for i, e := range each {
		resp.Partitions = append(resp.Partitions, kmsg.StopReplicaResponsePartition{Topic: e.TP.Topic, Partition: e.TP.Partition, ErrorCode: codeOf(e.Err)})
		if e.Err == nil && order.Partitions[i].Delete && ids[i] != nil {
			b.n.s.deletes(b.n, controller.TopicPartition(e.TP), *ids[i])
		}
	}
	return resp
}

func (b *broker) updateMetadata(req *kmsg.UpdateMetadataRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.UpdateMetadataResponse)
	switch {
	case req.BrokerEpoch < b.told:
		resp.ErrorCode = kerr.StaleBrokerEpoch.Code
		return resp
	case b.replicas.ControllerSeen(req.ControllerEpoch) != nil:
		resp.ErrorCode = kerr.StaleControllerEpoch.Code
		return resp
	}
	b.obeys(req.ControllerEpoch, req.BrokerEpoch)
	b.controllerID = req.ControllerID
	var told []partition.Assigned
	for _, t := range req.TopicStates {
		b.names[commitlog.TopicID(t.TopicID)] = t.Topic
		for _, p := range t.PartitionStates {
			told = append(told, partition.Assigned{TP: commitlog.TopicPartition{Topic: t.Topic, Partition: p.Partition}, LeaderEpoch: p.LeaderEpoch, Replicas: p.Replicas})
			tp := controller.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			if p.Leader == -2 {
				delete(b.metadata, tp)
			} else {
				b.metadata[tp] = p
			}
		}
	}
	alive := map[int32]partition.BrokerInfo{}
	for _, l := range req.LiveBrokers {
		info := partition.BrokerInfo{Epoch: partition.None}
		for _, e := range l.Endpoints {
			info.Endpoint = partition.Endpoint{ID: l.ID, Host: e.Host, Port: e.Port}
		}
		alive[l.ID] = info
	}
	b.replicas.TakenAway(told)
	b.replicas.SetAliveBrokers(alive)
	return resp
}

// roles hears which partitions this broker leads or follows from now on.
func (b *broker) roles(roles []partition.Role) {
	for _, r := range roles {
		if log := b.logs.Get(r.TP); r.Leader && log != nil {
			b.n.s.takesLead(b.n, r.TP, log, r.LeaderEpoch)
		}
		b.coordinators.roles(r)
	}
}

// tick lets a broker do what it does from time to time.
func (n *node) tick() {
	n.later(n.s.w.between(tickEvery/2, tickEvery), n.tick)
	b := n.broker
	if b.logs == nil || b.failed {
		return
	}
	b.logs.Work(n.s.wallClock())
	if b.epoch != 0 {
		b.replicas.ReviewISRs()
	}
	b.coordinators.tick()
	b.afterwards()
}

// afterwards plans what a step left to be done, and looks at the replicas.
func (b *broker) afterwards() {
	if b.logs == nil {
		return
	}
	if b.replicas.Flushes() > 0 && !b.flushing {
		b.flushing = true
		b.n.later(b.n.s.w.between(time.Millisecond, 20*time.Millisecond), func() {
			b.flushing = false
			b.replicas.Flush()
			b.afterwards()
		})
	}
}

// everyPartition is all replicas; none while the broker is down.
func (b *broker) everyPartition() []*partition.Partition {
	if b.replicas.Manager == nil || !b.n.up {
		return nil
	}
	return b.replicas.All()
}

// status is what the broker knows of a replica that it hosts.
func (b *broker) status(tp controller.TopicPartition) (partition.Status, bool) {
	if b.replicas.Manager == nil {
		return partition.Status{}, false
	}
	p := b.replicas.Partition(tp.Topic, tp.Partition)
	if p == nil {
		return partition.Status{}, false
	}
	return p.Status(), true
}

// logOf is the log of an existing topic's partition, nil for that of an earlier topic of the name.
func (b *broker) logOf(tp controller.TopicPartition, id controller.TopicID) *commitlog.Log {
	if b.logs == nil {
		return nil
	}
	log := b.logs.Get(commitlog.TopicPartition(tp))
	if log != nil && id == (controller.TopicID{}) && !log.TopicID().IsZero() {
		return nil // the topic was made just now, by somebody who leaves its id to the controller; the log is of an earlier one
	}
	if log == nil || (log.TopicID() != commitlog.TopicID(id) && !slices.Contains([]commitlog.TopicID{log.TopicID(), commitlog.TopicID(id)}, commitlog.TopicID{})) {
		return nil
	}
	return log
}
