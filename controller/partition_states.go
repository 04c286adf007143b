package controller

import (
	"errors"
	"fmt"
	"slices"

	"barnabas/zkstate"
)

type partitionState int8

const (
	nonExistentPartition partitionState = iota
	newPartition
	onlinePartition
	offlinePartition
)

func (s partitionState) String() string {
	return [...]string{"NonExistent", "New", "Online", "Offline"}[s]
}

// partitionTransitions gives, for each state, the states that it may be entered from.
var partitionTransitions = map[partitionState][]partitionState{
	newPartition:         {nonExistentPartition},
	onlinePartition:      {newPartition, onlinePartition, offlinePartition},
	offlinePartition:     {newPartition, onlinePartition, offlinePartition},
	nonExistentPartition: {offlinePartition},
}

// markPartitions changes the state of partitions where that is all: New, Offline and NonExistent.
func (c *Core) markPartitions(tps []TopicPartition, to partitionState) {
	for _, tp := range c.mayMove(tps, to) {
		c.cluster.partition(tp).state = to
	}
}

// mayMove gives the partitions for which the transition is legal, and logs the others.
func (c *Core) mayMove(tps []TopicPartition, to partitionState) []TopicPartition {
	var legal []TopicPartition
	for _, tp := range tps {
		p := c.cluster.partition(tp)
		switch {
		case p == nil:
			c.logf(LogWarn, "partition %s is unknown and cannot become %s", tp, to)
		case !slices.Contains(partitionTransitions[to], p.state):
			c.logf(LogError, "partition %s is %s and cannot become %s", tp, p.state, to)
		default:
			legal = append(legal, tp)
		}
	}
	return legal
}

// strategy says how a leader is sought for a partition.
type strategy int8

const (
	forOffline strategy = iota
	// forOfflineUnclean allows a leader from outside the ISR whatever the topic's configuration says: an administrator asked.
	forOfflineUnclean
	forReassigned
	forPreferred
	forControlledShutdown
)

func (s strategy) String() string {
	return [...]string{"offline", "offline, unclean allowed", "reassigned", "preferred", "controlled shutdown"}[s]
}

// kafkaStrategies are the names by which Kafka's answers call the strategies of requested elections.
var kafkaStrategies = map[strategy]string{forPreferred: "PreferredReplicaPartitionLeaderElectionStrategy", forOfflineUnclean: "OfflinePartitionLeaderElectionStrategy(true)"}

// errNoLeader is the outcome of an election that found nobody.
var errNoLeader = errors.New("no replica may become leader")

// bringOnline gives each partition a leader: new ones their first, others the one that the strategy elects. It tells
// for each partition what came of it, and returns an error only if the controllership is over.
func (c *Core) bringOnline(tps []TopicPartition, s strategy) (map[TopicPartition]error, error) {
	outcomes := map[TopicPartition]error{}
	var fresh, electing []TopicPartition
	for _, tp := range c.mayMove(tps, onlinePartition) {
		if c.cluster.partition(tp).state == newPartition {
			fresh = append(fresh, tp)
		} else {
			electing = append(electing, tp)
		}
	}
	led, err := c.initialize(fresh, outcomes)
	if err != nil {
		return nil, err
	}
	electing = append(electing, led...)
	for len(electing) > 0 {
		if electing, err = c.elect(electing, s, outcomes); err != nil {
			return nil, err
		}
	}
	for _, tp := range sortedPartitions(outcomes) {
		if outcomes[tp] != nil {
			c.logf(LogWarn, "no leader for partition %s (%s): %v", tp, s, outcomes[tp])
			continue
		}
		p := c.cluster.partition(tp)
		c.logf(LogDebug, "partition %s: %s to Online, %s", tp, p.state, p.leadership)
		p.state = onlinePartition
	}
	c.outbox.flush(c)
	return outcomes, nil
}

