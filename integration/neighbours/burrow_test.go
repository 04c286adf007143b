package neighbours

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
)

// Burrow reads the records of __consumer_offsets themselves, and the offsets of old groups in ZooKeeper, under watches; from the history of commits it judges groups. Debian's is of 2019: it asks as of
// Kafka 2.0 and knows no members of today.

const burrowFile = `
[general]
pidfile = "burrow.pid"
[logging]
level = "warn"
[zookeeper]
servers = [ %[2]q ]
timeout = 6
root-path = "/burrow"
[client-profile.ours]
client-id = "burrow"
kafka-version = "2.0.0"
[cluster.here]
class-name = "kafka"
servers = %[1]s
client-profile = "ours"
topic-refresh = 1
offset-refresh = 1
[consumer.topic]
class-name = "kafka"
cluster = "here"
servers = %[1]s
client-profile = "ours"
group-blacklist = "^(burrow|kminion|offset_mon).*$"
[consumer.zookeeper]
class-name = "kafka_zk"
cluster = "here"
servers = [ %[2]q ]
zookeeper-timeout = 30
group-whitelist = "^old-.*$"
[httpserver.web]
address = "127.0.0.1:%[3]d"
[storage.memory]
class-name = "inmemory"
intervals = 3
[evaluator.judge]
class-name = "caching"
expire-cache = 1
[notifier.nobody]
class-name = "null"
interval = 1
template-open = "open.tmpl"
`

func playBurrow(s *scene) {
	seeds, err := json.Marshal(s.Seeds())
	require.NoError(s, err)
	port := lane.Port(s)
	s.file("burrow.toml", fmt.Sprintf(burrowFile, seeds, s.ZooKeeper, port))
	s.file("open.tmpl", "{{.Group}}")
	s.join(s.T, "passing", "").Close()
	s.serve(lane.Program(s, "Burrow"), "--config-dir", s.dir)
	ask := func(path string, is func(body string) bool) string {
		return s.await("http://127.0.0.1:"+strconv.Itoa(port)+path, is)
	}
	const group = "/v3/kafka/here/consumer/"

	s.say("Burrow of a topic", ask("/v3/kafka/here/topic/"+orders, allOf(`"offsets":\[10,10,10,10\]`)))
	s.say("Burrow of a group that keeps up", verdict(s, ask(group+billing+"/lag", allOf(`"complete":1\b`, `"status":"OK"`))))
	s.say("Burrow of a group that stopped", verdict(s, ask(group+audit+"/status", allOf(`(?:"STOP".*){4}`, `"totallag":24`))))
	s.say("Burrow of a group with a member", verdict(s, ask(group+live+"/lag", allOf(`"totallag":0`))))
	s.say("Burrow of a group whose member went", verdict(s, ask(group+"passing/lag", allOf(`"totallag":0`))))
	s.say("Burrow of the consumers of a topic", consumers(s, ask("/v3/kafka/here/topic/"+payments+"/consumers", allOf(live))))

	s.put("/consumers/old-hand/offsets/"+orders+"/0", "4") // a group of before Kafka 0.9, which comes while it looks
	ask("/v3/kafka/here/consumer", allOf(`"old-hand"`))
	s.say("Burrow of an old group", verdict(s, ask(group+"old-hand/lag", allOf(`"current_lag":6`, `"status":"STOP"`)))) // in the millisecond of its one commit it would only stall
	s.until("Burrow has its lock", func() bool { return len(s.children("/burrow")) > 0 })
	s.say("what Burrow keeps", strings.Join(s.children("/burrow"), " "))
}

// verdict is the judgement about a group, its partitions in order and without times.
func verdict(s *scene, answer string) string {
	s.Helper()
	var a struct {
		Status struct {
			Group, Status string
			Complete      float64
			TotalLag      uint64
			Count         int `json:"partition_count"`
			Partitions    []struct {
				Topic, Owner, Status string
				Client               string `json:"client_id"`
				Partition            int
				Lag                  uint64 `json:"current_lag"`
				Complete             float64
				Start, End           struct{ Offset int64 }
			}
		}
	}
	require.NoError(s, json.Unmarshal([]byte(answer), &a))
	sort.Slice(a.Status.Partitions, func(i, j int) bool { return a.Status.Partitions[i].Partition < a.Status.Partitions[j].Partition })
	return fmt.Sprintf("%+v", a.Status)
}

// consumers is the list of groups in an answer, in order.
func consumers(s *scene, answer string) string {
	s.Helper()
	var a struct{ Consumers []string }
	require.NoError(s, json.Unmarshal([]byte(answer), &a))
	sort.Strings(a.Consumers)
	return strings.Join(a.Consumers, " ")
}
