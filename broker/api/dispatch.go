package api

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/acl"
	"barnabas/broker/metadata"
	"barnabas/broker/quota"
	"barnabas/broker/wire"
)

// Config is what the handlers need to know of their broker.
type Config struct {
	BrokerID  int32
	ClusterID string

	// InterBrokerListener names the listener whose endpoints other brokers are
	// reached by.
	InterBrokerListener string

	AutoCreateTopics  bool  // auto.create.topics.enable
	DeleteTopics      bool  // delete.topic.enable
	FetchMaxBytes     int32 // fetch.max.bytes; 0 means Kafka's default of 55 MiB
	FetchSessionSlots int   // max.incremental.fetch.session.cache.slots; 0 switches sessions off

	// Partitions and replication of a topic that is made because somebody asked
	// for it: num.partitions and default.replication.factor, and the settings
	// of the two internal topics.
	AutoTopic func(name string) AutoTopic

	OffsetMetadataMaxBytes int // offset.metadata.max.bytes

	// VerifyTransactions is transaction.partition.verification.enable; a nil function
	// means that it is off.
	VerifyTransactions func() bool

	// MarkerTimeout is how long the end of a transaction may take to be replicated.
	MarkerTimeout time.Duration

	// FeaturesEpoch is the version of ZooKeeper's /feature, which ApiVersions
	// tells; -1 or a nil function where there is none (KIP-584).
	FeaturesEpoch func() int64

	// Workers that run what talks to ZooKeeper; 0 means 8. WorkerQueue is how
	// many such requests may wait for one; 0 means 1,000.
	Workers, WorkerQueue int

	Log *logrus.Entry
}

// AutoTopic is how a topic is laid out that is created automatically.
type AutoTopic struct {
	Partitions        int32
	ReplicationFactor int16
	Configs           map[string]string
}

// Dependencies are the parts of the broker that do the work.
type Dependencies struct {
	Replicas      Replicas
	Metadata      *metadata.Cache
	Admin         Admin
	Controller    Controller
	ProducerIDs   ProducerIDs
	BrokerEpoch   BrokerEpoch
	Registrations Registrations

	Groups        Groups
	Transactions  Transactions
	LegacyOffsets LegacyOffsets

	Authorizer Authorizer    // nil: everybody may do everything
	Tokens     Tokens        // nil: there are no delegation tokens here
	Meter      Meter         // nil: nobody measures
	Quotas     *quota.Quotas // nil: nobody has a limit
}

const (
	defaultFetchMaxBytes = 55 << 20
	defaultWorkers       = 8
	defaultWorkerQueue   = 1000
)

// Dispatcher implements wire.Handler: it decodes a request, and calls the
// handler of its API.
type Dispatcher struct {
	cfg      Config
	deps     Dependencies
	log      *logrus.Entry
	audit    *logrus.Entry // who was allowed or denied what
	sessions *fetchSessions
	waits    *topicWaits
	creating *autoCreations
	ordered  *orderedTopics
	workers  *workers
	turns    *produceTurns
	resumed  sync.WaitGroup // what goes on after a coordinator's word
	hints    hints
	alive    sync.Mutex // held while the replicas are told of live brokers, so that the last told is the newest
}

var _ wire.Handler = (*Dispatcher)(nil)

// New makes a Dispatcher and starts its workers; Close stops them.
func New(cfg Config, deps Dependencies) *Dispatcher {
	if cfg.FetchMaxBytes == 0 {
		cfg.FetchMaxBytes = defaultFetchMaxBytes
	}
	if cfg.Workers == 0 {
		cfg.Workers = defaultWorkers
	}
	if cfg.WorkerQueue == 0 {
		cfg.WorkerQueue = defaultWorkerQueue
	}
	if cfg.VerifyTransactions == nil {
		cfg.VerifyTransactions = func() bool { return false }
	}
	return &Dispatcher{
		cfg:      cfg,
		deps:     deps,
		log:      cfg.Log.WithField("broker", cfg.BrokerID),
		audit:    cfg.Log.WithField("part", "authorizer"),
		sessions: newFetchSessions(cfg.FetchSessionSlots, func() int32 { return 1 + rand.Int32N(1<<31-1) }),
		waits:    newTopicWaits(deps.Metadata),
		creating: newAutoCreations(),
		ordered:  newOrderedTopics(),
		workers:  newWorkers(cfg.Workers, cfg.WorkerQueue),
		turns:    newProduceTurns(),
	}
}

