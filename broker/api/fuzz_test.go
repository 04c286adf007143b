package api

import (
	"context"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/acl"
	"barnabas/broker/commitlog"
	"barnabas/broker/metadata"
	"barnabas/broker/partition"
	"barnabas/broker/wire"
)

// playedReplicas answer at once, with nothing but errors and emptiness.
type playedReplicas struct{}

func (playedReplicas) Produce(req *partition.ProduceRequest, done func([]partition.ProduceResult)) {
	results := make([]partition.ProduceResult, len(req.Partitions))
	for i, p := range req.Partitions {
		results[i] = failedProduce(p.Topic, p.Partition, p.Err)
	}
	done(results)
}

func (playedReplicas) Fetch(req *partition.FetchRequest, done func([]partition.FetchResult)) {
	results := make([]partition.FetchResult, len(req.Partitions))
	for i := range req.Partitions {
		results[i] = failedFetch(&req.Partitions[i], nil)
	}
	done(results)
}

func (playedReplicas) ListOffset(string, int32, int64, bool, int32, int32, int16) (int64, int64, int32, error) {
	return -1, 0, -1, nil
}

func (playedReplicas) OffsetsBefore(string, int32, int64, int, int32) ([]int64, error) {
	return []int64{5, 0}, nil
}

func (playedReplicas) OffsetForLeaderEpoch(string, int32, int32, int32) (int32, int64, error) {
	return -1, -1, nil
}

func (playedReplicas) DeleteRecords(_ map[commitlog.TopicPartition]int64, _ time.Duration, done func(map[commitlog.TopicPartition]partition.DeleteRecordsResult)) {
	done(nil)
}

func (playedReplicas) LogDirs() []partition.LogDirDescription {
	return []partition.LogDirDescription{{Path: "/d", Partitions: []partition.LogDirPartition{{TP: commitlog.TopicPartition{Topic: "one"}}}}}
}

func (playedReplicas) AlterLogDirs(changes []partition.LogDirChange) []partition.PartitionError {
	each := make([]partition.PartitionError, len(changes))
	for i, c := range changes {
		each[i].TP = c.TP
	}
	return each
}

//lint:ignore ST1008 the order is that of the interface
func (playedReplicas) ApplyLeaderAndISR(req partition.LeaderAndISR) (error, []partition.PartitionError) {
	each := make([]partition.PartitionError, len(req.Partitions))
	for i, p := range req.Partitions {
		each[i] = partition.PartitionError{TP: commitlog.TopicPartition{Topic: p.Topic, Partition: p.Partition}, TopicID: p.TopicID}
	}
	return nil, each
}

//lint:ignore ST1008 the order is that of the interface
func (playedReplicas) StopReplicas(req partition.StopReplicas) (error, []partition.PartitionError) {
	each := make([]partition.PartitionError, len(req.Partitions))
	for i, p := range req.Partitions {
		each[i] = partition.PartitionError{TP: commitlog.TopicPartition{Topic: p.Topic, Partition: p.Partition}}
	}
	return nil, each
}

func (playedReplicas) ControllerSeen(int32) error { return nil }

func (playedReplicas) TakenAway([]partition.Assigned) {}

func (playedReplicas) Partition(string, int32) *partition.Partition { return nil }

func (playedReplicas) SetAliveBrokers(map[int32]partition.BrokerInfo) {}

// agreeableAdmin says yes to everything.
func agreeableAdmin() *playedAdmin {
	return &playedAdmin{
		createTopics: func(specs []admin.TopicSpec, _ bool) (results []admin.TopicResult) {
			for _, s := range specs {
				results = append(results, admin.TopicResult{Name: s.Name, NumPartitions: s.Partitions})
			}
			return results
		},
		createPartitions: func(specs []admin.PartitionsSpec, _ bool) (results []admin.PartitionsResult) {
			for _, s := range specs {
				results = append(results, admin.PartitionsResult{Name: s.Name, Count: s.Count})
			}
			return results
		},
		deleteTopics: func(names []string) (results []admin.DeleteResult) {
			for _, name := range names {
				results = append(results, admin.DeleteResult{Name: name})
			}
			return results
		},
		alter:       func(specs []admin.AlterSpec) []admin.AlterResult { return make([]admin.AlterResult, len(specs)) },
		incremental: func(specs []admin.IncrementalSpec) []admin.AlterResult { return make([]admin.AlterResult, len(specs)) },
		describe: func(specs []admin.DescribeSpec, _ admin.DescribeOptions) []admin.DescribeResult {
			return make([]admin.DescribeResult, len(specs))
		},
		describeQuotas: func() ([]admin.QuotaDescription, error) { return nil, nil },
		alterQuotas:    func(specs []admin.QuotaSpec) []admin.QuotaResult { return make([]admin.QuotaResult, len(specs)) },
		describeScram:  func() ([]admin.ScramDescription, error) { return nil, nil },
		alterScram:     func() []admin.ScramResult { return nil },
	}
}

