package api

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/metadata"
	"barnabas/broker/partition"
	"barnabas/broker/record"
	"barnabas/broker/wire"
)

// Fetch, key 1, versions 0 to 17.
//
//	0  messages of format v0 (fetch_downgrade.go)
//	1  throttle time
//	2  messages of format v1
//	3  a size for the whole answer; one batch at least, whatever its size (KIP-74)
//	4  isolation level, last stable offset, aborted transactions
//	5  log start offset
//	6  KAFKA_STORAGE_ERROR may be answered (before: NOT_LEADER_OR_FOLLOWER)
//	7  sessions (KIP-227)
//	9  current leader epoch (KIP-320)
//	10 zstd
//	11 rack, preferred read replica (KIP-392)
//	12 flexible; last fetched epoch, diverging epoch (KIP-595)
//	13 topic ids instead of names (KIP-516)
//	15 the follower's broker epoch (KIP-903)
//	16 current leader, and its address, beside NOT_LEADER_OR_FOLLOWER and
//	   FENCED_LEADER_EPOCH (KIP-951)
//	17 directory ids, which only KRaft uses
//
// A request whose partitions have nothing new waits for min.bytes or its
// deadline in the partitions' purgatory, in a session or not; partitions that
// fail here (unknown id or name) do not end the wait, unless nothing is left to
// wait for.
func (d *Dispatcher) fetch(c *call, req *kmsg.FetchRequest) {
	replica := fetchReplica(req)
	snapshot := d.deps.Metadata.Load()
	c.follower = replica.ID >= 0
	op := &fetchCall{call: c, d: d, version: req.Version}
	names := op.namer(snapshot)
	op.turn = d.sessions.begin(time.Now(), sessionRequest{
		id:        req.SessionID,
		epoch:     sessionEpoch(req),
		usesIDs:   req.Version >= 13,
		follower:  op.follower,
		asks:      fetchPartitions(req, names),
		forgotten: forgottenPartitions(req),
	}, names)
	if op.turn.err != nil {
		op.replyError(op.turn.err, noSession, op.payForTime())
		return
	}
	readable := op.setUnreadableAside(snapshot)
	if readable == 0 {
		op.done(nil)
		return
	}
	if req.IsolationLevel < 0 || req.IsolationLevel > 1 { // which is asked only of what can be read
		c.refuseFetch(req, kerr.UnknownServerError)
		return
	}
	maxBytes := op.mayFetch(min(req.MaxBytes, d.cfg.FetchMaxBytes))
	op.request = partition.FetchRequest{
		ReplicaID:     replica.ID,
		ReplicaEpoch:  replica.Epoch,
		Version:       req.Version,
		MaxWait:       millis(req.MaxWaitMillis),
		MinBytes:      min(req.MinBytes, maxBytes),
		MaxBytes:      maxBytes,
		ReadCommitted: req.IsolationLevel == 1,
		RackID:        req.Rack,
		Partitions:    op.turn.asks[:readable],
	}
	if req.Rack != "" && c.Conn.Remote != nil { // it is for the choice of a replica near the rack
		op.request.ClientID, op.request.ClientAddr = c.clientID(), c.Conn.Remote.String()
	}
	d.deps.Replicas.Fetch(&op.request, op.done)
}

// refuseFetch answers a request that makes no sense: with the error for the
// whole and, as far as versions have no such field or may not look at it, for
// each partition.
func (c *call) refuseFetch(req *kmsg.FetchRequest, err error) {
	resp := wire.FetchResponse{SessionID: req.SessionID, ThrottleMs: c.payForTime()}
	resp.ErrorCode, _ = code(err)
	for i := range req.Topics {
		if req.Version >= 13 {
			break
		}
		t := wire.FetchTopic{Topic: req.Topics[i].Topic}
		for _, p := range req.Topics[i].Partitions {
			row := wire.NewFetchPartition(p.Partition)
			row.ErrorCode, row.Aborted = resp.ErrorCode, []wire.AbortedTxn{}
			t.Partitions = append(t.Partitions, row)
		}
		resp.Topics = append(resp.Topics, t)
	}
	c.Reply(wire.EncodeFetch(c.header, &resp))
}