// Close ends the workers, waits for what they are doing, and answers what
// waits for topics to appear or to go.
func (d *Dispatcher) Close() {
	d.workers.close()
	d.waits.close()
	d.resumed.Wait()
}

// FetchSessions is how many fetch sessions there are, and how many partitions
// they hold together.
func (d *Dispatcher) FetchSessions() (sessions, partitions int) { return d.sessions.counts() }

// call is one request on its way through a handler.
type call struct {
	*wire.Request
	header   wire.Header
	who      *acl.Subject // whom it acts for; nil without an authorizer, which alone asks
	meter    Meter        // nil: nobody measures
	follower bool         // of a fetch

	quotas            *quota.Quotas // nil: nobody has a limit
	handling, working span          // while somebody has a limit of time
	stranger          bool          // asked for what only brokers may
}

// clientID is the client id, empty for null.
func (c *call) clientID() string {
	if c.header.ClientID == nil {
		return ""
	}
	return *c.header.ClientID
}

type handler func(*Dispatcher, *call, kmsg.Request)

// produceKey is the API whose requests carry what is not copied out of them:
// records. It gives its frame back when they are in the log.
const produceKey = 0

// outlived are the APIs whose requests carry bytes that are wanted after the frame
// is given back. Decoded bytes alias what they are decoded from, so these are decoded
// from a copy of the frame. A test finds them all.
var outlived = map[int16]bool{
	11: true, 14: true, // JoinGroup, SyncGroup: what the members of a group tell each other
	39: true, 40: true, // RenewDelegationToken, ExpireDelegationToken: HMACs
	51: true, // AlterUserScramCredentials: salts and salted passwords
}

// handlers by API key. Which versions reach them stands in wire.APIs; a test
// holds the two tables together.
var handlers = map[int16]handler{
	0:  handle((*Dispatcher).produce),
	1:  handle((*Dispatcher).fetch),
	2:  handle((*Dispatcher).listOffsets),
	3:  handle((*Dispatcher).metadata),
	4:  handle((*Dispatcher).leaderAndISR),
	5:  handle((*Dispatcher).stopReplica),
	6:  handle((*Dispatcher).updateMetadata),
	7:  handle((*Dispatcher).controlledShutdown),
	8:  handle((*Dispatcher).offsetCommit),
	9:  handle((*Dispatcher).offsetFetch),
	10: handle((*Dispatcher).findCoordinator),
	11: handle((*Dispatcher).joinGroup),
	12: handle((*Dispatcher).heartbeat),
	13: handle((*Dispatcher).leaveGroup),
	14: handle((*Dispatcher).syncGroup),
	15: handle((*Dispatcher).describeGroups),
	16: handle((*Dispatcher).listGroups),
	17: handle((*Dispatcher).saslHandshake),
	18: handle((*Dispatcher).apiVersions),
	19: handle((*Dispatcher).createTopics),
	20: handle((*Dispatcher).deleteTopics),
	21: handle((*Dispatcher).deleteRecords),
	22: handle((*Dispatcher).initProducerID),
	23: handle((*Dispatcher).offsetForLeaderEpoch),
	24: handle((*Dispatcher).addPartitionsToTxn),
	25: handle((*Dispatcher).addOffsetsToTxn),
	26: handle((*Dispatcher).endTxn),
	27: handle((*Dispatcher).writeTxnMarkers),
	28: handle((*Dispatcher).txnOffsetCommit),
	29: handle((*Dispatcher).describeACLs),
	30: handle((*Dispatcher).createACLs),
	31: handle((*Dispatcher).deleteACLs),
	32: handle((*Dispatcher).describeConfigs),
	33: handle((*Dispatcher).alterConfigs),
	34: handle((*Dispatcher).alterReplicaLogDirs),
	35: handle((*Dispatcher).describeLogDirs),
	36: handle((*Dispatcher).saslAuthenticate),
	37: handle((*Dispatcher).createPartitions),
	38: handle((*Dispatcher).createDelegationToken),
	39: handle((*Dispatcher).renewDelegationToken),
	40: handle((*Dispatcher).expireDelegationToken),
	41: handle((*Dispatcher).describeDelegationToken),
	42: handle((*Dispatcher).deleteGroups),
	43: handle((*Dispatcher).electLeaders),
	44: handle((*Dispatcher).incrementalAlterConfigs),
	45: handle((*Dispatcher).alterPartitionReassignments),
	46: handle((*Dispatcher).listPartitionReassignments),
	47: handle((*Dispatcher).offsetDelete),
	48: handle((*Dispatcher).describeClientQuotas),
	49: handle((*Dispatcher).alterClientQuotas),
	50: handle((*Dispatcher).describeUserScramCredentials),
	51: handle((*Dispatcher).alterUserScramCredentials),
	56: handle((*Dispatcher).alterPartition),
	57: handle((*Dispatcher).updateFeatures),
	60: handle((*Dispatcher).describeCluster),
	61: handle((*Dispatcher).describeProducers),
	65: handle((*Dispatcher).describeTransactions),
	66: handle((*Dispatcher).listTransactions),
	67: handle((*Dispatcher).allocateProducerIDs),
	68: handle((*Dispatcher).consumerGroupHeartbeat),
	69: handle((*Dispatcher).consumerGroupDescribe),
}

