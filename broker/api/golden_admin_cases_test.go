package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// What is asked of the administration, the controller and the log directories.

func createTopic(name string, partitions int32, factor int16, assignment [][]int32, configs ...string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, factor
	for i, replicas := range assignment {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), replicas
		t.ReplicaAssignment = append(t.ReplicaAssignment, a)
	}
	for i := 0; i < len(configs); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name = configs[i]
		if configs[i+1] != "" {
			c.Value = &configs[i+1]
		}
		t.Configs = append(t.Configs, c)
	}
	return t
}

func createTopicsCases(r *recorder) {
	const file = "19_create_topics"
	ask := func(name, door string, from, to int16, timeout int32, validate bool, topics ...kmsg.CreateTopicsRequestTopic) {
		r.at(file, name, door, from, to, func(int16) kmsg.Request {
			req := kmsg.NewPtrCreateTopicsRequest()
			req.TimeoutMillis, req.ValidateOnly, req.Topics = timeout, validate, topics
			return req
		})
	}
	ask("not controller", "B2", 0, 7, 1000, false, createTopic("new", 1, 1, nil), createTopic("new", 1, 1, nil))
	ask("nothing", "PLAINTEXT", 0, 7, 1000, false)
	ask("existing", "PLAINTEXT", 0, 7, 1000, false, createTopic("one", 1, 99, nil))
	ask("existing, validate", "PLAINTEXT", 1, 7, 1000, true, createTopic("one", 1, 1, nil))
	ask("named twice", "PLAINTEXT", 1, 7, 1000, true, createTopic("new", 1, 1, nil), createTopic("new", 2, 1, nil), createTopic("newer", 1, 1, nil))
	ask("cluster metadata", "PLAINTEXT", 1, 7, 1000, true, createTopic(metadataTopic, 1, 1, nil))
	ask("valid, validate", "PLAINTEXT", 1, 7, 1000, true, createTopic("new", 3, 2, nil, "retention.ms", "1000"))
	ask("defaults, validate", "PLAINTEXT", 4, 7, 1000, true, createTopic("new", -1, -1, nil))
	wrong := map[string]kmsg.CreateTopicsRequestTopic{
		"factor 0":               createTopic("new", 1, 0, nil),
		"factor -2":              createTopic("new", 1, -2, nil),
		"factor 5":               createTopic("new", 1, 5, nil),
		"partitions 0":           createTopic("new", 0, 1, nil),
		"partitions -5":          createTopic("new", -5, 1, nil),
		"count and assignment":   createTopic("new", 1, 1, [][]int32{{1}}),
		"duplicate replica":      createTopic("new", -1, -1, [][]int32{{1, 1}}),
		"unequal lengths":        createTopic("new", -1, -1, [][]int32{{1}, {1, 2}}),
		"empty replicas":         createTopic("new", -1, -1, [][]int32{{}}),
		"unknown broker":         createTopic("new", -1, -1, [][]int32{{77}}),
		"name empty":             createTopic("", 1, 1, nil),
		"name dot":               createTopic(".", 1, 1, nil),
		"name too long":          createTopic(strings.Repeat("x", 250), 1, 1, nil),
		"name blank":             createTopic("a b", 1, 1, nil),
		"unknown config":         createTopic("new", 1, 1, nil, "nonsense.key", "1"),
		"bad config value":       createTopic("new", 1, 1, nil, "retention.ms", "soon"),
		"null config value":      createTopic("new", 1, 1, nil, "retention.ms", ""),
		"config below its range": createTopic("new", 1, 1, nil, "segment.bytes", "1"),
	}
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		ask(name, "PLAINTEXT", 4, 7, 1000, true, wrong[name])
	}
	gap := createTopic("new", -1, -1, [][]int32{{1}, {1}})
	gap.ReplicaAssignment[1].Partition = 5
	ask("assignment with a gap", "PLAINTEXT", 4, 7, 1000, true, gap)
	for version := int16(0); version <= 7; version++ {
		name := fmt.Sprintf("made-%d", version)
		ask("created", "PLAINTEXT", version, version, 10000, false, createTopic(name, -1, -1, [][]int32{{1}, {2}}))
		ask("created, not waited for", "PLAINTEXT", version, version, 0, false, createTopic("un"+name, -1, -1, [][]int32{{1}, {2}}))
	}
}

