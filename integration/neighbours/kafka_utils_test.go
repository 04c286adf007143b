package neighbours

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
)

// Yelp's kafka-utils are scripts over kazoo, which asks ZooKeeper for a session that may be read-only, and over a kafka-python of 2019 with the oldest versions of each request: Metadata 0, whose
// replicas are those that can be reached, ListOffsets 0, OffsetFetch 1 and OffsetCommit 2.

// kafkaUtils returns a function that runs one of the scripts on this side's cluster.
func kafkaUtils(s *scene) func(script string, args ...string) (string, int) {
	seeds, err := json.Marshal(s.Seeds())
	require.NoError(s, err)
	s.file("discovery/kafka.yaml", fmt.Sprintf("clusters: {here: {broker_list: %s, zookeeper: %q}}\nlocal_config: {cluster: here}\n", seeds, s.ZooKeeper))
	return func(script string, args ...string) (string, int) {
		return s.try("y\n", s.program("kafka-utils/bin/"+script), append([]string{"--cluster-type", "kafka", "--discovery-base-path", s.dir + "/discovery"}, args...)...)
	}
}

func playKafkaUtils(s *scene) {
	try := kafkaUtils(s)
	run := func(script string, args ...string) string {
		out, code := try(script, args...)
		require.Zero(s, code, "%s %v:\n%s", script, args, out)
		return out
	}
	for _, check := range []string{"min_isr", "offline", "replica_unavailability", "replication_factor"} {
		s.say("kafka-check "+check, run("kafka-check", "-v", check))
	}
	s.say("kafka-check of who is not the controller", run("kafka-check", "--broker-id", "2", "--controller-only", "min_isr"))

	s.create(s.T, "managed", [][]int32{{1, 2}, {2, 3}, {3, 1}}, map[string]string{"min.insync.replicas": "2"})
	s.fill(s.T, "managed", 3)
	run("kafka-cluster-manager", "--apply", "--no-confirm", "set_replication_factor", "--topic", "managed", "3")
	s.topic("managed", 3, 3)
	s.say("kafka-cluster-manager stats", sorted(run("kafka-cluster-manager", "stats"), "."))

	manage := func(args ...string) string { return sorted(run("kafka-consumer-manager", args...), ".") }
	for _, reader := range [][]string{nil, {"--use-admin-client"}} {
		s.say(fmt.Sprint("kafka-consumer-manager offset_get ", reader), manage(append(reader, "offset_get", audit)...))
		s.say(fmt.Sprint("kafka-consumer-manager list_groups ", reader), sorted(manage(append(reader, "list_groups")...), "^(?:"+billing+"|"+audit+"|"+live+")$"))
	}
	s.say("kafka-consumer-manager get_topic_watermark", manage("get_topic_watermark", orders))
	s.say("kafka-consumer-manager offsets_for_timestamp", manage("offsets_for_timestamp", fmt.Sprint(began.UnixMilli()+4500), "--topics", orders))
	s.say("kafka-consumer-manager offset_set", manage("offset_set", "managed-group", "managed.0=4", "managed.2=6", "--force"))
	s.say("kafka-consumer-manager offset_get after it", manage("--use-admin-client", "offset_get", "managed-group", "--json"))
	s.say("kafka-consumer-manager offset_rewind", manage("--use-admin-client", "offset_rewind", "managed-group", "--topic", "managed", "--partitions", "2"))
	s.say("kafka-consumer-manager offset_advance", manage("--use-admin-client", "offset_advance", "managed-group", "--topic", "managed", "--partitions", "0"))
	s.say("kafka-consumer-manager copy_group", manage("copy_group", "managed-group", "copied-group"))
	s.say("kafka-consumer-manager offset_get of the copy", manage("--use-admin-client", "offset_get", "copied-group", "--json"))
	out, code := try("kafka-consumer-manager", "offset_set", live, payments+".0=1", "--force")
	require.NotZero(s, code)
	s.say("kafka-consumer-manager offset_set of a group with a member", lastLine(out))
	s.delete("managed")
}

// lastLine is where a Python program says why it failed.
func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}
