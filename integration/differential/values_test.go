package differential

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/record"
)

// generator makes requests of one seed. It learns nothing from answers: what only these tell is named by symbols, see symbols_test.go.
type generator struct {
	r     *rand.Rand
	seed  int
	turns map[int16]int // how often each API was asked
	apis  map[int16]kmsg.ApiVersionsResponseApiKey
	pools map[string][]any // by field, or by API/field where it matters whose it is
	fresh int
}

func newGenerator(seed int, apis map[int16]kmsg.ApiVersionsResponseApiKey) *generator {
	g := &generator{r: rand.New(rand.NewPCG(uint64(seed), 391)), seed: seed, turns: map[int16]int{}, apis: apis}
	g.pools = g.fields()
	return g
}

// name is a name of this seed's own, so that what seeds leave behind does not meet.
func (g *generator) name(short string) string { return "s" + strconv.Itoa(g.seed) + "-" + short }

// once is a name that no other request has.
func (g *generator) once(short string) string {
	g.fresh++
	return g.name(short) + "-" + strconv.Itoa(g.fresh)
}

// next is an empty request of an API at the version whose turn it is: one after the other, so that some dozens of requests meet all of them.
func (g *generator) next(key kmsg.Key) kmsg.Request {
	api := g.apis[key.Int16()]
	span := int(api.MaxVersion-api.MinVersion) + 1
	req := kmsg.RequestForKey(key.Int16())
	req.SetVersion(api.MinVersion + int16((g.seed*3+g.turns[key.Int16()]*5)%span))
	if span%5 == 0 {
		req.SetVersion(api.MinVersion + int16((g.seed*3+g.turns[key.Int16()])%span))
	}
	g.turns[key.Int16()]++
	return req
}

// any is a request of an API with all fields drawn from their pools.
func (g *generator) any(key kmsg.Key) kmsg.Request {
	req := g.next(key)
	g.fill(reflect.ValueOf(req).Elem(), kmsg.NameForKey(key.Int16()))
	g.mend(req)
	return req
}

func (g *generator) fill(v reflect.Value, api string) {
	for i := range v.NumField() {
		field := v.Type().Field(i).Name
		if field == "Version" || field == "UnknownTags" {
			continue
		}
		g.value(v.Field(i), api, field)
	}
}

func (g *generator) value(v reflect.Value, api, field string) {
	switch {
	case field == "Records":
		v.SetBytes(g.records())
	case v.Kind() == reflect.Struct:
		g.fill(v, api)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		g.list(v, api, field)
	default:
		choices, ok := g.pools[api+"/"+field]
		if !ok {
			choices = g.pools[field]
		}
		if len(choices) == 0 {
			panic("no pool for " + api + "/" + field)
		}
		g.set(v, choices[g.r.IntN(len(choices))])
	}
}

// set gives a field a value of a pool. nil is the null of fields that have one, and nothing to the others.
func (g *generator) set(v reflect.Value, value any) {
	switch {
	case value == nil:
		v.SetZero()
	case v.Kind() == reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(reflect.ValueOf(value).Convert(v.Type().Elem()))
		v.Set(p)
	case v.Type() == reflect.TypeFor[[16]byte]():
		v.Set(reflect.ValueOf(topicSymbol(value.(string))))
	default:
		v.Set(reflect.ValueOf(value).Convert(v.Type()))
	}
}

// list fills an array: seldom null or empty, mostly of one or two, sometimes with the same twice.
func (g *generator) list(v reflect.Value, api, field string) {
	n := 1
	switch d := g.r.IntN(100); {
	case d < 6:
		v.SetZero()
		return
	case d < 10:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return
	case d < 35:
		n = 2
	case d < 45:
		n = 3
	}
	for range n {
		e := reflect.New(v.Type().Elem()).Elem()
		g.value(e, api, field)
		v.Set(reflect.Append(v, e))
	}
	if g.r.IntN(12) == 0 {
		v.Set(reflect.Append(v, v.Index(0)))
	}
}