func createPartitionsCases(r *recorder) {
	const file = "37_create_partitions"
	topic := func(name string, count int32, assignment ...[]int32) kmsg.CreatePartitionsRequestTopic {
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = name, count
		for _, replicas := range assignment {
			a := kmsg.NewCreatePartitionsRequestTopicAssignment()
			a.Replicas = replicas
			t.Assignment = append(t.Assignment, a)
		}
		return t
	}
	ask := func(name, door string, from, to int16, timeout int32, validate bool, topics ...kmsg.CreatePartitionsRequestTopic) {
		r.at(file, name, door, from, to, func(int16) kmsg.Request {
			req := kmsg.NewPtrCreatePartitionsRequest()
			req.TimeoutMillis, req.ValidateOnly, req.Topics = timeout, validate, topics
			return req
		})
	}
	ask("not controller", "B2", 0, 3, 1000, false, topic("one", 2), topic("two", 5))
	ask("named twice", "PLAINTEXT", 0, 3, 1000, true, topic("one", 2), topic("one", 3))
	ask("unknown topic", "PLAINTEXT", 0, 3, 1000, true, topic("nobody", 2))
	ask("as many", "PLAINTEXT", 0, 3, 1000, true, topic("two", 2))
	ask("fewer", "PLAINTEXT", 0, 3, 1000, true, topic("two", 1))
	ask("assignment too short", "PLAINTEXT", 0, 3, 1000, true, topic("two", 4, []int32{1, 2}))
	ask("assignment of unknown broker", "PLAINTEXT", 0, 3, 1000, true, topic("two", 3, []int32{77, 78}))
	ask("assignment of another factor", "PLAINTEXT", 0, 3, 1000, true, topic("two", 3, []int32{1}))
	ask("valid, validate", "PLAINTEXT", 0, 3, 1000, true, topic("two", 4))
	for version := int16(0); version <= 3; version++ {
		ask("enlarged", "PLAINTEXT", version, version, 10000, false, topic(fmt.Sprintf("made-%d", version), 3, []int32{1}))
		ask("enlarged, not waited for", "PLAINTEXT", version, version, 0, false, topic(fmt.Sprintf("made-%d", version), 4, []int32{1}))
	}
}

func deleteTopicsCases(r *recorder) {
	const file = "20_delete_topics"
	ask := func(name, door string, from, to int16, timeout int32, fill func(*kmsg.DeleteTopicsRequest)) {
		r.at(file, name, door, from, to, func(version int16) kmsg.Request {
			req := kmsg.NewPtrDeleteTopicsRequest()
			req.TimeoutMillis = timeout
			fill(req)
			if version >= 6 {
				for i := range req.TopicNames {
					t := kmsg.NewDeleteTopicsRequestTopic()
					t.Topic = &req.TopicNames[i]
					req.Topics = append(req.Topics, t)
				}
			}
			return req
		})
	}
	named := func(names ...string) func(*kmsg.DeleteTopicsRequest) {
		return func(req *kmsg.DeleteTopicsRequest) { req.TopicNames = names }
	}
	byID := func(id [16]byte, name *string) func(*kmsg.DeleteTopicsRequest) {
		return func(req *kmsg.DeleteTopicsRequest) {
			t := kmsg.NewDeleteTopicsRequestTopic()
			t.Topic, t.TopicID = name, id
			req.Topics = append(req.Topics, t)
		}
	}
	ask("not controller", "B2", 0, 6, 1000, named("one", "nobody"))
	ask("nothing", "PLAINTEXT", 0, 6, 1000, named())
	ask("unknown topic", "PLAINTEXT", 0, 6, 1000, named("nobody"))
	ask("unknown topic twice", "PLAINTEXT", 0, 6, 1000, named("nobody", "nobody"))
	ask("unknown id", "PLAINTEXT", 6, 6, 1000, byID([16]byte{1, 2, 3}, nil))
	ask("id and name", "PLAINTEXT", 6, 6, 1000, byID(r.cluster.topicIDs["one"], kmsg.StringPtr("one")))
	for version := int16(0); version <= 6; version++ {
		ask("deleted", "PLAINTEXT", version, version, 10000, named(fmt.Sprintf("made-%d", version)))
		ask("deleted, not waited for", "PLAINTEXT", version, version, 0, named(fmt.Sprintf("unmade-%d", version)))
	}
}

