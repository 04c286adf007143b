package api

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/commitlog"
	"barnabas/broker/metadata"
	"barnabas/broker/partition"
	"barnabas/broker/vfs"
	"barnabas/broker/wire"
)

func quiet() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}

// world is one broker without a network: a Dispatcher over real partitions and
// logs in a folder of the test, with a played ZooKeeper and controller.
type world struct {
	t          *testing.T
	d          *Dispatcher
	cache      *metadata.Cache
	replicas   *partition.Manager
	admin      *playedAdmin
	controller *playedController
	epoch      brokerEpoch
	registered playedRegistrations
	ids        *countingIDs
	conns      map[string]*wire.Conn
}

// brokerEpoch is this broker's registration, as a number.
type brokerEpoch int64

func (e brokerEpoch) BrokerEpoch() int64 { return int64(e) }

// playedRegistrations are the epochs of brokers as a test wants them.
type playedRegistrations map[int32]int64

func (p playedRegistrations) EpochOf(id int32) int64 {
	if epoch, known := p[id]; known {
		return epoch
	}
	return -1
}

// countingIDs gives 1, 2, 3...
type countingIDs struct {
	mu   sync.Mutex
	last int64
	err  error
}

func (c *countingIDs) Next(context.Context) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	return c.last, c.err
}

// playedController answers what a test tells it to.
type playedController struct {
	active bool
	do     func(kmsg.Request) kmsg.Response
}

func (c *playedController) IsActive() bool { return c.active }

func (c *playedController) Do(req kmsg.Request, done func(kmsg.Response)) { done(c.do(req)) }

// playedAdmin answers what a test tells it to.
type playedAdmin struct {
	createTopics     func([]admin.TopicSpec, bool) []admin.TopicResult
	createPartitions func([]admin.PartitionsSpec, bool) []admin.PartitionsResult
	deleteTopics     func([]string) []admin.DeleteResult
	alter            func([]admin.AlterSpec) []admin.AlterResult
	incremental      func([]admin.IncrementalSpec) []admin.AlterResult
	describe         func([]admin.DescribeSpec, admin.DescribeOptions) []admin.DescribeResult
	describeQuotas   func() ([]admin.QuotaDescription, error)
	alterQuotas      func([]admin.QuotaSpec) []admin.QuotaResult
	describeScram    func() ([]admin.ScramDescription, error)
	alterScram       func() []admin.ScramResult
}

func (a *playedAdmin) CreateTopics(_ context.Context, specs []admin.TopicSpec, validate bool) []admin.TopicResult {
	return a.createTopics(specs, validate)
}

func (a *playedAdmin) CreatePartitions(_ context.Context, specs []admin.PartitionsSpec, validate bool) []admin.PartitionsResult {
	return a.createPartitions(specs, validate)
}

func (a *playedAdmin) DeleteTopics(_ context.Context, names []string) []admin.DeleteResult {
	return a.deleteTopics(names)
}

func (a *playedAdmin) AlterConfigs(_ context.Context, specs []admin.AlterSpec, _ bool) []admin.AlterResult {
	return a.alter(specs)
}

func (a *playedAdmin) IncrementalAlterConfigs(_ context.Context, specs []admin.IncrementalSpec, _ bool) []admin.AlterResult {
	return a.incremental(specs)
}

func (a *playedAdmin) DescribeConfigs(_ context.Context, specs []admin.DescribeSpec, o admin.DescribeOptions) []admin.DescribeResult {
	return a.describe(specs, o)
}

func (a *playedAdmin) DescribeClientQuotas(context.Context, []admin.QuotaFilter, bool) ([]admin.QuotaDescription, error) {
	return a.describeQuotas()
}

func (a *playedAdmin) AlterClientQuotas(_ context.Context, specs []admin.QuotaSpec, _ bool) []admin.QuotaResult {
	return a.alterQuotas(specs)
}

func (a *playedAdmin) DescribeUserScramCredentials(context.Context, []string) ([]admin.ScramDescription, error) {
	return a.describeScram()
}

func (a *playedAdmin) AlterUserScramCredentials(context.Context, []admin.ScramUpsertion, []admin.ScramDeletion) []admin.ScramResult {
	return a.alterScram()
}

// nobodyFollows are fetchers that fetch nothing.
type nobodyFollows struct{}

func (nobodyFollows) Add([]partition.FetchFrom)         {}
func (nobodyFollows) Remove([]commitlog.TopicPartition) {}

