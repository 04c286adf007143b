package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/plan"
	"barnabas/tools/subcommands"
)

var verifiableConsumerCommand = subcommands.Command{
	Name: "verifiable-consumer", Doc: "This tool consumes messages from a specific topic and emits consumer events (e.g. group rebalances, received messages, and offsets committed) as JSON objects to STDOUT.",
	OneOf: [][]string{{"bootstrap-server", "broker-list"}},
	Arguments: []subcommands.Argument{
		{Name: "topic", Value: "TOPIC", Required: true, Doc: "the topic"},
		{Name: "group-protocol", Value: "GROUP_PROTOCOL", Default: "classic", Doc: "classic; consumer is a protocol that clusters on ZooKeeper do not have"},
		{Name: "group-remote-assignor", Value: "GROUP_REMOTE_ASSIGNOR", Doc: "accepted; belongs to the protocol that clusters on ZooKeeper do not have"},
		{Name: "group-id", Value: "GROUP_ID", Required: true, Doc: "the group"},
		{Name: "group-instance-id", Value: "GROUP_INSTANCE_ID", Doc: "makes this a static member"},
		{Name: "max-messages", Value: "MAX-MESSAGES", Number: subcommands.Integer, Default: "-1", Doc: "how many messages to consume; -1 is until the process is ended"},
		{Name: "session-timeout", Value: "TIMEOUT_MS", Number: subcommands.Integer, Default: "30000", Doc: "session timeout of the member in milliseconds"},
		{Name: "verbose", Doc: "tell of every record"},
		{Name: "enable-autocommit", Doc: "commit offsets every few seconds, not after each poll"},
		{Name: "reset-policy", Value: "RESETPOLICY", Default: "earliest", Doc: "where to begin without a committed offset: earliest, latest or none, which is an error"},
		{Name: "assignment-strategy", Value: "ASSIGNMENTSTRATEGY", Default: "org.apache.kafka.clients.consumer.RangeAssignor", Doc: "how partitions are divided: RangeAssignor, RoundRobinAssignor, StickyAssignor or CooperativeStickyAssignor"},
		{Name: "consumer.config", Value: "CONFIG_FILE", Doc: "property file with settings of the consumer; options count before them"},
		{Name: "bootstrap-server", Value: "HOST1:PORT1[,HOST2:PORT2[...]]", Doc: "brokers to connect to"},
		{Name: "broker-list", Value: "HOST1:PORT1[,HOST2:PORT2[...]]", Doc: "old name of --bootstrap-server"},
	},
}

// VerifiableConsumer is kafka-verifiable-consumer.
func VerifiableConsumer(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	stderr = &inTurn{w: stderr}
	if len(args) == 0 {
		_, err := verifiableConsumerCommand.Parse([]string{"--help"})
		_ = subcommands.Report(err, stdout, stderr)
		return 0
	}
	call, err := verifiableConsumerCommand.Parse(args)
	if err != nil {
		return subcommands.Report(err, stdout, stderr)
	}
	f := face{class: "org.apache.kafka.tools.VerifiableConsumer", stdout: stdout, stderr: stderr}
	v, err := newVerifiableConsumer(f, call)
	if err != nil {
		fmt.Fprintf(stderr, "verifiable-consumer: error: %s\n", err)
		return 1
	}
	ctx, restore := untilStopped()
	defer restore()
	if err := v.run(ctx); err != nil {
		fmt.Fprintf(stderr, "%sError during processing, terminating consumer process:  (%s)\n%s: %s\n", f.logLine("ERROR"), f.class, exceptionClass(err), described(err))
		if strict() {
			return 1
		}
	}
	return stopCode(ctx)
}

// verifiableConsumer consumes a topic and tells of all that happens to it. Rebalances wait while records are dealt with, so that lines stand in the order in which things came about: no record of a
// partition after the partition is revoked.
type verifiableConsumer struct {
	eventLog
	client     *kgo.Client
	protocol   string
	left       int64 // messages that are still wanted; negative: any number
	verbose    bool
	autoCommit bool
	perPoll    int
}