// mend keeps requests from what would take long, members that wait for others to come back, and from what Kafka never answers at all.
func (g *generator) mend(req kmsg.Request) {
	switch r := req.(type) {
	case *kmsg.JoinGroupRequest:
		if r.MemberID == "" {
			r.Group, r.InstanceID = g.once("group"), nil
		}
	case *kmsg.OffsetFetchRequest: // of no group at all, there is no answer
		if r.Version >= 8 && len(r.Groups) == 0 {
			r.Groups = []kmsg.OffsetFetchRequestGroup{kmsg.NewOffsetFetchRequestGroup()}
			r.Groups[0].Group = g.name("g1")
		}
	case *kmsg.CreateTopicsRequest: // of several values that are wrong, one is named: which, is the order of a hash table
		for i := range r.Topics {
			r.Topics[i].Configs = r.Topics[i].Configs[:min(1, len(r.Topics[i].Configs))]
		}
	case *kmsg.WriteTxnMarkersRequest: // markers of one producer race with each other, and a partition that is named twice is waited for for ever
		r.Markers = slices.DeleteFunc(r.Markers[:min(1, len(r.Markers))], func(m kmsg.WriteTxnMarkersRequestMarker) bool { return len(m.Topics) == 0 })
		for i := range r.Markers {
			m := &r.Markers[i]
			m.Topics = m.Topics[:min(1, len(m.Topics))]
			for j := range m.Topics {
				m.Topics[j].Partitions = slices.Compact(slices.Sorted(slices.Values(append(m.Topics[j].Partitions, 0))))
			}
		}
	case *kmsg.ProduceRequest: // of a partition that is named twice the answer depends on what is wrong with which
		seen := map[string]bool{}
		for i := range r.Topics {
			t := &r.Topics[i]
			t.Partitions = slices.DeleteFunc(slices.Clone(t.Partitions), func(p kmsg.ProduceRequestTopicPartition) bool {
				if r.Version < 3 && len(p.Records) > smallestBatch && p.Records[magicAt] == 2 {
					return true // batches came with version 3
				}
				key := fmt.Sprint(t.Topic, p.Partition)
				again := seen[key]
				seen[key] = true
				return again
			})
		}
	case *kmsg.AddPartitionsToTxnRequest: // the same transaction twice, or none, is an exception while it answers
		if r.Version >= 4 {
			r.Transactions = r.Transactions[:min(1, len(r.Transactions))]
			if len(r.Transactions) == 0 {
				r.SetVersion(3)
			}
		}
	case *kmsg.TxnOffsetCommitRequest: // Kafka makes a group for what it refuses, and keeps it until somebody sweeps
		r.Group = g.name("g3")
	case *kmsg.FetchRequest: // a session's answers tell what changed since the last one
		r.Topics = slices.DeleteFunc(r.Topics, func(t kmsg.FetchRequestTopic) bool { return len(t.Partitions) == 0 })
		seen := map[string]bool{} // which of two wishes for a partition a session keeps is its own affair
		for i := range r.Topics {
			t := &r.Topics[i]
			t.Partitions = slices.DeleteFunc(slices.Clone(t.Partitions), func(p kmsg.FetchRequestTopicPartition) bool {
				key := fmt.Sprint(t.Topic, t.TopicID, p.Partition)
				again := seen[key]
				seen[key] = true
				return again
			})
		}
		r.Topics = slices.DeleteFunc(r.Topics, func(t kmsg.FetchRequestTopic) bool { return len(t.Partitions) == 0 })
	case *kmsg.AlterConfigsRequest: // the same resource twice is an exception while it answers, and another one while it answers that
		seen := map[string]bool{}
		r.Resources = slices.DeleteFunc(r.Resources, func(of kmsg.AlterConfigsRequestResource) bool {
			key := fmt.Sprint(of.ResourceType, of.ResourceName)
			again := seen[key]
			seen[key] = true
			return again
		})
		for i := range r.Resources {
			r.Resources[i].Configs = r.Resources[i].Configs[:min(1, len(r.Resources[i].Configs))]
		}
	case *kmsg.IncrementalAlterConfigsRequest:
		for i := range r.Resources {
			r.Resources[i].Configs = r.Resources[i].Configs[:min(1, len(r.Resources[i].Configs))]
		}
	}
}

// chance is true in one of n cases.
func (g *generator) chance(n int) bool { return g.r.IntN(n) == 0 }

// pick is one of some values.
func pick[T any](g *generator, of ...T) T { return of[g.r.IntN(len(of))] }

const (
	firstTime = int64(1_600_000_000_000) // of records, which keep their own times
	aDay      = 24 * 60 * 60 * 1000
)