// noISRChange never answers: in-sync sets stay as they are.
type noISRChange struct{}

func (noISRChange) ChangeISR(partition.ISRChange, func(partition.ISRChanged, error)) {}

// newWorld is broker 1 or 2 of the cluster that the goldens were recorded from,
// broker 1 being the controller.
func newWorld(t *testing.T, broker int32, cluster recordedCluster) *world {
	w := openWorld(t, broker, cluster.clusterID, func(topic string) commitlog.Config {
		c := commitlog.DefaultConfig()
		for _, known := range goldenTopics {
			if known.name == topic && known.compacted {
				c.CleanupDelete, c.CleanupCompact = false, true
			}
		}
		return c
	})
	w.populate(broker, cluster)
	return w
}

// openWorld is a broker that was told of nothing yet.
func openWorld(t *testing.T, broker int32, clusterID string, topicConfig func(topic string) commitlog.Config) *world {
	return openWorldIn(t, broker, clusterID, topicConfig, nil, t.TempDir())
}

// openWorldIn is openWorld with directories of its own, and who moves replicas between them.
func openWorldIn(t *testing.T, broker int32, clusterID string, topicConfig func(topic string) commitlog.Config, movers partition.Movers, dirs ...string) *world {
	w := &world{t: t, cache: metadata.NewCache(), admin: &playedAdmin{}, ids: &countingIDs{}, epoch: 100, registered: playedRegistrations{}}
	w.controller = &playedController{active: broker == 1}
	logs, err := commitlog.Open(commitlog.ManagerConfig{
		Dirs: dirs, FS: vfs.OS, Default: commitlog.DefaultConfig(), TopicConfig: topicConfig, Now: time.Now, Log: quiet(),
	})
	require.NoError(t, err)
	w.replicas = partition.NewManager(partition.Config{
		BrokerID: broker, ReplicaLagTimeMax: time.Hour, Movers: movers, FS: vfs.OS, Log: quiet(), Now: time.Now,
	}, logs, noISRChange{}, nobodyFollows{})
	w.d = New(Config{
		BrokerID: broker, ClusterID: clusterID, InterBrokerListener: "PLAINTEXT",
		AutoCreateTopics: true, DeleteTopics: true, OffsetMetadataMaxBytes: 4096, FetchSessionSlots: 1000, FeaturesEpoch: func() int64 { return 0 }, Log: quiet(),
		VerifyTransactions: func() bool { return true }, MarkerTimeout: 10 * time.Second,
	}, Dependencies{
		Replicas: w.replicas, Metadata: w.cache, Admin: w.admin, Controller: w.controller, ProducerIDs: w.ids, BrokerEpoch: w.epoch, Registrations: w.registered,
		Groups: newGroups(t, w.cache), Transactions: newTransactions(t, w.cache, w.ids, func() *Dispatcher { return w.d }), LegacyOffsets: &playedLegacy{},
	})
	t.Cleanup(func() {
		w.d.Close()
		w.replicas.Close()
		require.NoError(t, logs.Close())
	})
	w.replicas.SetBrokerEpoch(w.epoch.BrokerEpoch())
	w.conns = map[string]*wire.Conn{}
	for _, door := range []string{"PLAINTEXT", "OUT"} {
		w.conns[door] = &wire.Conn{Listener: door, Remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5}}
	}
	return w
}

// populate tells the broker of the cluster as the controller would.
func (w *world) populate(broker int32, cluster recordedCluster) {
	update := w.update(cluster)
	order := kmsg.NewPtrLeaderAndISRRequest()
	order.Version, order.ControllerID, order.ControllerEpoch, order.BrokerEpoch = 7, 1, 1, -1
	for _, topic := range goldenTopics {
		to := kmsg.NewLeaderAndISRRequestTopicState()
		to.Topic, to.TopicID = topic.name, cluster.topicIDs[topic.name]
		for i, replicas := range topic.replicas {
			if replicas[0] != broker && (len(replicas) == 1 || replicas[1] != broker) {
				continue
			}
			p := kmsg.NewLeaderAndISRRequestTopicPartition()
			p.Partition, p.ControllerEpoch, p.Leader, p.ISR, p.Replicas, p.IsNew = int32(i), 1, replicas[0], replicas, replicas, true
			to.PartitionStates = append(to.PartitionStates, p)
		}
		order.TopicStates = append(order.TopicStates, to)
		update.TopicStates = append(update.TopicStates, topicState(topic.name, cluster.topicIDs[topic.name], topic.replicas))
	}
	require.Zero(w.t, w.ask(order).(*kmsg.LeaderAndISRResponse).ErrorCode)
	require.Zero(w.t, w.ask(update).(*kmsg.UpdateMetadataResponse).ErrorCode)
}

