package neighbours

import (
	"encoding/json"
	"strconv"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"barnabas/integration/lane"
	"barnabas/zkstate"
)

// What managers of ZooKeeper's days (topicctl, kafka-kit's autothrottle, CMAK) do behind the brokers' backs: they write settings and announce them, add partitions to a topic's node, make the nodes that
// ask the controller for moves, elections and deletions, and look at states until they are as they should be. Their JSON has its own order of keys, and notifications need not be Kafka's.

func playZnodes(s *scene) {
	const topic = "written"
	s.create(s.T, topic, [][]int32{{1, 2}, {2, 3}}, nil)
	s.fill(s.T, topic, 2)

	s.configure("topics", topic, `{"config":{"retention.ms":"3600000","cleanup.policy":"compact,delete"},"version":1}`)
	s.until("the topic's settings are known", func() bool { return s.setting(0, topic, "retention.ms") == "3600000" })
	s.topic(topic, 2, 2)

	s.configure("brokers", "2", `{"config":{"leader.replication.throttled.rate":"50000000","follower.replication.throttled.rate":"50000000"},"version":1}`)
	s.configure("topics", topic, `{"config":{"leader.replication.throttled.replicas":"0:1,0:2,1:2,1:3","follower.replication.throttled.replicas":"0:3,1:1"},"version":1}`)
	s.until("the throttle is known", func() bool {
		return s.setting(2, "", "follower.replication.throttled.rate") == "50000000"
	})

	s.rewrite("/brokers/topics/"+topic, func(node map[string]any) { node["partitions"].(map[string]any)["2"] = []int{3, 1} })
	s.topic(topic, 3, 2)

	s.put(zkstate.ReassignPartitionsPath, `{"partitions":[{"partition":0,"replicas":[3,2],"topic":"written"},{"partition":1,"replicas":[1,3],"topic":"written"},{"partition":0,"replicas":[1],"topic":"nowhere"}],"version":1}`)
	s.topic(topic, 3, 2)
	s.put(zkstate.ReassignPartitionsPath, `{"version":1,"partitions":[{"topic":"written","partition":0,"replicas":[2,3]},{"topic":"written","partition":2,"replicas":[1,3]}]}`)
	s.topic(topic, 3, 2)
	s.put(zkstate.PreferredReplicaElectionPath, `{"version":1,"partitions":[{"topic":"written","partition":0},{"topic":"written","partition":1},{"topic":"written","partition":2},{"topic":"nowhere","partition":0}]}`)
	s.topic(topic, 3, 2)

	s.configure("brokers", "2", `{"config":{},"version":1}`)
	s.until("the throttle is gone", func() bool {
		return s.setting(2, "", "follower.replication.throttled.rate") != "50000000"
	})
	s.put("/admin/delete_topics/"+topic, "")
	s.until("the topic is gone", func() bool { return s.node("/brokers/topics/"+topic) == "none" })
	s.settled()
	s.say("its settings then", s.node("/config/topics/"+topic))
}

// configure writes the settings of an entity, whether it had any or not, and announces it.
func (s *scene) configure(kind, name, settings string) {
	s.Helper()
	path := "/config/" + kind + "/" + name
	if s.node(path) == "none" {
		s.put(path, settings)
	} else {
		s.do(zkstate.Set(path, []byte(settings), zkstate.AnyVersion))
	}
	s.do(zkstate.CreateSequential("/config/changes/config_change_", []byte(`{"version":2,"entity_path":`+strconv.Quote(kind+"/"+name)+`}`)))
}

// rewrite changes a node as whoever knows only a part of its fields does.
func (s *scene) rewrite(path string, change func(node map[string]any)) {
	s.Helper()
	read := s.do(zkstate.Get(path))
	var node map[string]any
	require.NoError(s, json.Unmarshal(read.Data, &node))
	change(node)
	s.do(zkstate.Set(path, []byte(marshalled(node)), read.Stat.Version))
}

// setting is what the brokers say of one setting of a topic, or of a broker of that number.
func (s *scene) setting(broker int32, topic, name string) string {
	s.Helper()
	var found kadm.ResourceConfigs
	var err error
	if topic != "" {
		found, err = s.admin.DescribeTopicConfigs(lane.Patience(s), topic)
	} else {
		found, err = s.admin.DescribeBrokerConfigs(lane.Patience(s), broker)
	}
	require.NoError(s, err)
	require.Len(s, found, 1)
	for _, c := range found[0].Configs {
		if c.Key == name {
			return c.MaybeValue()
		}
	}
	return ""
}

func (s *scene) do(op zkstate.Op) zkstate.Result {
	s.Helper()
	results, err := s.tree.Do(lane.Patience(s), []zkstate.Op{op})
	require.NoError(s, err)
	require.NoError(s, results[0].Err, "%v %s", op.Kind, op.Path)
	return results[0]
}