func describeConfigsCases(r *recorder) {
	const file = "32_describe_configs"
	ask := func(name string, kind kmsg.ConfigResourceType, resource string, keys ...string) {
		r.at(file, name, "PLAINTEXT", 0, 4, func(version int16) kmsg.Request {
			req := kmsg.NewPtrDescribeConfigsRequest()
			req.IncludeSynonyms, req.IncludeDocumentation = true, true
			res := kmsg.NewDescribeConfigsRequestResource()
			res.ResourceType, res.ResourceName, res.ConfigNames = kind, resource, keys
			req.Resources = append(req.Resources, res)
			return req
		})
	}
	ask("topic, two keys", kmsg.ConfigResourceTypeTopic, "keyed", "cleanup.policy", "retention.ms")
	ask("topic, unknown key", kmsg.ConfigResourceTypeTopic, "keyed", "nonsense")
	ask("unknown topic", kmsg.ConfigResourceTypeTopic, "nobody", "cleanup.policy")
	ask("invalid topic", kmsg.ConfigResourceTypeTopic, "a b", "cleanup.policy")
	ask("broker, three keys", kmsg.ConfigResourceTypeBroker, "1", "log.retention.ms", "num.io.threads", "ssl.keystore.password")
	ask("another broker", kmsg.ConfigResourceTypeBroker, "2", "num.io.threads")
	ask("broker that is no number", kmsg.ConfigResourceTypeBroker, "x", "num.io.threads")
	ask("all brokers", kmsg.ConfigResourceTypeBroker, "", "num.io.threads")
	ask("logger of another broker", kmsg.ConfigResourceTypeBrokerLogger, "2", "root")
	ask("unknown type", kmsg.ConfigResourceType(3), "x", "y")
	for _, kind := range []struct {
		name     string
		kind     kmsg.ConfigResourceType
		resource string
	}{{"topic", kmsg.ConfigResourceTypeTopic, "keyed"}, {"broker", kmsg.ConfigResourceTypeBroker, "1"}} {
		for _, keys := range [][]string{nil, {}} {
			version := int16(4)
			if keys != nil {
				version = 1
			}
			r.at(file, kind.name+", all keys", "PLAINTEXT", version, version, func(int16) kmsg.Request {
				req := kmsg.NewPtrDescribeConfigsRequest()
				req.IncludeSynonyms = true
				res := kmsg.NewDescribeConfigsRequestResource()
				res.ResourceType, res.ResourceName, res.ConfigNames = kind.kind, kind.resource, keys
				req.Resources = append(req.Resources, res)
				return req
			})
		}
	}
}

func alterConfigsCases(r *recorder) {
	alter := func(name string, kind kmsg.ConfigResourceType, resource string, configs ...string) {
		res := kmsg.NewAlterConfigsRequestResource()
		res.ResourceType, res.ResourceName = kind, resource
		inc := kmsg.NewIncrementalAlterConfigsRequestResource()
		inc.ResourceType, inc.ResourceName = kind, resource
		for i := 0; i < len(configs); i += 2 {
			c := kmsg.NewAlterConfigsRequestResourceConfig()
			c.Name = configs[i]
			ic := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			ic.Name = configs[i]
			if configs[i+1] != "" {
				c.Value, ic.Value = &configs[i+1], &configs[i+1]
			}
			res.Configs, inc.Configs = append(res.Configs, c), append(inc.Configs, ic)
		}
		times := 1
		if strings.HasPrefix(name, "twice") {
			times = 2
		}
		last := int16(2)
		if times > 1 {
			last = 0 // Kafka does not answer
		}
		r.at("33_alter_configs", name, "PLAINTEXT", 0, last, func(int16) kmsg.Request {
			req := kmsg.NewPtrAlterConfigsRequest()
			req.ValidateOnly = true
			for range times {
				req.Resources = append(req.Resources, res)
			}
			return req
		})
		r.at("44_incremental_alter_configs", name, "PLAINTEXT", 0, 1, func(int16) kmsg.Request {
			req := kmsg.NewPtrIncrementalAlterConfigsRequest()
			req.ValidateOnly = true
			for range times {
				req.Resources = append(req.Resources, inc)
			}
			return req
		})
	}
	alter("topic", kmsg.ConfigResourceTypeTopic, "keyed", "retention.ms", "1000")
	alter("twice the same resource", kmsg.ConfigResourceTypeTopic, "keyed", "retention.ms", "1000")
	alter("a key twice", kmsg.ConfigResourceTypeTopic, "keyed", "retention.ms", "1000", "retention.ms", "2000")
	alter("null values", kmsg.ConfigResourceTypeTopic, "keyed", "retention.ms", "", "segment.ms", "")
	alter("unknown topic", kmsg.ConfigResourceTypeTopic, "nobody", "retention.ms", "1")
	alter("unknown key", kmsg.ConfigResourceTypeTopic, "keyed", "nonsense", "1")
	alter("bad value", kmsg.ConfigResourceTypeTopic, "keyed", "retention.ms", "soon")
	alter("another broker", kmsg.ConfigResourceTypeBroker, "2", "num.io.threads", "4")
	alter("read-only broker key", kmsg.ConfigResourceTypeBroker, "1", "num.partitions", "4")
	alter("unknown type", kmsg.ConfigResourceType(3), "x", "a", "b")
}

func deleteRecordsCases(r *recorder) {
	const file = "21_delete_records"
	ask := func(name, topic string, part int32, offset int64) {
		r.at(file, name, "PLAINTEXT", 0, 2, func(int16) kmsg.Request {
			req := kmsg.NewPtrDeleteRecordsRequest()
			req.TimeoutMillis = 3000
			t := kmsg.NewDeleteRecordsRequestTopic()
			t.Topic = topic
			p := kmsg.NewDeleteRecordsRequestTopicPartition()
			p.Partition, p.Offset = part, offset
			t.Partitions = append(t.Partitions, p)
			req.Topics = append(req.Topics, t)
			return req
		})
	}
	ask("to an offset", "one", 0, 2)
	ask("beyond the high watermark", "one", 0, 100000)
	ask("negative", "one", 0, -2)
	ask("unknown topic", "nobody", 0, 1)
	ask("unknown partition", "one", 9, 1)
	ask("not leader", "far", 0, 1)
	ask("compacted topic", "keyed", 0, 1)
	ask("internal topic", offsetsTopic, 0, 1)
	ask("to the high watermark", "one", 0, -1)
	r.at(file, "nothing", "PLAINTEXT", 0, 2, func(int16) kmsg.Request {
		req := kmsg.NewPtrDeleteRecordsRequest()
		req.TimeoutMillis = 1000
		return req
	})
}

func describeLogDirsCases(r *recorder) {
	const file = "35_describe_log_dirs"
	ask := func(name string, topics []kmsg.DescribeLogDirsRequestTopic) {
		r.at(file, name, "PLAINTEXT", 0, 4, func(int16) kmsg.Request {
			req := kmsg.NewPtrDescribeLogDirsRequest()
			req.Topics = topics
			return req
		})
	}
	topic := func(name string, parts ...int32) kmsg.DescribeLogDirsRequestTopic {
		t := kmsg.NewDescribeLogDirsRequestTopic()
		t.Topic, t.Partitions = name, parts
		return t
	}
	ask("two of them", []kmsg.DescribeLogDirsRequestTopic{topic("keyed", 0), topic("two", 0, 1, 5), topic("nobody", 0)})
	ask("none", []kmsg.DescribeLogDirsRequestTopic{})
}

func autoCreateCases(r *recorder) {
	for version := int16(0); version <= 12; version++ {
		r.at("03_metadata_creating", "created by asking", "PLAINTEXT", version, version, func(int16) kmsg.Request {
			req := kmsg.NewPtrMetadataRequest()
			req.AllowAutoTopicCreation = true
			t := kmsg.NewMetadataRequestTopic()
			t.Topic = kmsg.StringPtr(fmt.Sprintf("asked-%d", version))
			req.Topics = append(req.Topics, t)
			return req
		})
	}
}

func electLeadersCases(r *recorder) {
	const file = "43_elect_leaders"
	ask := func(name, door string, from int16, kind int8, topics ...kmsg.ElectLeadersRequestTopic) {
		r.at(file, name, door, from, 2, func(int16) kmsg.Request {
			req := kmsg.NewPtrElectLeadersRequest()
			req.ElectionType, req.TimeoutMillis, req.Topics = kind, 5000, topics
			return req
		})
	}
	topic := func(name string, parts ...int32) kmsg.ElectLeadersRequestTopic {
		t := kmsg.NewElectLeadersRequestTopic()
		t.Topic, t.Partitions = name, parts
		return t
	}
	ask("not controller", "B2", 0, 0, topic("one", 0), topic("nobody", 0))
	ask("not needed", "PLAINTEXT", 0, 0, topic("one", 0))
	ask("unknown partitions", "PLAINTEXT", 0, 0, topic("one", 9), topic("nobody", 0))
	ask("unclean, not needed", "PLAINTEXT", 1, 1, topic("one", 0))
	ask("all", "PLAINTEXT", 0, 0)
	r.at(file, "none", "PLAINTEXT", 0, 2, func(int16) kmsg.Request {
		req := kmsg.NewPtrElectLeadersRequest()
		req.TimeoutMillis, req.Topics = 1000, []kmsg.ElectLeadersRequestTopic{}
		return req
	})
}

func reassignmentCases(r *recorder) {
	ask := func(name, door, topic string, part int32, replicas []int32) {
		r.at("45_alter_partition_reassignments", name, door, 0, 0, func(int16) kmsg.Request {
			req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
			req.TimeoutMillis = 5000
			t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
			t.Topic = topic
			p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
			p.Partition, p.Replicas = part, replicas
			t.Partitions = append(t.Partitions, p)
			req.Topics = append(req.Topics, t)
			return req
		})
	}
	ask("not controller", "B2", "one", 0, []int32{2})
	ask("unknown topic", "PLAINTEXT", "nobody", 0, []int32{2})
	ask("unknown partition", "PLAINTEXT", "one", 9, []int32{2})
	ask("unknown broker", "PLAINTEXT", "one", 0, []int32{77})
	ask("no replicas", "PLAINTEXT", "one", 0, []int32{})
	ask("a replica twice", "PLAINTEXT", "one", 0, []int32{1, 1})
	ask("negative replica", "PLAINTEXT", "one", 0, []int32{-1})
	ask("nothing to cancel", "PLAINTEXT", "one", 0, nil)
	list := func(name, door string, topics []kmsg.ListPartitionReassignmentsRequestTopic) {
		r.at("46_list_partition_reassignments", name, door, 0, 0, func(int16) kmsg.Request {
			req := kmsg.NewPtrListPartitionReassignmentsRequest()
			req.TimeoutMillis, req.Topics = 5000, topics
			return req
		})
	}
	one := kmsg.NewListPartitionReassignmentsRequestTopic()
	one.Topic, one.Partitions = "one", []int32{0, 9}
	list("not controller", "B2", nil)
	list("all", "PLAINTEXT", nil)
	list("none", "PLAINTEXT", []kmsg.ListPartitionReassignmentsRequestTopic{})
	list("of one", "PLAINTEXT", []kmsg.ListPartitionReassignmentsRequestTopic{one})
}