// update is an UpdateMetadata with both brokers and no topics.
func (w *world) update(cluster recordedCluster) *kmsg.UpdateMetadataRequest {
	req := kmsg.NewPtrUpdateMetadataRequest()
	req.Version, req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = 8, 1, 1, -1
	for id := int32(1); id <= 2; id++ {
		b := kmsg.NewUpdateMetadataRequestLiveBroker()
		b.ID, b.Rack = id, kmsg.StringPtr("rack"+strconv.Itoa(int(id)))
		door := map[int32]string{1: "PLAINTEXT", 2: "B2"}[id]
		b.Endpoints = append(b.Endpoints, endpoint(w.t, "PLAINTEXT", cluster.doors[door]))
		if id == 1 {
			b.Endpoints = append(b.Endpoints, endpoint(w.t, "OUT", "out.example:19201"))
		}
		req.LiveBrokers = append(req.LiveBrokers, b)
	}
	return req
}

func endpoint(t *testing.T, listener, addr string) kmsg.UpdateMetadataRequestLiveBrokerEndpoint {
	e := kmsg.NewUpdateMetadataRequestLiveBrokerEndpoint()
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	e.ListenerName, e.Host, e.Port = listener, host, int32(n)
	return e
}

// topicState is a topic whose partitions are led by their first replicas; no
// replicas mean that it is deleted.
func topicState(name string, id [16]byte, partitions [][]int32) kmsg.UpdateMetadataRequestTopicState {
	to := kmsg.NewUpdateMetadataRequestTopicState()
	to.Topic, to.TopicID = name, id
	for i, replicas := range partitions {
		p := kmsg.NewUpdateMetadataRequestTopicPartition()
		p.Partition, p.ControllerEpoch, p.ISR, p.Replicas = int32(i), 1, replicas, replicas
		p.Leader = metadata.LeaderDuringDelete
		if len(replicas) > 0 {
			p.Leader = replicas[0]
		}
		to.PartitionStates = append(to.PartitionStates, p)
	}
	return to
}

// tell applies an update of some topics.
func (w *world) tell(cluster recordedCluster, topics ...kmsg.UpdateMetadataRequestTopicState) {
	req := w.update(cluster)
	req.TopicStates = topics
	require.NoError(w.t, w.d.applyMetadata(req))
}

// outcome is how a request ended.
type outcome struct {
	response []byte // without the length
	closed   error
	silent   bool
}

type caught struct {
	t    *testing.T
	done chan outcome
}

func (c *caught) Answered(_ *wire.Request, answer wire.Response, failure error) {
	var o outcome
	switch {
	case failure != nil:
		o.closed = failure
	case len(answer.Parts) == 0:
		o.silent = true
	default:
		for _, p := range answer.Parts {
			o.response = append(o.response, p.Bytes...)
			if p.Range.Length > 0 {
				records, err := p.Range.ReadAll()
				if err != nil {
					o.closed = err
				}
				o.response = append(o.response, records...)
			}
		}
		o.response = o.response[4:]
	}
	answer.Sent()
	c.done <- o
}

// handle lets the Dispatcher handle a frame that came in by a listener.
func (w *world) handle(door string, request []byte) outcome {
	return await(w.t, w.start(door, request))
}

func (w *world) start(door string, request []byte) <-chan outcome {
	sink := &caught{t: w.t, done: make(chan outcome, 1)}
	w.d.Handle(wire.NewRequest(w.conns[door], append([]byte(nil), request...), time.Now(), sink))
	return sink.done
}

func await(t *testing.T, done <-chan outcome) outcome {
	select {
	case o := <-done:
		return o
	case <-time.After(time.Minute):
		t.Fatal("no answer")
		return outcome{}
	}
}

// ask is a request by the listener PLAINTEXT that is answered.
func (w *world) ask(req kmsg.Request) kmsg.Response {
	o := w.handle("PLAINTEXT", frame(req))
	require.NoError(w.t, o.closed)
	require.False(w.t, o.silent)
	return decodeAnswer(w.t, req.Key(), req.GetVersion(), o.response)
}