type (
	topicPartition struct {
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
	}
	partitionsEvent struct {
		event
		Partitions []topicPartition `json:"partitions"`
	}
	recordEvent struct {
		event
		Key   *string `json:"key"`
		Value *string `json:"value"`
		topicPartition
		Offset int64 `json:"offset"`
	}
	consumedEvent struct {
		event
		Count      int                  `json:"count"`
		Partitions []consumedPartitions `json:"partitions"`
	}
	consumedPartitions struct {
		topicPartition
		Count int   `json:"count"`
		First int64 `json:"minOffset"`
		Last  int64 `json:"maxOffset"`
	}
	committedEvent struct {
		event
		Offsets []committedOffset `json:"offsets"`
		Error   string            `json:"error,omitempty"`
		Success bool              `json:"success"`
	}
	committedOffset struct {
		topicPartition
		Offset int64 `json:"offset"`
	}
)

func newVerifiableConsumer(f face, call *subcommands.Call) (*verifiableConsumer, error) {
	v := &verifiableConsumer{eventLog: eventLog{out: f.stdout}, protocol: call.Value("group-protocol"), left: call.Int("max-messages"), verbose: call.Has("verbose"), autoCommit: call.Has("enable-autocommit")}
	settings, err := clientOptions{[]string{"bootstrap-server", "broker-list"}, "consumer.config", ""}.settings(callArguments{call})
	if err != nil {
		return nil, err
	}
	for name, argument := range map[string]string{"group.id": "group-id", "group.instance.id": "group-instance-id", "session.timeout.ms": "session-timeout", "auto.offset.reset": "reset-policy",
		"partition.assignment.strategy": "assignment-strategy"} {
		if call.Has(argument) {
			settings[name] = call.Value(argument)
		}
	}
	settings["enable.auto.commit"] = fmt.Sprint(v.autoCommit)
	nameClient(settings, "consumer-"+settings["group.id"]+"-1")
	opts, err := consumerOptions(settings)
	if err != nil {
		return nil, err
	}
	if v.perPoll, err = recordsPerPoll(settings); err != nil {
		return nil, err
	}
	revoked := func(_ context.Context, client *kgo.Client, partitions map[string][]int32) {
		if v.autoCommit {
			commitPrinted(client)
		}
		v.tellPartitions("partitions_revoked", partitions)
	}
	opts = append(opts, kgo.ConsumeTopics(call.Value("topic")), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			v.tellPartitions("partitions_assigned", partitions)
		}),
		kgo.OnPartitionsRevoked(revoked),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			if len(partitions) > 0 {
				v.tellPartitions("partitions_revoked", partitions)
			}
		}))
	v.client, err = f.connect(settings, opts...)
	return v, err
}

func (v *verifiableConsumer) tellPartitions(name string, partitions map[string][]int32) {
	list := []topicPartition{}
	for _, topic := range sortedKeys(partitions) {
		for _, id := range slices.Sorted(slices.Values(partitions[topic])) {
			list = append(list, topicPartition{topic, id})
		}
	}
	v.tell(partitionsEvent{now(name), list})
}

// run consumes until what was asked for is there, something cannot be mended, or the context ends.
func (v *verifiableConsumer) run(ctx context.Context) error {
	v.tell(now("startup_complete"))
	defer func() {
		v.client.CloseAllowingRebalance()
		v.tell(now("shutdown_complete"))
	}()
	if strings.EqualFold(v.protocol, "consumer") {
		return kerr.UnsupportedVersion
	}
	for v.left != 0 && ctx.Err() == nil {
		fetches := v.client.PollRecords(ctx, v.perPoll)
		err := errors.Join(v.consumed(fetches), hopeless(fetches))
		v.client.AllowRebalance()
		if err != nil {
			return err
		}
	}
	return nil
}