func fetchReplica(req *kmsg.FetchRequest) kmsg.FetchRequestReplicaState {
	if req.Version >= 15 {
		return req.ReplicaState
	}
	return kmsg.FetchRequestReplicaState{ID: req.ReplicaID, Epoch: -1}
}

func sessionEpoch(req *kmsg.FetchRequest) int32 {
	if req.Version < 7 {
		return finalFetchEpoch
	}
	return req.SessionEpoch
}

// fetchPartitions lists what a request asks for. Topics named by an id that is
// not known have no name.
func fetchPartitions(req *kmsg.FetchRequest, names namer) []partition.FetchPartition {
	n := 0
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	asks := make([]partition.FetchPartition, 0, n)
	for i := range req.Topics {
		t := &req.Topics[i]
		name := t.Topic
		if req.Version >= 13 {
			name = names(t.TopicID)
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			asks = append(asks, partition.FetchPartition{
				Topic:              name,
				TopicID:            commitlog.TopicID(t.TopicID),
				Partition:          p.Partition,
				FetchOffset:        p.FetchOffset,
				LogStartOffset:     p.LogStartOffset,
				MaxBytes:           p.PartitionMaxBytes,
				CurrentLeaderEpoch: max(p.CurrentLeaderEpoch, partition.None), // here, unlike elsewhere, any number below zero is no epoch
				LastFetchedEpoch:   max(p.LastFetchedEpoch, partition.None),
			})
		}
	}
	if mayNameTwice(req) {
		return lastAsked(asks)
	}
	return asks
}

// fewTopics is how many topics are compared with each other rather than put
// into a map.
const fewTopics = 8

// mayNameTwice tells, cheaply for the usual request, whether a partition might
// be named twice: when partitions of a topic do not rise, or topics repeat.
func mayNameTwice(req *kmsg.FetchRequest) bool {
	for i := range req.Topics {
		parts := req.Topics[i].Partitions
		for j := 1; j < len(parts); j++ {
			if parts[j].Partition <= parts[j-1].Partition {
				return true
			}
		}
		for j := 0; j < i && i < fewTopics; j++ {
			if req.Topics[i].Topic == req.Topics[j].Topic && req.Topics[i].TopicID == req.Topics[j].TopicID {
				return true
			}
		}
	}
	return len(req.Topics) > fewTopics
}

// lastAsked keeps one ask for each partition, in the place of the first and
// with what the last one said.
func lastAsked(asks []partition.FetchPartition) []partition.FetchPartition {
	at := make(map[sessionKey]int, len(asks))
	kept := asks[:0]
	for i := range asks {
		key := sessionKey{topic: asks[i].Topic, id: metadata.TopicID(asks[i].TopicID), index: asks[i].Partition}
		if first, twice := at[key]; twice {
			kept[first] = asks[i]
			continue
		}
		at[key] = len(kept)
		kept = append(kept, asks[i])
	}
	return kept
}

func forgottenPartitions(req *kmsg.FetchRequest) []forgottenPartition {
	var forgotten []forgottenPartition
	for i := range req.ForgottenTopics {
		t := &req.ForgottenTopics[i]
		for _, p := range t.Partitions {
			forgotten = append(forgotten, forgottenPartition{topic: t.Topic, id: t.TopicID, index: p})
		}
	}
	return forgotten
}

// fetchCall is a fetch request on its way.
type fetchCall struct {
	*call
	d       *Dispatcher
	version int16
	turn    fetchTurn
	failed  []partition.FetchResult // of what the request has last in turn.asks
	request partition.FetchRequest
}

// namer looks ids up in the metadata and, for a follower, in the orders that
// the metadata has not caught up with: the follower was ordered to fetch in the
// same moment, and would pause for a second if it were told that there is no
// such topic.
func (op *fetchCall) namer(snapshot *metadata.Snapshot) namer {
	return func(id metadata.TopicID) string {
		if t := snapshot.TopicByID(id); t != nil {
			return t.Name
		}
		if op.follower {
			return op.d.ordered.name(id)
		}
		return ""
	}
}

