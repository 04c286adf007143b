package neighbours

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
)

// LinkedIn's kafka-assigner reads brokers, topics and retention in ZooKeeper and has kafka-reassign-partitions.sh and kafka-preferred-replica-election.sh carry out its plans, by ZooKeeper too and
// reading what they print. The scripts are ours on both sides.

func playKafkaAssigner(s *scene) {
	scripts, err := filepath.Abs("../../scripts")
	require.NoError(s, err)
	java := s.file("bin/java", "") // it insists on one
	require.NoError(s, os.Chmod(java, 0o700))
	s.env = []string{"BARNABAS=" + cluster.Binary(s), "JAVA_HOME=" + s.dir}
	const others = "__consumer_offsets," + orders + "," + payments
	assign := func(what string, args ...string) {
		out := s.run("", s.program("assigner/bin/kafka-assigner"), append([]string{"--zookeeper", s.ZooKeeper, "--tools-path", scripts, "--execute", "--leadership", "--exclude-topics", others}, args...)...)
		s.say("kafka-assigner: "+what, sorted(out, `Partition moves required|Executing partition reassignment|Broker \d|leadership`))
		s.settled()
	}
	s.create(s.T, "assigned", [][]int32{{1, 2}, {2, 3}, {3, 1}}, map[string]string{"retention.ms": "7200000"})
	s.fill(s.T, "assigned", 3)
	assign("three replicas", "set-replication-factor", "--topics", "assigned", "--replication-factor", "3")
	s.topic("assigned", 3, 3)
	assign("two replicas", "trim", "--brokers", "3")
	s.topic("assigned", 3, 2)
	assign("leaders", "elect")
	s.topic("assigned", 3, 2)
	out, code := s.try("", s.program("assigner/bin/kafka-assigner"), "--zookeeper", s.ZooKeeper, "--tools-path", scripts, "remove", "--brokers", "7")
	require.NotZero(s, code)
	s.say("kafka-assigner: without a broker that is not there", strings.TrimSpace(lastLine(out)))
	s.delete("assigned")
}