// consumed tells what came, as much of it as is still wanted, and commits that.
func (v *verifiableConsumer) consumed(fetches kgo.Fetches) error {
	if fetches.NumRecords() == 0 {
		return nil
	}
	line := consumedEvent{now("records_consumed"), fetches.NumRecords(), []consumedPartitions{}}
	offsets := map[string]map[int32]kgo.EpochOffset{}
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		records := p.Records
		if v.left >= 0 {
			records = records[:min(int64(len(records)), v.left)]
			v.left -= int64(len(records))
		}
		if len(records) == 0 {
			return
		}
		last := records[len(records)-1]
		where := topicPartition{p.Topic, p.Partition}
		line.Partitions = append(line.Partitions, consumedPartitions{where, len(records), records[0].Offset, last.Offset})
		if offsets[p.Topic] == nil {
			offsets[p.Topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[p.Topic][p.Partition] = kgo.EpochOffset{Epoch: last.LeaderEpoch, Offset: last.Offset + 1}
		if v.verbose {
			for _, r := range records {
				v.tell(recordEvent{now("record_data"), textOrNull(r.Key), textOrNull(r.Value), where, r.Offset})
			}
		}
	})
	v.tell(line)
	if v.autoCommit {
		v.client.MarkCommitOffsets(offsets)
		return nil
	}
	return v.commit(offsets)
}

func textOrNull(b []byte) *string {
	if b == nil {
		return nil
	}
	text := string(b)
	return &text
}

// commit commits offsets and tells how that went; only a member that another has taken the place of has to stop.
func (v *verifiableConsumer) commit(offsets map[string]map[int32]kgo.EpochOffset) error {
	line := committedEvent{event: event{Name: "offsets_committed"}, Offsets: []committedOffset{}, Success: true}
	for _, topic := range sortedKeys(offsets) {
		for _, id := range sortedKeys(offsets[topic]) {
			line.Offsets = append(line.Offsets, committedOffset{topicPartition{topic, id}, offsets[topic][id].Offset})
		}
	}
	var failed error
	v.client.CommitOffsetsSync(context.Background(), offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		failed = commitFault(resp, err)
	})
	if errors.Is(failed, kerr.FencedInstanceID) {
		return failed
	}
	if failed != nil {
		line.Error, line.Success = described(failed), false
	}
	line.Timestamp = now("").Timestamp
	v.tell(line)
	return nil
}

// commitFault is what went wrong with a commit, or with any partition of it.
func commitFault(resp *kmsg.OffsetCommitResponse, err error) error {
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			err = errors.Join(err, answered(p.ErrorCode, nil))
		}
	}
	return err
}

// hopeless finds, in what a poll returned, what no further poll will mend: a group that does not take this member, a partition that must not be read or has no place to begin.
func hopeless(fetches kgo.Fetches) error {
	for _, e := range fetches.Errors() {
		var group *kgo.ErrGroupSession
		var loss *kgo.ErrDataLoss
		var code *kerr.Error
		where := plan.Partition{Topic: e.Topic, ID: e.Partition}
		switch {
		case errors.As(e.Err, &group):
			if errors.As(e.Err, &code) && slices.Contains(groupRefusals, code) {
				return code
			}
		case errors.As(e.Err, &code):
			if !code.Retriable {
				return fmt.Errorf("%w: %v", code, where)
			}
		case e.Topic == "", errors.As(e.Err, &loss), kgo.IsRetryableBrokerErr(e.Err), errors.Is(e.Err, context.Canceled), errors.Is(e.Err, context.DeadlineExceeded):
		default:
			return fmt.Errorf("%v: %w", where, e.Err)
		}
	}
	return nil
}

// groupRefusals are the answers after which joining again is of no use.
var groupRefusals = []*kerr.Error{kerr.GroupAuthorizationFailed, kerr.TopicAuthorizationFailed, kerr.FencedInstanceID, kerr.InvalidGroupID, kerr.InvalidSessionTimeout, kerr.InconsistentGroupProtocol,
	kerr.GroupMaxSizeReached, kerr.UnsupportedVersion}