// initialize writes the first state of partitions that never had a leader: the first replica online leads, all that
// are online form the ISR. Partitions that turn out to have a state already are returned, to be elected for.
func (c *Core) initialize(tps []TopicPartition, outcomes map[TopicPartition]error) (alreadyLed []TopicPartition, err error) {
	var ready []TopicPartition
	var parents, nodes, states []zkstate.Op
	first := map[TopicPartition]leadership{}
	for _, tp := range tps {
		online := c.cluster.onlineReplicas(tp, c.cluster.partition(tp).assignment.replicas)
		if len(online) == 0 {
			outcomes[tp] = fmt.Errorf("%w: of replicas %v none is alive", errNoLeader, c.cluster.partition(tp).assignment.replicas)
			continue
		}
		l := leadership{leader: online[0], leaderEpoch: initialLeaderTerm, isr: online, controllerEpoch: c.cluster.epoch}
		first[tp] = l
		if len(ready) == 0 || ready[len(ready)-1].Topic != tp.Topic {
			parents = append(parents, zkstate.Create(zkstate.TopicPartitionsPath(tp.Topic), nil))
		}
		nodes = append(nodes, zkstate.Create(zkstate.TopicPartitionPath(tp.Topic, tp.Partition), nil))
		states = append(states, zkstate.Create(zkstate.PartitionStatePath(tp.Topic, tp.Partition), encodeState(l)))
		ready = append(ready, tp)
	}
	for _, ops := range [][]zkstate.Op{parents, nodes} {
		if _, err := c.write(ops...); err != nil {
			return nil, err
		}
	}
	results, err := c.write(states...)
	if err != nil {
		return nil, err
	}
	for i, tp := range ready {
		p := c.cluster.partition(tp)
		switch {
		case results[i].Err == nil:
			l := first[tp]
			p.leadership = &l
			outcomes[tp] = nil
			c.outbox.leaderAndISR(c, l.isr, tp, true)
		case errors.Is(results[i].Err, zkstate.ErrNodeExists):
			p.state = offlinePartition
			alreadyLed = append(alreadyLed, tp)
		default:
			outcomes[tp] = results[i].Err
		}
	}
	return alreadyLed, nil
}

// elect makes one round of elections from the states that ZooKeeper holds now. Those whose state changed between the
// read and the write are returned for another round.
func (c *Core) elect(tps []TopicPartition, s strategy, outcomes map[TopicPartition]error) (again []TopicPartition, err error) {
	current, err := c.readStates(tps, outcomes)
	if err != nil {
		return nil, err
	}
	unclean, err := c.uncleanAllowed(current, s)
	if err != nil {
		return nil, err
	}
	var winners []TopicPartition
	var ops []zkstate.Op
	won := map[TopicPartition]leadership{}
	for _, tp := range sortedPartitions(current) {
		l, ok := c.choose(tp, current[tp], s, unclean[tp.Topic])
		if !ok {
			outcomes[tp] = errNoLeader
			if unclean[tp.Topic] {
				outcomes[tp] = c.nobodyYet(tp)
			}
			continue
		}
		won[tp] = l
		winners = append(winners, tp)
		ops = append(ops, zkstate.Set(zkstate.PartitionStatePath(tp.Topic, tp.Partition), encodeState(l), current[tp].version))
	}
	results, err := c.write(ops...)
	if err != nil {
		return nil, err
	}
	for i, tp := range winners {
		switch {
		case results[i].Err == nil:
			l := won[tp]
			l.version = results[i].Stat.Version
			p := c.cluster.partition(tp)
			p.leadership, p.electionDue = &l, false
			outcomes[tp] = nil
			c.outbox.leaderAndISR(c, c.recipients(tp, s), tp, false)
		case errors.Is(results[i].Err, zkstate.ErrBadVersion):
			again = append(again, tp)
		default:
			outcomes[tp] = results[i].Err
		}
	}
	return again, nil
}

// readStates reads the leadership of partitions from ZooKeeper; what cannot be used is an outcome.
func (c *Core) readStates(tps []TopicPartition, outcomes map[TopicPartition]error) (map[TopicPartition]leadership, error) {
	ops := make([]zkstate.Op, len(tps))
	for i, tp := range tps {
		ops[i] = zkstate.Get(zkstate.PartitionStatePath(tp.Topic, tp.Partition))
	}
	results, err := c.read(ops...)
	if err != nil {
		return nil, err
	}
	states := map[TopicPartition]leadership{}
	for i, tp := range tps {
		if results[i].Err != nil {
			outcomes[tp] = fmt.Errorf("reading its state: %w", results[i].Err)
			continue
		}
		l, err := decodeState(results[i])
		switch {
		case err != nil:
			outcomes[tp] = err
		case l.controllerEpoch > c.cluster.epoch:
			outcomes[tp] = fmt.Errorf("its state was written by a later controller, of epoch %d", l.controllerEpoch)
		default:
			states[tp] = l
		}
	}
	return states, nil
}

