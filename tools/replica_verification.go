package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/tools/options"
)

var replicaVerificationOptions = []options.Option{
	{Name: "broker-list", Arity: options.One, Value: "String: hostname:port,...,hostname:port", Doc: "Brokers to connect to, as host:port, separated by commas. Required."},
	{Name: "fetch-size", Arity: options.One, Value: "Integer: bytes", Doc: "Bytes of a partition that one request fetches. (default: 1048576)"},
	{Name: "help", Doc: "Print this text."},
	{Name: "max-wait-ms", Arity: options.One, Value: "Integer: ms", Doc: "How long a request may wait for records. (default: 1000)"},
	{Name: "report-interval-ms", Arity: options.One, Value: "Long: ms", Doc: "Milliseconds between reports. (default: 30000)"},
	{Name: "time", Arity: options.One, Value: "Long: timestamp/-1(latest)/-2(earliest)", Doc: "Where to begin. (default: -1)"},
	{Name: "topic-white-list", Arity: options.One, Value: "String: Java regex (String)", Doc: "Old name of --topics-include."},
	{Name: "topics-include", Arity: options.One, Value: "String: Java regex (String)", Doc: "A regular expression for the topics. (default: .*)"},
	{Name: "version", Doc: "Print the version."},
}

// ReplicaVerification is kafka-replica-verification: it reads what all replicas of partitions hold below the high watermark, and reports where they differ, until it is stopped.
func ReplicaVerification(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "kafka.tools.ReplicaVerificationTool$", intro: "Validate that all replicas for a set of topics have the same data.", options: replicaVerificationOptions, needs: []string{"broker-list"}, misread: exception,
		stdout: stdout, stderr: stderr}
	if compat39() {
		f.class = "org.apache.kafka.tools.ReplicaVerificationTool"
	}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	v, err := newReplicaVerifier(stdout, set)
	if err != nil {
		return f.uncaught(err)
	}
	defer v.client.Close()
	ctx, restore := untilStopped()
	defer restore()
	if err := v.run(ctx); err != nil && !errors.Is(err, errUnfinished) {
		return f.uncaught(err)
	} else if err != nil {
		return 1
	}
	return stopCode(ctx)
}

// replicaVerifier fetches, round by round, the same piece of each partition from all its replicas.
type replicaVerifier struct {
	out        io.Writer
	client     *kgo.Client
	topics     *regexp.Regexp
	fetchSize  int32
	wait       time.Duration
	interval   time.Duration
	begin      int64
	partitions plan.Assignment          // which brokers have a replica
	offsets    map[plan.Partition]int64 // up to where they have been verified
}

func newReplicaVerifier(out io.Writer, set *options.Set) (*replicaVerifier, error) {
	v := &replicaVerifier{out: out, partitions: plan.Assignment{}, offsets: map[plan.Partition]int64{}}
	var size, wait, interval int64
	for _, option := range []struct {
		name   string
		target *int64
		def    int64
	}{{"fetch-size", &size, 1 << 20}, {"max-wait-ms", &wait, 1000}, {"report-interval-ms", &interval, 30_000}, {"time", &v.begin, -1}} {
		var err error
		if *option.target, err = set.Int(option.name, option.def); err != nil {
			return nil, &badArgument{err.Error()}
		}
	}
	const largest = 1 << 30
	v.fetchSize, v.wait, v.interval = int32(min(max(size, 1), largest)), time.Duration(wait)*time.Millisecond, time.Duration(interval)*time.Millisecond
	pattern := ".*"
	for _, option := range []string{"topic-white-list", "topics-include"} {
		text, err := set.Value(option)
		if err != nil {
			return nil, err
		}
		if text != "" {
			pattern = strings.ReplaceAll(strings.Trim(strings.TrimSpace(text), `"'`), ",", "|")
		}
	}
	var err error
	if v.topics, err = regexp.Compile("^(?:" + pattern + ")$"); err != nil {
		return nil, &badArgument{pattern + " is an invalid regex."}
	}
	v.client, err = clientOptions{servers: []string{"broker-list"}}.connect(set)
	return v, err
}

func (v *replicaVerifier) say(format string, args ...any) {
	fmt.Fprintf(v.out, "%s: %s\n", time.Now().Format("2006-01-02 15:04:05,000"), fmt.Sprintf(format, args...))
}

func (v *replicaVerifier) run(ctx context.Context) error {
	if err := v.findPartitions(ctx); err != nil {
		return err
	}
	if compat39() {
		v.say("verification process is started")
	} else {
		v.say("verification process is started.")
	}
	reported := time.Now()
	for ctx.Err() == nil {
		began := time.Now()
		lag, whole, err := v.round(ctx)
		if err != nil {
			return err
		}
		if ctx.Err() == nil && time.Since(reported) > v.interval {
			v.say("max lag is %d for partition %v at offset %d among %d partitions", lag.records, lag.partition, lag.offset, len(v.partitions))
			reported = time.Now()
		}
		if !whole { // a broker is away: ask the others again only when they would have answered
			rest := time.NewTimer(time.Until(began.Add(v.wait)))
			select {
			case <-ctx.Done():
			case <-rest.C:
			}
			rest.Stop()
		}
	}
	return nil
}