// newPlayedWorld is a Dispatcher over nothing real, with one topic "one".
func newPlayedWorld(t testing.TB) *world {
	w := &world{cache: metadata.NewCache(), admin: agreeableAdmin(), ids: &countingIDs{}, epoch: 1, conns: map[string]*wire.Conn{}, registered: playedRegistrations{}}
	w.controller = &playedController{active: true, do: func(req kmsg.Request) kmsg.Response { return req.ResponseKind() }}
	w.d = New(Config{BrokerID: 1, ClusterID: "c", InterBrokerListener: "PLAINTEXT", AutoCreateTopics: true, DeleteTopics: true, FetchSessionSlots: 10, Log: quiet()},
		Dependencies{Replicas: playedReplicas{}, Metadata: w.cache, Admin: w.admin, Controller: w.controller, ProducerIDs: w.ids, BrokerEpoch: w.epoch, Registrations: w.registered,
			Groups: newGroups(t, w.cache), Transactions: newTransactions(t, w.cache, w.ids, func() *Dispatcher { return w.d }), LegacyOffsets: &playedLegacy{}})
	t.Cleanup(w.d.Close)
	w.conns["PLAINTEXT"] = &wire.Conn{Listener: "PLAINTEXT", Remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5}}
	update := kmsg.NewPtrUpdateMetadataRequest()
	update.Version, update.ControllerID = 8, 1
	b := kmsg.NewUpdateMetadataRequestLiveBroker()
	e := kmsg.NewUpdateMetadataRequestLiveBrokerEndpoint()
	e.ListenerName, e.Host, e.Port = "PLAINTEXT", "h", 1
	b.ID, b.Endpoints = 1, append(b.Endpoints, e)
	update.LiveBrokers = append(update.LiveBrokers, b)
	update.TopicStates = append(update.TopicStates, topicState("one", [16]byte{1}, [][]int32{{1}}))
	require.NoError(t, w.d.applyMetadata(update))
	return w
}

// fickle allows one thing and denies the next, always the same.
type fickle struct{}

func (fickle) Allows(_ acl.Subject, op kmsg.ACLOperation, _ kmsg.ACLResourceType, name string) bool {
	return (len(name)+int(op))%2 == 0
}

func (fickle) AllowsAny(_ acl.Subject, op kmsg.ACLOperation, _ kmsg.ACLResourceType) bool {
	return op%2 == 0
}

func (fickle) Find(f acl.Filter) []acl.Binding {
	return []acl.Binding{{Pattern: acl.Pattern{Resource: f.Resource, Type: f.Type}}}
}

func (fickle) Create(_ context.Context, bindings []acl.Binding) []error {
	return make([]error, len(bindings))
}

func (fickle) Delete(_ context.Context, filters []acl.Filter) [][]admin.DeletedACL {
	return make([][]admin.DeletedACL, len(filters))
}

// FuzzHandle sends frames of any bytes. Nothing may panic, and what is answered
// must be decodable at the version that was asked.
func FuzzHandle(f *testing.F) {
	for _, file := range goldenFiles {
		seen := map[string]bool{}
		for _, e := range readGolden(f, file) {
			if kind := string(e.request[:4]); !seen[kind] {
				seen[kind] = true
				f.Add(e.request)
			}
		}
	}
	for version := range int16(4) {
		for _, req := range []kmsg.Request{describeACLsOf(anyACL), deleteACLsOf(anyACL), createACLsOf(acl.Binding{Pattern: literal(kmsg.ACLResourceTypeTopic, "one")})} {
			req.SetVersion(version)
			f.Add(frame(req))
		}
	}
	w := newPlayedWorld(f)
	w.d.deps.Authorizer = fickle{}
	f.Fuzz(func(t *testing.T, request []byte) {
		if len(request) >= 8 {
			binary.BigEndian.PutUint32(request[4:], goldenCorrelation)
		}
		select {
		case o := <-w.start("PLAINTEXT", request):
			if o.response != nil {
				key, version := int16(binary.BigEndian.Uint16(request)), int16(binary.BigEndian.Uint16(request[2:]))
				if api, _ := wire.Lookup(key); !api.Serves(version) {
					version = 0
				}
				decodeAnswer(t, key, version, o.response)
			}
		case <-time.After(10 * time.Millisecond): // waits for a topic, or for its turn
		}
	})
}

// VerifyTransaction finds every transaction open already.
func (playedReplicas) VerifyTransaction(string, int32, int64, int32, int16) (*commitlog.VerificationGuard, error) {
	return nil, nil
}