// uncleanAllowed tells for which topics a leader from outside the ISR may be elected. Only topics that need one are
// asked for.
func (c *Core) uncleanAllowed(current map[TopicPartition]leadership, s strategy) (map[string]bool, error) {
	allowed := map[string]bool{}
	if s != forOffline && s != forOfflineUnclean {
		return allowed, nil
	}
	var names []string
	var ops []zkstate.Op
	for _, tp := range sortedPartitions(current) {
		if len(c.cluster.onlineReplicas(tp, current[tp].isr)) > 0 || slices.Contains(names, tp.Topic) {
			continue
		}
		names = append(names, tp.Topic)
		ops = append(ops, zkstate.Get(zkstate.EntityPath(zkstate.TopicEntity, tp.Topic)))
	}
	if s == forOfflineUnclean {
		for _, name := range names {
			allowed[name] = true
		}
		return allowed, nil
	}
	results, err := c.read(ops...)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		allowed[name] = c.uncleanByConfig(name, results[i])
	}
	return allowed, nil
}

func (c *Core) uncleanByConfig(topic string, config zkstate.Result) bool {
	switch {
	case errors.Is(config.Err, zkstate.ErrNoNode):
		return c.cfg.UncleanElection()
	case config.Err != nil:
		c.logf(LogError, "reading the configuration of topic %s: %v", topic, config.Err)
		return false
	}
	value, set, err := decodeUncleanElection(config.Data)
	switch {
	case err != nil:
		c.logf(LogError, "the configuration of topic %s is not readable: %v", topic, err)
		return false
	case set:
		return value
	}
	return c.cfg.UncleanElection()
}

// choose runs the strategy's selector.
func (c *Core) choose(tp TopicPartition, current leadership, s strategy, unclean bool) (leadership, bool) {
	a := c.cluster.partition(tp).assignment
	in := candidate{
		current: current, replicas: a.replicas, adding: a.adding, awaited: sortedKeys(c.cluster.partition(tp).awaited), unclean: unclean, markRecovery: c.cfg.IBP.leaderRecovery(),
		stopping: sortedKeys(c.cluster.shuttingDown),
	}
	var l leadership
	var ok bool
	switch s {
	case forOffline, forOfflineUnclean:
		in.online = c.cluster.onlineReplicas(tp, a.replicas)
		l, ok = electOffline(in)
	case forReassigned:
		in.replicas = a.target()
		in.online = c.cluster.onlineReplicas(tp, in.replicas)
		l, ok = electReassigned(in)
	case forPreferred:
		in.online = c.cluster.onlineReplicas(tp, a.replicas)
		l, ok = electPreferred(in)
	case forControlledShutdown:
		in.online = c.reachable(tp, a.replicas)
		l, ok = electControlledShutdown(in)
	}
	l.controllerEpoch = c.cluster.epoch
	return l, ok
}

// recipients are the brokers that must hear of an election's result.
func (c *Core) recipients(tp TopicPartition, s strategy) []int32 {
	a := c.cluster.partition(tp).assignment
	switch s {
	case forReassigned:
		return a.target()
	case forPreferred:
		return a.replicas
	case forControlledShutdown:
		return c.reachable(tp, a.replicas)
	default:
		return c.cluster.onlineReplicas(tp, a.replicas)
	}
}

// reachable is onlineReplicas with the brokers that are shutting down.
func (c *Core) reachable(tp TopicPartition, ids []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(ids), func(id int32) bool {
		return c.cluster.brokers[id] == nil || c.cluster.offlineDirs[id][tp]
	})
}

// bringAllOnline seeks leaders for every partition that has none.
func (c *Core) bringAllOnline() (map[TopicPartition]error, error) {
	return c.bringOnline(c.cluster.partitionsWhere(func(_ TopicPartition, t *topic, p *partition) bool {
		return !t.dying && (p.state == newPartition || p.state == offlinePartition)
	}), forOffline)
}

// uncleanElectionEnabled tries again for partitions without a leader, of one topic or of all.
func (c *Core) uncleanElectionEnabled(name string) error {
	_, err := c.bringOnline(c.cluster.partitionsWhere(func(tp TopicPartition, t *topic, p *partition) bool {
		return (name == "" || tp.Topic == name) && !t.dying && (p.state == newPartition || p.state == offlinePartition)
	}), forOffline)
	return err
}