func (v *replicaVerifier) findPartitions(ctx context.Context) error {
	meta, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, v.client)
	if err != nil {
		return err
	}
	var topics []string
	for _, t := range meta.Topics {
		if t.Topic == nil || t.ErrorCode != 0 || !v.topics.MatchString(*t.Topic) {
			continue
		}
		topics = append(topics, *t.Topic)
		for _, p := range t.Partitions {
			v.partitions[plan.Partition{Topic: *t.Topic, ID: p.Partition}] = p.Replicas
		}
	}
	if topics == nil {
		return errors.New("No topics found. --topics-include, if specified, is either filtering out all topics or there is no topic.")
	}
	adm := kadm.NewClient(v.client)
	var listed kadm.ListedOffsets
	switch v.begin {
	case -1:
		listed, err = adm.ListEndOffsets(ctx, topics...)
	case -2:
		listed, err = adm.ListStartOffsets(ctx, topics...)
	default:
		listed, err = adm.ListOffsetsAfterMilli(ctx, v.begin, topics...)
	}
	if err != nil {
		return err
	}
	for p := range v.partitions {
		o, ok := listed.Lookup(p.Topic, p.ID)
		if !ok || o.Err != nil {
			return errors.Join(fmt.Errorf("no offset is known of partition %v", p), o.Err)
		}
		v.offsets[p] = o.Offset
	}
	return nil
}

// greatestLag is the partition that is furthest from being verified up to its high watermark.
type greatestLag struct {
	partition       plan.Partition
	records, offset int64
}

// round fetches one piece of each partition from all its replicas and compares them. whole tells that all brokers answered.
func (v *replicaVerifier) round(ctx context.Context) (lag greatestLag, whole bool, err error) {
	pieces, whole := v.fetchAll(ctx)
	lag.records = -1
	for _, p := range v.partitions.Partitions() {
		replicas := v.partitions[p]
		held := make([]replicaPiece, len(replicas))
		for i, id := range replicas {
			held[i] = pieces[cluster.Replica{Partition: p, Broker: id}]
			held[i].replica = id
		}
		next, differences, fatal := compareHeld(p, v.offsets[p], held)
		for _, d := range differences {
			v.say("%s", d)
		}
		if fatal {
			return lag, whole, errUnfinished
		}
		v.offsets[p] = next
		var watermark int64
		for _, h := range held {
			watermark = max(watermark, h.highWatermark)
		}
		if left := watermark - next; left > lag.records {
			lag = greatestLag{p, left, next}
		}
	}
	return lag, whole, nil
}

// fetchAll asks all brokers at once for what they hold from the verified offsets on.
func (v *replicaVerifier) fetchAll(ctx context.Context) (pieces map[cluster.Replica]replicaPiece, whole bool) {
	byBroker := map[int32][]plan.Partition{}
	for _, p := range v.partitions.Partitions() {
		for _, id := range v.partitions[p] {
			byBroker[id] = append(byBroker[id], p)
		}
	}
	pieces, whole = map[cluster.Replica]replicaPiece{}, true
	var mu sync.Mutex
	var all sync.WaitGroup
	for id, partitions := range byBroker {
		all.Go(func() {
			resp, err := v.client.Broker(int(id)).Request(ctx, v.fetchRequest(partitions))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				whole = false
				return
			}
			for _, t := range resp.(*kmsg.FetchResponse).Topics {
				for _, p := range t.Partitions {
					whole = whole && p.ErrorCode == 0
					pieces[cluster.Replica{Partition: plan.Partition{Topic: t.Topic, ID: p.Partition}, Broker: id}] = replicaPiece{highWatermark: p.HighWatermark, logStart: p.LogStartOffset, batches: p.RecordBatches}
				}
			}
		})
	}
	all.Wait()
	return pieces, whole
}

// fetchRequest is that of somebody who may read from followers too, which a replica's request may not.
func (v *replicaVerifier) fetchRequest(partitions []plan.Partition) kmsg.Request {
	const (
		debugger = -2 // KIP-392: neither a replica nor a common consumer
		byName   = 12 // the last version that names topics
	)
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = debugger, int32(v.wait.Milliseconds()), 1, 1<<31-1, -1
	at := map[string]int{}
	for _, p := range partitions {
		if _, known := at[p.Topic]; !known {
			at[p.Topic] = len(req.Topics)
			t := kmsg.NewFetchRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		r := kmsg.NewFetchRequestTopicPartition()
		r.Partition, r.FetchOffset, r.PartitionMaxBytes, r.CurrentLeaderEpoch, r.LastFetchedEpoch, r.LogStartOffset = p.ID, v.offsets[p], v.fetchSize, -1, -1, -1
		req.Topics[at[p.Topic]].Partitions = append(req.Topics[at[p.Topic]].Partitions, r)
	}
	return &cappedRequest{req, byName}
}

// cappedRequest is a request of which versions after one are not asked for.
type cappedRequest struct {
	*kmsg.FetchRequest
	most int16
}

// MaxVersion is the last version that is asked for.
func (r *cappedRequest) MaxVersion() int16 { return r.most }