// setUnreadableAside moves the partitions that no replica needs to be asked for
// behind the others, with their errors, and returns how many remain.
func (op *fetchCall) setUnreadableAside(snapshot *metadata.Snapshot) int {
	asks, cached := op.turn.asks, op.turn.cached
	rights := op.rights()
	readable := 0
	var asideAsks []partition.FetchPartition
	var asideCached []*sessionPartition
	for i := range asks {
		if err := op.unreadable(&asks[i], snapshot, &rights); err != nil {
			op.failed = append(op.failed, failedFetch(&asks[i], err))
			asideAsks = append(asideAsks, asks[i])
			if cached != nil {
				asideCached = append(asideCached, cached[i])
			}
			continue
		}
		asks[readable] = asks[i]
		if cached != nil {
			cached[readable] = cached[i]
		}
		readable++
	}
	copy(asks[readable:], asideAsks)
	if cached != nil {
		copy(cached[readable:], asideCached)
	}
	return readable
}

// rights are those that the reader needs: a client's on each topic, a follower's on
// the cluster, whose denial counts for every topic.
func (op *fetchCall) rights() topicRights {
	rights := op.d.topicRights(op.call, kmsg.ACLOperationRead)
	if op.follower {
		rights.everyTopic(op.d.mayCluster(op.call, kmsg.ACLOperationClusterAction))
	}
	return rights
}

func (op *fetchCall) unreadable(ask *partition.FetchPartition, snapshot *metadata.Snapshot, rights *topicRights) error {
	if op.follower && !rights.allow(ask.Topic) {
		return kerr.TopicAuthorizationFailed
	}
	if ask.Topic == "" && op.version >= 13 {
		return kerr.UnknownTopicID
	}
	if !rights.allow(ask.Topic) {
		return kerr.TopicAuthorizationFailed
	}
	if snapshot.Partition(ask.Topic, ask.Partition) != nil {
		return nil
	}
	if op.follower && op.d.deps.Replicas.Partition(ask.Topic, ask.Partition) != nil {
		return nil
	}
	return kerr.UnknownTopicOrPartition
}

func failedFetch(ask *partition.FetchPartition, err error) partition.FetchResult {
	return partition.FetchResult{
		Topic: ask.Topic, TopicID: ask.TopicID, Partition: ask.Partition, Err: err,
		HighWatermark: partition.None, LastStableOffset: partition.None, LogStartOffset: partition.None,
		PreferredReadReplica: partition.None, DivergingEpoch: partition.None, DivergingEndOffset: partition.None,
		LeaderID: partition.None, LeaderEpoch: partition.None,
		Aborted: []commitlog.AbortedTxn{}, // empty, not null, as Kafka's is here
	}
}

// done makes the answer. results are in line with the readable asks.
func (op *fetchCall) done(results []partition.FetchResult) {
	if op.withheld(results) {
		return
	}
	if op.version < batchesSince {
		read := recordBytes(results)
		op.downgrade(results)
		if pause := op.pause(read, results); pause > 0 {
			time.AfterFunc(pause, func() { op.tell(results) })
			return
		}
	}
	op.tell(results)
}

func (op *fetchCall) tell(results []partition.FetchResult) {
	all := results
	if len(op.failed) > 0 {
		all = append(results[:len(results):len(results)], op.failed...)
	}
	id, told, err := op.d.sessions.finish(time.Now(), &op.turn, all)
	if err != nil {
		for i := range all {
			all[i].Records.Release()
		}
		op.replyError(err, id, 0)
		return
	}
	if op.version < 10 {
		op.hideZstd(told)
	}
	resp := wire.FetchResponse{SessionID: id, Topics: op.topics(told)}
	if op.version >= 16 {
		resp.Brokers = op.currentLeaders(&resp)
	}
	op.Reply(wire.EncodeFetch(op.header, &resp))
}

// hideZstd takes the records out of partitions that are stored in a codec which
// versions below 10 do not know: those of topics whose compression.type is zstd.
// What producers chose to send in zstd elsewhere is passed on, as Kafka does.
func (op *fetchCall) hideZstd(told []partition.FetchResult) {
	for i := range told {
		r := &told[i]
		p := op.d.deps.Replicas.Partition(r.Topic, r.Partition)
		if p == nil || p.Log() == nil {
			continue
		}
		if c := p.Log().Config().Compression; c.Producer || c.Codec != record.Zstd {
			continue
		}
		r.Records.Release()
		told[i] = failedFetch(&partition.FetchPartition{Topic: r.Topic, TopicID: r.TopicID, Partition: r.Partition}, kerr.UnsupportedCompressionType)
	}
}

