package api

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/wire"
)

// liveDifferences are the answers of a whole broker that differ on purpose or
// by what is not built yet, each with its reason.
var liveDifferences = map[string]string{
	"19_create_topics/empty replicas": "Kafka would make a topic of partitions without replicas; here it is INVALID_REPLICA_ASSIGNMENT",

	"45_alter_partition_reassignments/unknown broker":   "Kafka's message names collections of Scala",
	"45_alter_partition_reassignments/a replica twice":  "Kafka's message names collections of Scala",
	"45_alter_partition_reassignments/negative replica": "Kafka's message names collections of Scala",
}

// ofOneRun are settings that name a port or a folder.
var ofOneRun = map[string]bool{"listeners": true, "log.dirs": true, "zookeeper.connect": true}

// compareLive holds what a live cluster answered against the goldens. Topic
// ids, the cluster's id and addresses are made equal by name.
func compareLive(t *testing.T, r *recorder) {
	recorded := readCluster(t)
	for _, file := range goldenFiles {
		want := map[string]exchange{}
		for _, e := range readGolden(t, file) {
			want[e.name+" @"+e.door] = e
		}
		t.Run(file, func(t *testing.T) {
			for _, e := range r.files[file] {
				t.Run(e.name+" @"+e.door, func(t *testing.T) {
					name := e.name[:strings.LastIndex(e.name, " v")]
					if why := cmp.Or(explained[name], liveDifferences[file+"/"+name]); why != "" {
						t.Skip(why)
					}
					recordedText := recorded.neutral(t, want[e.name+" @"+e.door])
					require.Equal(t, recordedText, r.cluster.neutral(t, e))
				})
			}
		})
	}
}

// neutral is an answer as text without what belongs to one cluster alone.
func (c recordedCluster) neutral(t *testing.T, e exchange) string {
	if len(e.response) == 0 {
		return "closed"
	}
	key, version := int16(binary.BigEndian.Uint16(e.request)), int16(binary.BigEndian.Uint16(e.request[2:]))
	if api, served := wire.Lookup(key); served && !api.Serves(version) {
		version = 0
	}
	resp := decodeAnswer(t, key, version, e.response)
	c.forgetIDs(resp)
	text := comparable391(resp)
	for door, addr := range c.doors {
		_, port, _ := strings.Cut(addr, ":")
		text = strings.ReplaceAll(text, port, "port of "+door)
	}
	return strings.ReplaceAll(text, c.clusterID, "cluster")
}

// forgetIDs replaces ids of topics by numbers in the order of their names, and
// of sessions by 1.
func (c recordedCluster) forgetIDs(resp kmsg.Response) {
	var names []string
	for name := range c.topicIDs {
		names = append(names, name)
	}
	sort.Strings(names)
	neutral := func(id *[16]byte) {
		for i, name := range names {
			if c.topicIDs[name] == *id {
				*id = [16]byte{0xff, byte(i)}
				return
			}
		}
		if hex.EncodeToString(id[3:]) != strings.Repeat("00", 13) { // not one that was made up
			*id = [16]byte{0xfe}
		}
	}
	switch r := resp.(type) {
	case *kmsg.ApiVersionsResponse:
		r.FinalizedFeaturesEpoch = 0
	case *kmsg.DescribeConfigsResponse:
		for i := range r.Resources {
			for j := range r.Resources[i].Configs {
				c := &r.Resources[i].Configs[j]
				if c.Documentation != nil {
					c.Documentation = kmsg.StringPtr("in other words")
				}
				if ofOneRun[c.Name] {
					c.Value, c.Source, c.ConfigSynonyms = nil, 0, nil
				}
			}
		}
	case *kmsg.MetadataResponse:
		for i := range r.Topics {
			neutral(&r.Topics[i].TopicID)
		}
	case *kmsg.FetchResponse:
		r.SessionID = min(r.SessionID, 1)
		for i := range r.Topics {
			neutral(&r.Topics[i].TopicID)
		}
	case *kmsg.CreateTopicsResponse:
		for i := range r.Topics {
			neutral(&r.Topics[i].TopicID)
		}
	case *kmsg.DeleteTopicsResponse:
		for i := range r.Topics {
			neutral(&r.Topics[i].TopicID)
		}
	case *kmsg.LeaderAndISRResponse:
		for i := range r.Topics {
			neutral(&r.Topics[i].TopicID)
		}
	}
}
