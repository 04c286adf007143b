package api

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AlterReplicaLogDirs answers per partition; of two wishes for one partition the last counts.
func TestAlterReplicaLogDirsAnswersPerPartition(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	here := w.ask(kmsg.NewPtrDescribeLogDirsRequest()).(*kmsg.DescribeLogDirsResponse).Dirs[0].Dir
	dir := func(path string, topics map[string][]int32) kmsg.AlterReplicaLogDirsRequestDir {
		d := kmsg.NewAlterReplicaLogDirsRequestDir()
		d.Dir = path
		for _, name := range []string{"one", "two", "nobody"} {
			if parts, ok := topics[name]; ok {
				topic := kmsg.NewAlterReplicaLogDirsRequestDirTopic()
				topic.Topic, topic.Partitions = name, parts
				d.Topics = append(d.Topics, topic)
			}
		}
		return d
	}
	for version := int16(0); version <= 2; version++ {
		req := kmsg.NewPtrAlterReplicaLogDirsRequest()
		req.Version = version
		req.Dirs = []kmsg.AlterReplicaLogDirsRequestDir{
			dir("/nowhere", map[string][]int32{"two": {0, 1}}),
			dir(here, map[string][]int32{"one": {0}, "two": {1}, "nobody": {3}}),
		}
		got := map[string]map[int32]int16{}
		for _, topic := range w.ask(req).(*kmsg.AlterReplicaLogDirsResponse).Topics {
			require.NotContains(t, got, topic.Topic)
			got[topic.Topic] = map[int32]int16{}
			for _, p := range topic.Partitions {
				got[topic.Topic][p.Partition] = p.ErrorCode
			}
		}
		require.Equal(t, map[string]map[int32]int16{
			"one":    {0: 0},
			"two":    {0: kerr.LogDirNotFound.Code, 1: 0},
			"nobody": {3: kerr.UnknownTopicOrPartition.Code},
		}, got, "version %d", version)
	}
}