// handle adapts a handler of one request type. DecodeRequest gives the type
// that belongs to the key.
func handle[R kmsg.Request](h func(*Dispatcher, *call, R)) handler {
	return func(d *Dispatcher, c *call, req kmsg.Request) { h(d, c, req.(R)) }
}

// Connected does nothing: no state is kept before a client speaks.
func (d *Dispatcher) Connected(*wire.Conn) {}

// Disconnected does nothing: fetch sessions outlive their connection (KIP-227),
// and what is parked runs into its deadline.
func (d *Dispatcher) Disconnected(*wire.Conn) {}

// Handle answers one request. What cannot be read closes the connection, as
// does an API or version that is not served, ApiVersions excepted.
func (d *Dispatcher) Handle(r *wire.Request) {
	h, body, err := wire.ParseHeader(r.Frame)
	c := &call{Request: r, header: h, meter: d.deps.Meter, quotas: d.deps.Quotas}
	if c.timed() {
		c.handling.begin(time.Now())
		defer func() { c.handling.end(time.Now()) }()
	}
	var unsupported *wire.UnsupportedError
	if errors.As(err, &unsupported) && h.Key == wire.KeyApiVersions {
		c.apiVersionsUnsupported()
		return
	}
	if err != nil {
		r.Close(err)
		return
	}
	if outlived[h.Key] {
		body = bytes.Clone(body)
	}
	req, err := wire.DecodeRequest(h, body)
	if err != nil {
		r.Close(err)
		return
	}
	if h.Key != produceKey {
		r.FreeFrame() // all but records was copied
	}
	if d.deps.Authorizer != nil {
		c.who = subjectOf(r.Conn)
	}
	handlers[h.Key](d, c, req)
}

// workLimit bounds what a worker does for one request: a client has given up
// long before, and the next one shall find a worker.
const workLimit = time.Minute

// work runs f on a worker. f gets a context that ends when the Dispatcher
// closes, or after workLimit.
func (d *Dispatcher) work(c *call, f func(context.Context)) {
	limited := func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, workLimit)
		defer cancel()
		if c.timed() {
			c.working.begin(time.Now())
			defer func() { c.working.end(time.Now()) }()
		}
		f(ctx)
	}
	if !d.workers.submit(limited) {
		c.Close(errBusy)
	}
}

var errBusy = errors.New("too many administrative requests are waiting")

// workers is a fixed number of goroutines that run submitted functions in
// order of submission.
type workers struct {
	jobs   chan func(context.Context)
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu struct {
		sync.RWMutex
		closed bool
	}
}

func newWorkers(n, queue int) *workers {
	w := &workers{jobs: make(chan func(context.Context), queue)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for range n {
		w.done.Go(func() {
			for job := range w.jobs {
				job(w.ctx)
			}
		})
	}
	return w
}

// submit queues f; false if the queue is full or closed.
func (w *workers) submit(f func(context.Context)) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.mu.closed {
		return false
	}
	select {
	case w.jobs <- f:
		return true
	default:
		return false
	}
}

// close lets what is queued run with an ended context, so that all of it is
// answered, and waits.
func (w *workers) close() {
	w.mu.Lock()
	closed := w.mu.closed
	w.mu.closed = true
	w.mu.Unlock()
	if closed {
		return
	}
	w.cancel()
	close(w.jobs)
	w.done.Wait()
}

func millis(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }
