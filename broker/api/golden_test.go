package api

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/wire"
)

// goldenFiles in the order in which they were recorded: what one produces the
// next fetches.
var goldenFiles = []string{
	"18_api_versions", "03_metadata", "60_describe_cluster", "00_produce", "01_fetch", "02_list_offsets",
	"23_offset_for_leader_epoch", "22_init_producer_id", "04_leader_and_isr", "05_stop_replica", "06_update_metadata",
	"19_create_topics", "37_create_partitions", "20_delete_topics", "32_describe_configs", "33_alter_configs",
	"44_incremental_alter_configs", "49_alter_client_quotas", "48_describe_client_quotas", "50_describe_user_scram_credentials",
	"51_alter_user_scram_credentials", "21_delete_records", "35_describe_log_dirs", "03_metadata_creating",
	"43_elect_leaders", "45_alter_partition_reassignments", "46_list_partition_reassignments", "07_controlled_shutdown", "56_alter_partition",
	"57_update_features", "32_client_metrics",
}

// TestAnswersAsKafkaDoes replays what Apache Kafka 3.9.1 was asked, over real
// partitions and logs. ZooKeeper is played: what the administration says there
// is taken from the recorded answer, so that these cases hold the handlers
// alone.
func TestAnswersAsKafkaDoes(t *testing.T) {
	cluster := readCluster(t)
	worlds := map[string]*world{"PLAINTEXT": newWorld(t, 1, cluster), "B2": newWorld(t, 2, cluster)}
	worlds["OUT"] = worlds["PLAINTEXT"]
	for _, file := range goldenFiles {
		t.Run(file, func(t *testing.T) {
			for _, e := range readGolden(t, file) {
				t.Run(e.name+" @"+e.door, func(t *testing.T) {
					w := worlds[e.door]
					w.t = t
					replay(t, w, cluster, e)
				})
			}
		})
	}
}

func replay(t *testing.T, w *world, cluster recordedCluster, e exchange) {
	key, version := int16(binary.BigEndian.Uint16(e.request)), int16(binary.BigEndian.Uint16(e.request[2:]))
	if why := explained[strings.TrimSuffix(e.name, " v"+strconv.Itoa(int(version)))]; why != "" {
		t.Skip(why)
	}
	door := e.door
	if door == "B2" {
		door = "PLAINTEXT"
	}
	if len(e.response) == 0 {
		require.Error(t, w.handle(door, e.request).closed)
		return
	}
	answerVersion := version
	if api, served := wire.Lookup(key); served && !api.Serves(version) {
		answerVersion = 0
	}
	want := decodeAnswer(t, key, answerVersion, e.response)
	play(w, cluster, e.request, want)
	o := w.handle(door, e.request)
	require.NoError(t, o.closed)
	got := decodeAnswer(t, key, answerVersion, o.response)
	require.Equal(t, comparable391(want), comparable391(got))
}

// explained are the questions that are answered differently on purpose.
var explained = map[string]string{
	"neither id nor name":     "Kafka stumbles (UNKNOWN_SERVER_ERROR); here it is INVALID_REQUEST",
	"null records":            "Kafka stumbles and never answers; here it is INVALID_RECORD",
	"twice the same resource": "Kafka's AlterConfigs stumbles and never answers; here it is what IncrementalAlterConfigs says",
}

// comparable391 is an answer as text, with what is different in every run, or
// comes in no order, made equal.
func comparable391(resp kmsg.Response) string {
	switch r := resp.(type) {
	case *kmsg.ApiVersionsResponse:
		r.ApiKeys = slices.DeleteFunc(r.ApiKeys, func(row kmsg.ApiVersionsResponseApiKey) bool {
			_, served := wire.Lookup(row.ApiKey)
			return !served
		})
	case *kmsg.MetadataResponse:
		sortBy(r.Brokers, func(b kmsg.MetadataResponseBroker) int32 { return b.NodeID })
		sortBy(r.Topics, func(t kmsg.MetadataResponseTopic) string { return stringOrEmpty(t.Topic) })
		for i := range r.Topics {
			sortBy(r.Topics[i].Partitions, func(p kmsg.MetadataResponseTopicPartition) int32 { return p.Partition })
		}
	case *kmsg.DescribeClusterResponse:
		sortBy(r.Brokers, func(b kmsg.DescribeClusterResponseBroker) int32 { return b.NodeID })
	case *kmsg.ProduceResponse:
		sortBy(r.Topics, func(t kmsg.ProduceResponseTopic) string { return t.Topic })
		for i := range r.Topics {
			sortBy(r.Topics[i].Partitions, func(p kmsg.ProduceResponseTopicPartition) int32 { return p.Partition })
		}
	case *kmsg.FetchResponse:
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				// Of a request that is refused whole Kafka tells null records, here
				// they are empty: to a reader it is the same.
				if p := &r.Topics[i].Partitions[j]; p.RecordBatches == nil {
					p.RecordBatches = []byte{}
				}
			}
		}
	case *kmsg.InitProducerIDResponse:
		if r.ProducerID >= 0 {
			r.ProducerID = 0
		}
	case *kmsg.DescribeLogDirsResponse:
		for i := range r.Dirs {
			r.Dirs[i].Dir, r.Dirs[i].TotalBytes, r.Dirs[i].UsableBytes = "", min(r.Dirs[i].TotalBytes, 1), min(r.Dirs[i].UsableBytes, 1)
			sortBy(r.Dirs[i].Topics, func(t kmsg.DescribeLogDirsResponseDirTopic) string { return t.Topic })
			for j := range r.Dirs[i].Topics {
				sortBy(r.Dirs[i].Topics[j].Partitions, func(p kmsg.DescribeLogDirsResponseDirTopicPartition) int32 { return p.Partition })
			}
		}
	case *kmsg.CreatePartitionsResponse:
		sortBy(r.Topics, func(t kmsg.CreatePartitionsResponseTopic) string { return t.Topic })
	case *kmsg.CreateTopicsResponse:
		sortBy(r.Topics, func(t kmsg.CreateTopicsResponseTopic) string { return t.Topic })
		for i := range r.Topics {
			sortBy(r.Topics[i].Configs, func(c kmsg.CreateTopicsResponseTopicConfig) string { return c.Name })
		}
	case *kmsg.DescribeConfigsResponse:
		for i := range r.Resources {
			sortBy(r.Resources[i].Configs, func(c kmsg.DescribeConfigsResponseResourceConfig) string { return c.Name })
		}
	case *kmsg.ElectLeadersResponse:
		sortBy(r.Topics, func(t kmsg.ElectLeadersResponseTopic) string { return t.Topic })
	case *kmsg.DescribeClientQuotasResponse:
		sortQuotas(r)
	case *kmsg.AlterClientQuotasResponse:
		sortAlteredQuotas(r)
	case *kmsg.AlterUserSCRAMCredentialsResponse:
		sortBy(r.Results, func(u kmsg.AlterUserSCRAMCredentialsResponseResult) string { return u.User })
	case *kmsg.UpdateFeaturesResponse:
		sortBy(r.Results, func(f kmsg.UpdateFeaturesResponseResult) string { return f.Feature })
	case *kmsg.AlterConfigsResponse:
		sortBy(r.Resources, func(t kmsg.AlterConfigsResponseResource) string { return t.ResourceName })
	}
	text, err := json.MarshalIndent(resp, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func sortBy[T any, K cmp.Ordered](s []T, key func(T) K) {
	slices.SortStableFunc(s, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}

// asError is the error that gives a code and a message.
func asError(code int16, message *string) error {
	if code == 0 {
		return nil
	}
	known := kerr.ErrorForCode(code)
	if message == nil {
		return known
	}
	var k *kerr.Error
	errors.As(known, &k)
	return &admin.Error{Code: k, Message: *message}
}

// play prepares what is beyond the handlers to do what it did for Kafka: the
// ids of fetch sessions, and the administration.
func play(w *world, cluster recordedCluster, request []byte, want kmsg.Response) {
	w.controller.do = func(kmsg.Request) kmsg.Response { return want }
	w.admin.playQuotas(want)
	w.admin.playScram(want)
	switch r := want.(type) {
	case *kmsg.FetchResponse:
		w.d.sessions.newID = func() int32 { return r.SessionID }
	case *kmsg.MetadataResponse:
		w.admin.createTopics = func(specs []admin.TopicSpec, _ bool) (results []admin.TopicResult) {
			for _, s := range specs {
				results = append(results, admin.TopicResult{Name: s.Name})
			}
			return results
		}
	case *kmsg.CreateTopicsResponse:
		w.admin.createTopics = playCreateTopics(w, cluster, r)
	case *kmsg.CreatePartitionsResponse:
		w.admin.createPartitions = playCreatePartitions(w, cluster, r)
	case *kmsg.DeleteTopicsResponse:
		w.admin.deleteTopics = func(names []string) (results []admin.DeleteResult) {
			for _, name := range names {
				results = append(results, admin.DeleteResult{Name: name})
			}
			if r.Topics[0].ErrorCode == 0 {
				t := w.cache.Load().Topic(names[0])
				w.tell(cluster, topicState(names[0], t.ID, make([][]int32, len(t.Partitions))))
			}
			return results
		}
	case *kmsg.DescribeConfigsResponse:
		w.admin.describe = playDescribe(r)
	case *kmsg.AlterConfigsResponse:
		w.admin.alter = func(specs []admin.AlterSpec) (results []admin.AlterResult) {
			for range specs {
				results = append(results, admin.AlterResult{Err: asError(r.Resources[0].ErrorCode, r.Resources[0].ErrorMessage)})
			}
			return results
		}
	case *kmsg.IncrementalAlterConfigsResponse:
		w.admin.incremental = func(specs []admin.IncrementalSpec) (results []admin.AlterResult) {
			for range specs {
				results = append(results, admin.AlterResult{Err: asError(r.Resources[0].ErrorCode, r.Resources[0].ErrorMessage)})
			}
			return results
		}
	}
}

func playCreateTopics(w *world, cluster recordedCluster, want *kmsg.CreateTopicsResponse) func([]admin.TopicSpec, bool) []admin.TopicResult {
	return func(specs []admin.TopicSpec, validate bool) (results []admin.TopicResult) {
		for _, s := range specs {
			at := slices.IndexFunc(want.Topics, func(t kmsg.CreateTopicsResponseTopic) bool { return t.Topic == s.Name })
			row := want.Topics[at]
			if row.ErrorCode != 0 && row.ErrorCode != kerr.RequestTimedOut.Code {
				results = append(results, admin.TopicResult{Name: s.Name, Err: asError(row.ErrorCode, row.ErrorMessage)})
				continue
			}
			r := admin.TopicResult{Name: s.Name, ID: row.TopicID, NumPartitions: row.NumPartitions, ReplicationFactor: row.ReplicationFactor}
			for _, c := range row.Configs {
				r.Configs = append(r.Configs, admin.ConfigDescription{Name: c.Name, Value: c.Value, ReadOnly: c.ReadOnly, Source: admin.ConfigSource(c.Source), Sensitive: c.IsSensitive})
			}
			if !validate {
				parts := make([][]int32, len(s.Assignment))
				for id, replicas := range s.Assignment {
					parts[id] = replicas
				}
				w.tell(cluster, topicState(s.Name, row.TopicID, parts))
			}
			results = append(results, r)
		}
		return results
	}
}

func playCreatePartitions(w *world, cluster recordedCluster, want *kmsg.CreatePartitionsResponse) func([]admin.PartitionsSpec, bool) []admin.PartitionsResult {
	return func(specs []admin.PartitionsSpec, validate bool) (results []admin.PartitionsResult) {
		for _, s := range specs {
			row := want.Topics[0]
			if row.ErrorCode != 0 && row.ErrorCode != kerr.RequestTimedOut.Code {
				results = append(results, admin.PartitionsResult{Name: s.Name, Err: asError(row.ErrorCode, row.ErrorMessage)})
				continue
			}
			if !validate {
				parts := make([][]int32, s.Count)
				for i := range parts {
					parts[i] = []int32{1}
				}
				w.tell(cluster, topicState(s.Name, w.cache.Load().Topic(s.Name).ID, parts))
			}
			results = append(results, admin.PartitionsResult{Name: s.Name, Count: s.Count})
		}
		return results
	}
}

func playDescribe(want *kmsg.DescribeConfigsResponse) func([]admin.DescribeSpec, admin.DescribeOptions) []admin.DescribeResult {
	return func(specs []admin.DescribeSpec, _ admin.DescribeOptions) []admin.DescribeResult {
		row := want.Resources[0]
		r := admin.DescribeResult{Resource: specs[0].Resource, Err: asError(row.ErrorCode, row.ErrorMessage)}
		for _, c := range row.Configs {
			d := admin.ConfigDescription{
				Name: c.Name, Value: c.Value, ReadOnly: c.ReadOnly, Source: admin.ConfigSource(c.Source), Sensitive: c.IsSensitive,
				Type: admin.ConfigType(c.ConfigType), Documentation: c.Documentation,
			}
			for _, s := range c.ConfigSynonyms {
				d.Synonyms = append(d.Synonyms, admin.Synonym{Name: s.Name, Value: s.Value, Source: admin.ConfigSource(s.Source)})
			}
			r.Configs = append(r.Configs, d)
		}
		return []admin.DescribeResult{r}
	}
}
