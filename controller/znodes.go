package controller

import (
	"strconv"
	"strings"

	"barnabas/zkstate"
)

// Between the core's values and what stands in ZooKeeper.

// topicNodeVersion is the version in which assignments are written: Kafka 3.9 and 2.8 write it at any
// inter.broker.protocol.version, and 2.4 reads it.
const topicNodeVersion = 3

// controllerNodeVersion is the version of /controller: 2 since Kafka 3.4, readable to all before.
const controllerNodeVersion = 2

// uncleanElectionKey is the topic configuration that allows a leader from outside the ISR.
const uncleanElectionKey = "unclean.leader.election.enable"

// decodeUncleanElection reads it out of a topic's configuration; set tells whether it is there.
func decodeUncleanElection(data []byte) (value, set bool, err error) {
	config, err := zkstate.DecodeEntityConfig(data)
	if err != nil {
		return false, false, err
	}
	text, set := config[uncleanElectionKey]
	return strings.EqualFold(strings.TrimSpace(text), "true"), set, nil
}

func encodeState(l leadership) []byte {
	return zkstate.PartitionState{ControllerEpoch: l.controllerEpoch, Leader: l.leader, LeaderEpoch: l.leaderEpoch, ISR: l.isr,
		Recovering: l.recovery == recovering}.Encode()
}

func decodeState(r zkstate.Result) (leadership, error) {
	s, err := zkstate.DecodePartitionState(r.Data)
	if err != nil {
		return leadership{}, err
	}
	l := leadership{leader: s.Leader, leaderEpoch: s.LeaderEpoch, isr: s.ISR, controllerEpoch: s.ControllerEpoch, version: r.Stat.Version}
	if s.Recovering {
		l.recovery = recovering
	}
	return l, nil
}

func encodeTopic(t *topic) []byte {
	node := zkstate.TopicAssignment{Version: topicNodeVersion, ID: t.id, Partitions: map[int32]zkstate.ReplicaAssignment{}}
	for _, id := range sortedKeys(t.partitions) {
		a := t.partitions[id].assignment
		node.Partitions[id] = zkstate.ReplicaAssignment{Replicas: a.replicas, Adding: a.adding, Removing: a.removing}
	}
	return node.Encode()
}

// brokerIDOf reads the id out of the path of a broker's registration.
func brokerIDOf(path string) (int32, bool) {
	name, ok := strings.CutPrefix(path, zkstate.BrokerIDsPath+"/")
	if !ok {
		return 0, false
	}
	return parseID(name)
}

func parseID(name string) (int32, bool) {
	id, err := strconv.ParseInt(name, 10, 32)
	return int32(id), err == nil && id >= 0
}

// topicOf reads the topic out of the path of its assignment or of a partition's state; partition is -1 for the former.
func topicOf(path string) (tp TopicPartition, ok bool) {
	rest, ok := strings.CutPrefix(path, zkstate.TopicsPath+"/")
	if !ok {
		return TopicPartition{}, false
	}
	parts := strings.Split(rest, "/")
	switch {
	case len(parts) == 1:
		return TopicPartition{Topic: parts[0], Partition: -1}, true
	case len(parts) == 4 && parts[1] == "partitions" && parts[3] == "state":
		id, ok := parseID(parts[2])
		return TopicPartition{Topic: parts[0], Partition: id}, ok
	}
	return TopicPartition{}, false
}