func (op *fetchCall) replyError(err error, session, throttleMs int32) {
	errorCode, _ := code(err)
	op.Reply(wire.EncodeFetch(op.header, &wire.FetchResponse{ThrottleMs: throttleMs, ErrorCode: errorCode, SessionID: session}))
}

// topics groups the results, whose order is kept: neighbours of one topic share
// an entry.
func (op *fetchCall) topics(results []partition.FetchResult) []wire.FetchTopic {
	if len(results) == 0 {
		return nil
	}
	parts := make([]wire.FetchPartition, len(results))
	topics := make([]wire.FetchTopic, 0, 1)
	start := 0
	for i := range results {
		op.partition(&parts[i], &results[i])
		if i > 0 && !sameFetchTopic(&results[i-1], &results[i]) {
			topics = append(topics, fetchTopic(&results[start], parts[start:i]))
			start = i
		}
	}
	return append(topics, fetchTopic(&results[start], parts[start:]))
}

func fetchTopic(r *partition.FetchResult, parts []wire.FetchPartition) wire.FetchTopic {
	return wire.FetchTopic{Topic: r.Topic, TopicID: r.TopicID, Partitions: parts}
}

func sameFetchTopic(a, b *partition.FetchResult) bool {
	if a.TopicID != (commitlog.TopicID{}) {
		return a.TopicID == b.TopicID
	}
	return a.Topic == b.Topic
}

func (op *fetchCall) partition(to *wire.FetchPartition, from *partition.FetchResult) {
	*to = wire.FetchPartition{
		Partition:            from.Partition,
		HighWatermark:        from.HighWatermark,
		LastStableOffset:     from.LastStableOffset,
		LogStartOffset:       from.LogStartOffset,
		PreferredReadReplica: from.PreferredReadReplica,
		DivergingEpoch:       from.DivergingEpoch,
		DivergingEndOffset:   from.DivergingEndOffset,
		LeaderID:             partition.None,
		LeaderEpoch:          partition.None,
		Records:              from.Records,
	}
	if from.Err != nil {
		op.d.faults("fetch", from.Err)
		snapshot := op.d.deps.Metadata.Load()
		to.ErrorCode = fetchErrorCode(op.version, placed(snapshot, from.Topic, from.Partition, from.Err))
		if op.version >= 16 && (to.ErrorCode == kerr.NotLeaderForPartition.Code || to.ErrorCode == kerr.FencedLeaderEpoch.Code) {
			to.LeaderID, to.LeaderEpoch = currentLeader(snapshot, from.Topic, from.Partition, from.LeaderID, from.LeaderEpoch)
		}
	}
	if from.Aborted != nil {
		to.Aborted = make([]wire.AbortedTxn, len(from.Aborted))
		for i, a := range from.Aborted {
			to.Aborted[i] = wire.AbortedTxn{ProducerID: a.ProducerID, FirstOffset: a.FirstOffset}
		}
	}
}

// fetchErrorCode hides KAFKA_STORAGE_ERROR from versions that take it for an
// error that retrying does not help.
func fetchErrorCode(version int16, err error) int16 {
	errorCode, _ := code(err)
	if errorCode == kerr.KafkaStorageError.Code && version <= 5 {
		return kerr.NotLeaderForPartition.Code
	}
	return errorCode
}

// currentLeaders collects the addresses of the leaders that partitions of the
// answer point to.
func (op *fetchCall) currentLeaders(resp *wire.FetchResponse) (found []wire.FetchBroker) {
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			id := resp.Topics[i].Partitions[j].LeaderID
			if id == partition.None || hasBroker(found, id) {
				continue
			}
			if e, b := brokerEndpoint(op.d.deps.Metadata.Load(), id, op.Conn.Listener); b != nil {
				found = append(found, wire.FetchBroker{NodeID: id, Host: e.Host, Port: e.Port, Rack: b.Rack})
			}
		}
	}
	return found
}

func hasBroker(brokers []wire.FetchBroker, id int32) bool {
	for i := range brokers {
		if brokers[i].NodeID == id {
			return true
		}
	}
	return false
}