// records is what a producer might send: batches of all codecs, messages of old formats, and things that are none of these.
func (g *generator) records() []byte {
	switch g.r.IntN(14) {
	case 0, 1: // never null: with illegal acks Kafka does not answer that
		return []byte{}
	case 2:
		return []byte("nonsense")
	case 3, 4:
		m := record.NewMessageBuilder(nil, nil, record.MessageOptions{Magic: int8(g.r.IntN(2)), Codec: record.None}) // compressed ones are compressed anew, by another library
		for i := range 1 + g.r.IntN(3) {
			m.Append(&record.Record{Offset: int64(i), Timestamp: firstTime + int64(g.r.IntN(5000)), Key: []byte("k"), Value: []byte("v" + strconv.Itoa(i))})
		}
		set, err := m.Build()
		if err != nil {
			panic(err)
		}
		return set
	}
	b := g.batch(nil, 1+g.r.IntN(3))
	switch g.r.IntN(12) {
	case 0:
		b[len(b)-1] ^= 1 // the checksum is wrong
	case 1:
		b = b[:len(b)-1]
	case 2:
		b = append(b, g.batch(nil, 1)...) // two
	case 3:
		binary.BigEndian.PutUint64(b, 7) // at an offset of its own
	case 4:
		b[16] = byte(g.r.IntN(5)) // another format
	}
	return b
}

// batch is a batch of n records.
func (g *generator) batch(p *record.Producer, n int) []byte {
	b := record.NewBuilder(record.BuilderOptions{Codec: pick(g, record.None, record.None, record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd), Producer: p})
	for i := range n {
		key := []byte("key-" + strconv.Itoa(g.r.IntN(4)))
		if g.chance(10) {
			key = nil
		}
		var headers []record.Header
		if g.chance(5) {
			headers = append(headers, record.Header{Key: "h", Value: []byte("1")})
		}
		b.Append(firstTime+int64(g.r.IntN(5000)), key, []byte("value-"+strconv.Itoa(i)), headers...)
	}
	batch, err := b.Build()
	if err != nil {
		panic(err)
	}
	return batch
}

func many(v any, n int) []any {
	var all []any
	for range n {
		all = append(all, v)
	}
	return all
}

func mix(lists ...[]any) []any {
	var all []any
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func these[T any](vs ...T) []any {
	var all []any
	for _, v := range vs {
		all = append(all, v)
	}
	return all
}

// Topics that each seed has from its beginning, see stories_test.go, and one that never is.
const (
	orders  = "orders"  // three partitions, to which all kinds of things happen
	events  = "events"  // one partition
	configs = "configs" // only its settings change, since a broker hears of them some time later
	missing = "missing"
)

const unknownID = "?" // stands for a topic id that nothing has

// fields are the pools. CreatePartitions asks for no topic whose name is no path in ZooKeeper (empty, one dot or two): Kafka fails on it and says so of the whole request, though it has enlarged
// what stood before.
func (g *generator) fields() map[string][]any {
	n := g.name
	own := mix(many(n(orders), 6), many(n(events), 3))
	illegal := these("", ".", "..", "bad name!", strings.Repeat("x", 250), "täst")
	internal := these("__consumer_offsets", "__transaction_state")
	topics := mix(own, many(n(missing), 2), internal, illegal[:4])
	mutable := mix(own, own, these(n(missing), n("new"), n("new"), n("other"), n("a.b"), n("a_b")), illegal)
	ids := mix(many(n(orders), 4), these(n(events), n(missing), unknownID, "__consumer_offsets"), []any{nil})
	nullable := func(vs []any) []any { return mix(vs, []any{nil, nil}) }
	partitions := mix(many(0, 5), these(1, 2, 1, 3, -1, math.MaxInt32))
	epochs := mix(many(-1, 5), these(0, 0, 1, 5, -2, math.MaxInt32))
	offsets := these(int64(0), int64(1), int64(2), int64(5), int64(-1), int64(-2), int64(1000), int64(math.MaxInt64))
	groups := these(n("g1"), n("g1"), n("g2"), n("g2"), n("static"), n("nobody"), "")
	members := these("", memberSymbol(n("g1")), memberSymbol(n("g2")), memberSymbol(n("static")), "nobody")
	transactions := these(n("t1"), n("t1"), n("t2"), n("t3"), "")
	texts := these("", "text", "more text")
	topicKeys := these("retention.ms", "cleanup.policy", "min.insync.replicas", "compression.type", "max.message.bytes", "unclean.leader.election.enable", "follower.replication.throttled.replicas",
		"leader.replication.throttled.replicas", "segment.bytes", "message.timestamp.type", "message.format.version", "min.cleanable.dirty.ratio", "preallocate", "remote.storage.enable",
		"local.retention.ms", "compression.gzip.level", "nonsense", "", "cleanup.policy", "flush.messages", "message.timestamp.before.max.ms", "message.downconversion.enable", "index.interval.bytes")
	brokerKeys := these("log.retention.ms", "log.cleanup.policy", "compression.type", "background.threads", "num.io.threads", "min.insync.replicas", "leader.replication.throttled.rate",
		"follower.replication.throttled.rate", "broker.id", "zookeeper.connect", "log.flush.interval.messages", "metric.reporters",
		"ssl.keystore.location", "nonsense", "advertised.listeners", "log.cleaner.threads", "auto.create.topics.enable", "unclean.leader.election.enable", "listener.name.plaintext.ssl.cipher.suites",
		"log.message.timestamp.type", "producer.id.expiration.ms", "num.recovery.threads.per.data.dir", "log.retention.hours", "sasl.enabled.mechanisms", "message.max.bytes")
	configValues := these("1", "2", "100000", "-1", "0", "delete", "compact", "compact,delete", "true", "false", "", "abc", "gzip", "producer", "*", "0:1,1:1", "CreateTime", "2.8-IV1", "0.5", "none", " 7 ",
		"9223372036854775807", "delete,delete")
	return map[string][]any{
		"Topic": topics, "CreateTopics/Topic": mutable, "CreatePartitions/Topic": mix(own, own, illegal[3:], these(n(missing), n("new"))), "DeleteTopics/Topic": nullable(mix(these(n(missing), n("new"), n("new"), n("other"), n("a.b"), n("a_b")), illegal)),
		"TopicNames": mix(these(n(missing), n("new"), n("new"), n("other"), n("a.b"), n("a_b")), illegal), "DeleteTopics/TopicID": mix(these(n("new"), n("other"), n(missing), unknownID), many(nil, 4)),
		"Metadata/Topic": nullable(mix(topics, topics, these(n("auto"), n("auto2")))), "TopicID": ids, "Metadata/TopicID": mix(ids, many(nil, 12)),
		"SubscribedTopicNames": topics, "WriteTxnMarkers/Topic": own,
		"Partition": partitions, "Partitions": partitions, "CreateTopics/Partition": these(0, 0, 1, 1, 2, -1), "DescribeLogDirs/Topic": mix(own, these(n(missing))),
		"Replicas": mix(many(1, 8), these(2, 0, -1, 1)), "NumPartitions": these(-1, 1, 2, 3, 0, -2, 4), "ReplicationFactor": these(-1, -1, 1, 1, 0, 2, -2, 3), "Count": these(1, 2, 3, 4, 5, 6, 0, -1),
		"CurrentLeaderEpoch": epochs, "LeaderEpoch": epochs, "LastFetchedEpoch": many(-1, 1), "FetchOffset": offsets, "Offset": offsets, "LogStartOffset": these(-1, 0, -1),
		"PartitionMaxBytes": these(1<<20, 1<<20, 100, 1, 0), "MaxBytes": these(1<<20, 1<<20, 200, 1, 0, math.MaxInt32), "MinBytes": these(0, 1, 1, -1, 1000), "MaxWaitMillis": these(0, 0, 5, -1),
		"IsolationLevel": these(0, 1, 0, 1, 2, -1), "Fetch/IsolationLevel": these(0, 1, 0, 1, 0, 1, 2, -1), "Fetch/ReplicaID": mix(many(-1, 12), these(-2)), "Fetch/ID": these(-1), "Fetch/Topic": mix(own, own, these(n(missing), "bad name!")), "Fetch/TopicID": mix(many(n(orders), 4), these(n(events), n(missing), unknownID)), "Fetch/SessionID": these(0, 0, 0, 0, 12345), "SessionEpoch": these(-1, -1, -1, 0, 0, 1), "ReplicaDirectoryID": many(nil, 1), "HighWatermark": these(int64(-1)),
		"ReplicaID": mix(many(-1, 12), these(-2)), "ID": mix(many(-1, 12), these(-2, 7)), "Epoch": these(int64(-1)), "ClusterID": these(nil, nil, any("other")), "NodeID": these(-1, 1),
		"Rack": texts, "Timestamp": these(int64(-1), int64(-2), int64(-3), int64(-4), int64(-5), int64(-6), firstTime+1000, firstTime-5, firstTime+2500, int64(math.MaxInt64), int64(0), firstTime+1_000_000),
		"MaxNumOffsets": these(1, 2, 10, 0, 1), "TimeoutMillis": these(30_000, 30_000, 10_000, 60_000), "AllowAutoTopicCreation": these(true, false, false),
		"IncludeClusterAuthorizedOperations": these(true, false), "IncludeTopicAuthorizedOperations": these(true, false), "IncludeAuthorizedOperations": these(true, false),
		"Acks": these(1, 1, 1, -1, -1, -1, 0, 2, -2), "TransactionID": nullable(many(nil, 8)),
		"Group": groups, "Groups": groups, "CoordinatorKey": mix(groups, transactions), "CoordinatorKeys": mix(groups, transactions), "CoordinatorType": these(0, 0, 0, 1, 1, 1, 2, -1),
		"Generation": these(-1, 0, 1, generationSymbol, generationSymbol, generationSymbol+1, 100), "MemberID": members, "InstanceID": mix(many(nil, 5), these(any(n("instance")), any("")))[:7],
		"RetentionTimeMillis": these(int64(-1), int64(1000), int64(0)), "Metadata": texts, "MemberEpoch": these(-1, 0, 1), "RequireStable": these(true, false), "JoinGroup/Metadata": these([]byte(nil), []byte("meta")),
		"OffsetCommit/Metadata": mix(texts, []any{nil, strings.Repeat("m", 4097)}), "TxnOffsetCommit/Metadata": mix(texts, []any{nil, strings.Repeat("m", 4097)}),
		"SessionTimeoutMillis": these(600_000, 600_000, 600_000, 600_000, 5999, 1_800_001, 0, -1), "RebalanceTimeoutMillis": these(600_000), "ProtocolType": these("consumer", "consumer", "consumer", "connect", ""),
		"Protocol": these(any("range"), any("range"), any("other"), nil), "JoinGroup/Name": these("range", "range", "range", "roundrobin"), "Reason": these(nil, any("because")), "MemberAssignment": these([]byte("mine"), []byte{}),
		"StatesFilter": these("Stable", "Empty", "Dead", "stable", "PreparingRebalance", "Nonsense"), "TypesFilter": these("classic", "consumer", "Classic", "nonsense"),
		"Mechanism": these("PLAIN", "SCRAM-SHA-256"), "ClientSoftwareName": these("twin", "twin", "bad name!", "", "-x"), "ClientSoftwareVersion": these("1.0", "1.0", "", "1.0-"),
		"CreateTopics/Name": topicKeys, "Value": nullable(configValues), "ValidateOnly": these(true, false, false), "CreateTopics/TimeoutMillis": these(30_000), "DeleteTopics/TimeoutMillis": these(30_000),
		"CreatePartitions/TimeoutMillis": these(30_000), "TransactionalID": transactions, "TransactionalIDs": transactions, "InitProducerID/TransactionalID": nullable(transactions), "TransactionTimeoutMillis": these(600_000, 600_000, 600_000, 900_000, 900_001, 0, -1),
		"ProducerID": these(int64(-1), int64(0), producerSymbol, producerSymbol, producerSymbol, int64(999_999), int64(-2)), "ProducerEpoch": these(-1, 0, epochSymbol, epochSymbol, epochSymbol, epochSymbol+1, epochSymbol-1, math.MaxInt16),
		"WriteTxnMarkers/ProducerID": these(int64(777), int64(778)), "WriteTxnMarkers/ProducerEpoch": these(0, 0, 1, -1), "CoordinatorEpoch": these(0, 0, 1, -1), "TransactionVersion": these(0), "Committed": these(true, false),
		"Commit": these(true, false), "VerifyOnly": these(true, false), "WriteTxnMarkers/Partition": partitions,
		"ResourceType": these(0, 1, 2, 3, 4, 5, 6, 7, 8, -1), "ResourceName": nullable(these(n(orders), n(missing), "*", "", n("g1"), "kafka-cluster")), "ResourcePatternType": these(0, 1, 2, 3, 3, 4, 4, 5, -1),
		"Principal": nullable(these("User:"+n("alice"), "User:"+n("bob"), "User:*", "alice", "", "Group:x")), "Host": nullable(these("*", "10.0.0.1", "")), "Operation": these(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1), "PermissionType": these(0, 1, 2, 3, 2, 3, 4),
		"DescribeConfigs/ResourceType": these(2, 2, 2, 4, 4, 8, 16, 0, 3, 32), "DescribeConfigs/ResourceName": these(n(orders), n(configs), n(configs), n(missing), "", "1", "1", "2", "abc", "__consumer_offsets", "bad name!"),
		"ConfigNames": mix(topicKeys, brokerKeys), "IncludeSynonyms": these(true, false), "IncludeDocumentation": these(true, false),
		"AlterConfigs/ResourceType": these(2, 2, 2, 4, 8, 0, 16), "AlterConfigs/ResourceName": these(n(configs), n(configs), n(configs), n(missing), "", "2", "abc", "bad name!"), "AlterConfigs/Name": mix(topicKeys, brokerKeys[:5]),
		"IncrementalAlterConfigs/ResourceType": these(2, 2, 2, 4, 8, 0, 16), "IncrementalAlterConfigs/ResourceName": these(n(configs), n(configs), n(configs), n(missing), "", "1", "2", "abc", "bad name!"), "IncrementalAlterConfigs/Name": mix(topicKeys, topicKeys, brokerKeys),
		"Op": these(0, 0, 1, 2, 2, 3, 3, 4, -1), "Dir": these("/nowhere", "relative", ""), "SASLAuthBytes": these([]byte("\x00a\x00b"), []byte{}),
		"OwnerPrincipalType": these(nil, any("User")), "OwnerPrincipalName": these(nil, any("alice")), "PrincipalType": these("User", "Group", ""), "PrincipalName": these("alice", ""), "MaxLifetimeMillis": these(int64(-1), int64(1000)),
		"HMAC": these([]byte("hmac"), []byte{}), "RenewTimeMillis": these(int64(-1), int64(1000)), "ExpiryPeriodMillis": these(int64(-1), int64(1000)), "ElectionType": these(0, 1, 0, 1, 2, -1),
		"AllowReplicationFactorChange": these(true, false), "EntityType": these("user", "client-id", "ip", "user", "nonsense", ""), "MatchType": these(0, 1, 2, 0, 3, -1), "Match": nullable(these(n("alice"), n("client"), "10.0.0.1", "")), "Strict": these(true, false),
		"Type": these("user", "client-id", "ip", "user", "nonsense"), "AlterClientQuotas/Name": nullable(these(n("alice"), n("client"), "10.0.0."+strconv.Itoa(1+g.seed%200), "not an address", "")),
		"Key": these("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate", "connection_creation_rate", "nonsense"), "AlterClientQuotas/Value": these(1e6, 1e9, 2e6+0.5), "Remove": these(false, false, false, true),
		"Name": these(n("alice"), n("alice"), n("bob"), n("nobody"), ""), "AlterUserSCRAMCredentials/Mechanism": these(1, 2, 1, 2, 0, 3, -1), "Iterations": these(4096, 4096, 8192, 16384, 4095, 16385, 0, -1), "Salt": these([]byte("salt"), []byte("pepper"), []byte{}),
		"SaltedPassword": these([]byte("secret"), []byte{}), "Feature": these("metadata.version", "kraft.version", "nonsense", ""), "MaxVersionLevel": these(0, 1, 2, 30), "AllowDowngrade": these(true, false), "UpgradeType": these(0, 1, 2, 3, 4),
		"EndpointType": these(1, 1, 1, 2, 0), "IncludeFencedBrokers": these(false, true), "StateFilters": these("Ongoing", "Empty", "CompleteCommit", "CompleteAbort", "nonsense", "ongoing", "Dead"), "ProducerIDFilters": these(producerSymbol, int64(0), int64(-1), int64(12345)),
		"DurationFilterMillis": these(int64(-1), int64(-1), int64(0), int64(3_600_000), int64(-2)), "TransactionalIDPattern": these[any](nil), "SubscribedTopicRegex": these[any](nil), "RackID": these[any](nil), "ServerAssignor": these[any](nil),
	}
}
