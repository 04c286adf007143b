package api

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

// Replicas are moved between the log directories of one broker, and the transcript tells what is answered and where they come
// to be. TestRecordLogDirPlay has the play performed by Apache Kafka 3.9.1 and 2.8.2, which must agree; TestLogDirPlay by this
// broker. Directories have names in it, as paths belong to one run.

var logDirTopics = formatStage{topics: map[string]map[string]string{"moved": nil, "other": nil}}

const logDirPlayFile = "testdata/logdirs.txt"

// logDirPlay is one performance, with its transcript.
type logDirPlay struct {
	t    *testing.T
	ask  func(kmsg.Request) kmsg.Response
	dirs map[string]string // path by name
	text strings.Builder
}

// wish names a partition of a topic that is wanted in a directory.
type wish struct {
	dir, topic string // dir is a name
	partition  int32
}

func (p *logDirPlay) perform() {
	for version := int16(0); version <= 2; version++ {
		p.alter(version, "to the first", wish{"first", "moved", 0}, wish{"first", "other", 0}) // wherever they were made
		p.alter(version, "nothing")
		p.alter(version, "where it is", wish{"first", "moved", 0})
		p.alter(version, "to the second", wish{"second", "moved", 0})
		p.alter(version, "and back, another one the other way", wish{"first", "moved", 0}, wish{"second", "other", 0})
		p.alter(version, "named in two", wish{"first", "moved", 0}, wish{"second", "moved", 0})
		p.alter(version, "named twice in one", wish{"first", "moved", 0}, wish{"first", "moved", 0})
		p.alter(version, "to one that there is not", wish{"nowhere", "moved", 0})
		p.alter(version, "to a relative path", wish{"relative", "moved", 0})
		p.alter(version, "to no path at all", wish{"empty", "moved", 0})
		p.alter(version, "a partition that there is not", wish{"first", "moved", 7})
		p.alter(version, "a negative partition", wish{"first", "moved", -1})
		p.alter(version, "a topic that there is not", wish{"first", "nobody", 0}, wish{"second", "moved", 0})
		p.alter(version, "a topic that there is not, to a directory that there is not", wish{"nowhere", "nobody", 0})
		p.alter(version, "a topic without a name", wish{"first", "", 0})
	}
}

func (p *logDirPlay) alter(version int16, what string, wishes ...wish) {
	req := kmsg.NewPtrAlterReplicaLogDirsRequest()
	req.Version = version
	for _, w := range wishes {
		dir := kmsg.NewAlterReplicaLogDirsRequestDir()
		dir.Dir = p.dirs[w.dir]
		topic := kmsg.NewAlterReplicaLogDirsRequestDirTopic()
		topic.Topic, topic.Partitions = w.topic, []int32{w.partition}
		dir.Topics = append(dir.Topics, topic)
		req.Dirs = append(req.Dirs, dir)
	}
	resp := p.ask(req).(*kmsg.AlterReplicaLogDirsResponse)
	fmt.Fprintf(&p.text, "alter v%d: %s\n", version, what)
	sortBy(resp.Topics, func(t kmsg.AlterReplicaLogDirsResponseTopic) string { return t.Topic })
	for _, t := range resp.Topics {
		sortBy(t.Partitions, func(p kmsg.AlterReplicaLogDirsResponseTopicPartition) int32 { return p.Partition })
		for _, row := range t.Partitions {
			fmt.Fprintf(&p.text, "  %s-%d: %s\n", t.Topic, row.Partition, errorName(row.ErrorCode))
		}
	}
	for _, topic := range []string{"moved", "other"} {
		fmt.Fprintf(&p.text, "  %s is in the %s\n", topic, p.home(topic))
	}
}

// home waits until nothing is being moved and tells where a topic is.
func (p *logDirPlay) home(topic string) (name string) {
	require.Eventually(p.t, func() bool {
		found := 0
		for dir, path := range p.dirs {
			for _, d := range p.ask(kmsg.NewPtrDescribeLogDirsRequest()).(*kmsg.DescribeLogDirsResponse).Dirs {
				for _, t := range d.Topics {
					if d.Dir == path && t.Topic == topic {
						found += len(t.Partitions)
						name = dir
					}
				}
			}
		}
		return found == 1
	}, time.Minute, 20*time.Millisecond, topic)
	return name
}

func logDirsBelow(dir string) map[string]string {
	return map[string]string{
		"first": filepath.Join(dir, "first"), "second": filepath.Join(dir, "second"), "nowhere": filepath.Join(dir, "nowhere"), "relative": "first", "empty": "",
	}
}

// TestRecordLogDirPlay has the play performed by Apache Kafka. By hand:
//
//	go test ./broker/api -run TestRecordLogDirPlay -record
func TestRecordLogDirPlay(t *testing.T) {
	if !*record391 {
		t.Skip("only with -record")
	}
	recorded := ""
	for _, version := range []string{"3.9.1", "2.8.2"} {
		t.Run(version, func(t *testing.T) {
			dir := t.TempDir()
			dirs := logDirsBelow(dir)
			ask := oneKafkaIn(t, dir, version, "log.dirs="+dirs["first"]+","+dirs["second"]+"\n")
			createFormatTopics(t, logDirTopics, ask)
			p := &logDirPlay{t: t, ask: ask, dirs: dirs}
			p.perform()
			if recorded != "" {
				requireSamePlay(t, recorded, p.text.String())
			}
			recorded = p.text.String()
		})
	}
	require.NoError(t, os.WriteFile(logDirPlayFile, []byte(recorded), 0o644))
}

func TestLogDirPlay(t *testing.T) {
	want, err := os.ReadFile(logDirPlayFile)
	require.NoError(t, err)
	dirs := logDirsBelow(t.TempDir())
	w := openWorldIn(t, 1, "", func(string) commitlog.Config { return commitlog.DefaultConfig() }, moveAtOnce{}, dirs["first"], dirs["second"])
	w.leadFormatTopics(logDirTopics)
	p := &logDirPlay{t: t, ask: w.ask, dirs: dirs}
	p.perform()
	requireSamePlay(t, string(want), p.text.String())
}

// moveAtOnce are movers that move before they return.
type moveAtOnce struct{}

func (moveAtOnce) Stop([]commitlog.TopicPartition) {}

func (moveAtOnce) Start(ps []*partition.Partition) {
	for _, p := range ps {
		for done := false; !done; {
			var err error
			if _, done, err = p.Move(1 << 20); err != nil {
				break
			}
		}
	}
}