func brokerToControllerCases(r *recorder) {
	for _, door := range []string{"B2", "PLAINTEXT"} {
		r.at("07_controlled_shutdown", "unknown broker", door, 0, 3, func(int16) kmsg.Request {
			req := kmsg.NewPtrControlledShutdownRequest()
			req.BrokerID, req.BrokerEpoch = 9, -1
			return req
		})
		r.at("56_alter_partition", "stale broker epoch", door, 0, 3, func(int16) kmsg.Request {
			req := kmsg.NewPtrAlterPartitionRequest()
			req.BrokerID, req.BrokerEpoch = 1, 1
			t := kmsg.NewAlterPartitionRequestTopic()
			t.Topic, t.TopicID = "one", r.cluster.topicIDs["one"]
			p := kmsg.NewAlterPartitionRequestTopicPartition()
			p.NewISR = []int32{1}
			t.Partitions = append(t.Partitions, p)
			req.Topics = append(req.Topics, t)
			return req
		})
	}
	r.at("07_controlled_shutdown", "stale broker epoch", "PLAINTEXT", 2, 3, func(int16) kmsg.Request {
		req := kmsg.NewPtrControlledShutdownRequest()
		req.BrokerID, req.BrokerEpoch = 2, 1
		return req
	})
}

func updateFeaturesCases(r *recorder) {
	ask := func(name, door string, from, to int16, updates ...kmsg.UpdateFeaturesRequestFeatureUpdate) {
		r.at("57_update_features", name, door, from, to, func(int16) kmsg.Request {
			req := kmsg.NewPtrUpdateFeaturesRequest()
			req.TimeoutMillis, req.FeatureUpdates = 5000, updates
			return req
		})
	}
	update := func(feature string, level int16, lower bool, kind int8) kmsg.UpdateFeaturesRequestFeatureUpdate {
		u := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		u.Feature, u.MaxVersionLevel, u.AllowDowngrade, u.UpgradeType = feature, level, lower, kind
		return u
	}
	ask("not controller", "B2", 0, 1, update("a", 1, false, 1))
	ask("nothing", "PLAINTEXT", 0, 1)
	ask("unknown", "PLAINTEXT", 0, 1, update("metadata.version", 7, false, 1), update("a", 1, true, 2))
	ask("no name", "PLAINTEXT", 0, 1, update("", 1, false, 1))
	ask("too low", "PLAINTEXT", 0, 1, update("a", 0, false, 1), update("b", -3, false, 1))
	ask("taken away", "PLAINTEXT", 0, 1, update("a", 0, true, 2), update("b", -3, true, 3))
	ask("unknown kinds", "PLAINTEXT", 1, 1, update("a", 1, false, 0), update("b", 0, false, 4), update("c", 0, false, -1))
}

func clientMetricsCases(r *recorder) {
	const file = "32_client_metrics"
	for _, asked := range [][2]string{{"describe", "m"}, {"describe without a name", ""}} {
		r.at(file, asked[0], "PLAINTEXT", 0, 4, func(int16) kmsg.Request {
			req := kmsg.NewPtrDescribeConfigsRequest()
			one := kmsg.NewDescribeConfigsRequestResource()
			one.ResourceType, one.ResourceName = kmsg.ConfigResourceTypeClientMetrics, asked[1]
			req.Resources = append(req.Resources, one)
			return req
		})
	}
	r.at(file, "alter", "PLAINTEXT", 0, 2, func(int16) kmsg.Request {
		req := kmsg.NewPtrAlterConfigsRequest()
		one := kmsg.NewAlterConfigsRequestResource()
		one.ResourceType, one.ResourceName = kmsg.ConfigResourceTypeClientMetrics, "m"
		one.Configs = []kmsg.AlterConfigsRequestResourceConfig{{Name: "interval.ms", Value: kmsg.StringPtr("1000")}}
		req.Resources = append(req.Resources, one)
		return req
	})
	r.at(file, "alter single settings", "PLAINTEXT", 0, 1, func(int16) kmsg.Request {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		one := kmsg.NewIncrementalAlterConfigsRequestResource()
		one.ResourceType, one.ResourceName = kmsg.ConfigResourceTypeClientMetrics, "m"
		one.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "interval.ms", Value: kmsg.StringPtr("1000")}}
		req.Resources = append(req.Resources, one)
		return req
	})
}
