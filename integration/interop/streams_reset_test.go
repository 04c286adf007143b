package interop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// Two applications in the same state are reset, one by our tool and one by Kafka's: the tools must say, and do, the same. APP stands for the application, FILE for a plan.

var streamsResets = []struct {
	args string
	only string // the release that has it; "" is both
	said string // what both have to say; "" compares all of it
}{
	{args: ""},
	{args: "--application-id APP --to-latest --shift-by 1", said: `Option "[to-latest]" can't be used with option "[shift-by]"`},
	{args: "--application-id APP --input-topics readings"}, // somebody is in the group
	{args: "--application-id APP --dry-run --force"},
	{args: "--application-id APP --dry-run --input-topics readings,nosuch --intermediate-topics middle,none"},
	{args: "--application-id APP --dry-run --input-topics readings --shift-by -3"},
	{args: "--application-id APP --dry-run --input-topics readings --to-offset 5"},
	{args: "--application-id APP --dry-run --input-topics readings --to-offset 99"},
	{args: "--application-id APP --dry-run --input-topics readings --to-latest"},
	{args: "--application-id APP --dry-run --input-topics readings --to-datetime 2023-11-14T22:13:25.000Z"},
	{args: "--application-id APP --dry-run --input-topics readings --by-duration PT1H", only: "3.9.1"}, // 2.8.2 stumbles over partitions that have nothing as late
	{args: "--application-id APP --dry-run --input-topics readings --from-file FILE"},
	{args: "--application-id APP --dry-run --input-topics readings --from-file /nosuch"},
	{args: "--application-id APP --dry-run --internal-topics APP-output", only: "3.9.1", said: "Invalid topic specified in the --internal-topics option"},
	{args: "--application-id APP --dry-run --internal-topics APP-store-changelog", only: "3.9.1"},
	{args: "--application-id APP --input-topics readings --intermediate-topics middle"},
}

func TestStreamsApplicationsAreResetAsByKafkasTool(t *testing.T) {
	lane.Java(t)
	c := cluster.Start(t, zktest.Embedded(t).Addr(), 1, map[string]string{"log.retention.ms": "-1", "group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"})
	client := franz(t, c, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	admin := kadm.NewClient(client)
	makeTopic(t, client, "readings", 2)
	makeTopic(t, client, "middle", 1)
	for i := range 10 {
		at := time.UnixMilli(1_700_000_000_000 + int64(i)*1000)
		for _, r := range []*kgo.Record{{Topic: "readings", Partition: 0, Timestamp: at}, {Topic: "readings", Partition: 1, Timestamp: at}, {Topic: "middle", Timestamp: at}} {
			r.Value = []byte("v")
			require.NoError(t, client.ProduceSync(lane.Patience(t), r).FirstErr())
		}
	}
	plan := filepath.Join(t.TempDir(), "plan.csv")
	require.NoError(t, os.WriteFile(plan, []byte("readings,0,2\nreadings,1,3\n"), 0o600))
	for at, version := range []string{"2.8.2", "3.9.1"} {
		t.Run(version, func(t *testing.T) {
			ours, theirs := "ours"+version, "theirs"+version
			for _, app := range []string{ours, theirs} {
				makeTopic(t, client, app+"-store-changelog", 1)
				makeTopic(t, client, app+"-output", 1)
				sitInGroup(t, client, app)
			}
			kafka := startEachTool(t, version)
			for _, reset := range streamsResets {
				if reset.only != "" && reset.only != version {
					continue
				}
				call := toolCall{command: "kafka-streams-application-reset", args: reset.args, said: reset.said}
				words := func(app string) []string {
					args := strings.NewReplacer("APP", app, "FILE", plan).Replace(reset.args)
					if args != "" {
						args += map[string]string{"2.8.2": " --bootstrap-servers ", "3.9.1": " --bootstrap-server "}[version] + c.Brokers[0].Addr
					}
					return strings.Fields(args)
				}
				want := ofApplication(kafka.run(t, classesOf[call.command][at], words(theirs)), theirs)
				got := ofApplication(runOwn(t, version, call.command, words(ours)), ours)
				compareTools(t, call, want, got)
			}
			for _, app := range []string{ours, theirs} {
				offsets, err := admin.FetchOffsets(lane.Patience(t), app)
				require.NoError(t, err)
				var committed []string
				for _, o := range offsets.Sorted() {
					committed = append(committed, fmt.Sprintf("%s-%d at %d", o.Topic, o.Partition, o.At))
				}
				assert.Equal(t, []string{"middle-0 at 10", "readings-0 at 0", "readings-1 at 0"}, committed, app)
				require.Eventually(t, func() bool {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					topics, err := admin.ListTopics(ctx)
					return err == nil && !topics.Has(app+"-store-changelog") && topics.Has(app+"-output")
				}, patience, 50*time.Millisecond)
			}
		})
	}
}

var memberNames = regexp.MustCompile(`memberId=[^,]*,`)

// ofApplication takes the name of an application, and what differs between its members, out of what a tool said.
func ofApplication(s said, app string) said {
	for _, text := range []*string{&s.out, &s.err} {
		*text = memberNames.ReplaceAllString(strings.ReplaceAll(*text, app, "APP"), "memberId=M,")
	}
	return s
}

func makeTopic(t *testing.T, client *kgo.Client, name string, partitions int32) {
	t.Helper()
	r, err := kadm.NewClient(client).CreateTopic(lane.Patience(t), partitions, 1, nil, name)
	require.NoError(t, err)
	require.NoError(t, r.Err)
}

// sitInGroup makes a group with a committed offset and a member that is never heard of again, but has half an hour left.
func sitInGroup(t *testing.T, client *kgo.Client, group string) {
	t.Helper()
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis, join.InstanceID = group, "consumer", 1_800_000, 1_800_000, kmsg.StringPtr("seat")
	member := kmsg.NewConsumerMemberMetadata()
	member.Topics = []string{"readings"}
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "range", member.AppendTo(nil)
	join.Protocols = append(join.Protocols, protocol)
	joined, err := join.RequestWith(lane.Patience(t), client)
	require.NoError(t, err)
	require.Zero(t, joined.ErrorCode)

	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.Generation, sync.MemberID, sync.InstanceID = group, joined.Generation, joined.MemberID, join.InstanceID
	sync.ProtocolType, sync.Protocol = &join.ProtocolType, kmsg.StringPtr("range")
	assigned := kmsg.NewConsumerMemberAssignment()
	topic := kmsg.NewConsumerMemberAssignmentTopic()
	topic.Topic, topic.Partitions = "readings", []int32{1}
	assigned.Topics = append(assigned.Topics, topic)
	one := kmsg.NewSyncGroupRequestGroupAssignment()
	one.MemberID, one.MemberAssignment = joined.MemberID, assigned.AppendTo(nil)
	sync.GroupAssignment = append(sync.GroupAssignment, one)
	synced, err := sync.RequestWith(lane.Patience(t), client)
	require.NoError(t, err)
	require.Zero(t, synced.ErrorCode)

	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Group, commit.Generation, commit.MemberID, commit.InstanceID = group, joined.Generation, joined.MemberID, join.InstanceID
	of := kmsg.NewOffsetCommitRequestTopic()
	of.Topic = "readings"
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = 7
	of.Partitions = append(of.Partitions, p)
	commit.Topics = append(commit.Topics, of)
	committed, err := commit.RequestWith(lane.Patience(t), client)
	require.NoError(t, err)
	require.Zero(t, committed.Topics[0].Partitions[0].ErrorCode)
}
