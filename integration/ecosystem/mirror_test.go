package ecosystem

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// side is one of two clusters that are copied to each other. Each has a topic "orders", which the other knows by this side's name and a dot before it, and a group "billing" that reads it.
type side struct {
	name    string
	cluster *cluster.Cluster
	admin   *kadm.Client
	other   *side

	seller *kgo.Client             // sends to the topic here, in transactions
	sent   map[int32][]*kgo.Record // what was committed, by partition
	rounds int

	reader *kgo.Client // of the copy on the other side
	copied map[int32][]*kgo.Record
}

const (
	perRound       = 300
	forgottenAfter = 30 * time.Second // a group is taken for one that MirrorMaker does not follow to the end
)

// MirrorMaker 2 copies between a Kafka and three Barnabas both ways, while it and a broker are killed: records as they are and once, the topics' settings and partitions, and where groups
// stand, so that a group of the one goes on in the other. Java's client for such clusters finds its way in what it writes.
func TestMirrorMakerCopiesBetweenKafkaAndBarnabasBothWays(t *testing.T) {
	classpath := compiled(t, "Translate.java")
	kafka, barnabas := newSide(t, "kafka", oneKafka(t)), newSide(t, "barnabas", threeBrokers(t))
	sides := []*side{kafka, barnabas}
	kafka.other, barnabas.other = barnabas, kafka
	for _, s := range sides {
		create(t, s.admin, 3, map[string]string{"retention.ms": "86400000", "max.message.bytes": "2000000"}, "orders")
		s.open(t)
		s.send(t)
	}
	mirror := launch(t, "MirrorMaker", classpath, "org.apache.kafka.connect.mirror.MirrorMaker", properties(t, mirrorSettings(sides...)))
	for _, s := range sides {
		s.awaitCopied(t, mirror)
		s.awaitSettings(t, mirror, map[string]string{"retention.ms": "86400000", "max.message.bytes": "2000000"})
	}

	mirror.kill()
	for _, s := range sides {
		s.send(t)
	}
	mirror.start(t)
	for _, s := range sides {
		s.send(t)
		s.awaitCopied(t, mirror)
	}

	victim := barnabas.leader(t, "kafka.orders")
	victim.Kill(t)
	for _, s := range sides {
		s.send(t)
		s.awaitCopied(t, mirror)
	}
	victim.Start(t)
	victim.WaitReady(t)

	for _, s := range sides {
		s.change(t)
		s.awaitSettings(t, mirror, map[string]string{"retention.ms": "172800000", "segment.bytes": "1048576"})
		s.awaitPartitions(t, mirror, 4)
		s.send(t)
		s.awaitCopied(t, mirror)
	}
	for _, s := range sides {
		s.readAsGroup(t, "orders", s.sent)
		offsets := s.awaitGroup(t, mirror)
		said := runs(t, classpath, "Translate", s.other.cluster.Bootstrap(), s.name, "billing")
		require.Equal(t, fmt.Sprintf("clusters [%s]\nhops 1\ncheckpoints [%s.checkpoints.internal]\noffsets %s\n", s.name, s.name, offsets), said)
	}
	for _, s := range sides {
		s.other.readAsGroup(t, s.name+".orders", s.sendMore(t, mirror))
		s.awaitHeartbeats(t, mirror)
	}
	mirror.stop(t)
}

// oneKafka is a broker of Apache Kafka.
func oneKafka(t *testing.T) *cluster.Cluster {
	return cluster.StartProgram(t, cluster.Kafka("3.9.1"), zktest.Embedded(t).Addr(), 1, map[string]string{
		"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false", "offsets.topic.num.partitions": "5",
		"transaction.state.log.num.partitions": "5", "transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1",
	}, func(int) map[string]string { return nil })
}

func mirrorSettings(sides ...*side) map[string]string {
	settings := map[string]string{
		"clusters": sides[0].name + "," + sides[1].name, "plugin.discovery": "service_load", "tasks.max": "2",
		"refresh.topics.interval.seconds": "2", "refresh.groups.interval.seconds": "2", "sync.topic.configs.interval.seconds": "2", "offset.lag.max": "0",
		"emit.checkpoints.interval.seconds": "1", "sync.group.offsets.enabled": "true", "sync.group.offsets.interval.seconds": "1", "emit.heartbeats.interval.seconds": "1",
	}
	for _, s := range sides {
		replicas := fmt.Sprint(len(s.cluster.Brokers))
		for name, value := range map[string]string{
			"bootstrap.servers": s.cluster.Bootstrap(), "plugin.discovery": "service_load", "exactly.once.source.support": "enabled", "consumer.isolation.level": "read_committed",
			"scheduled.rebalance.max.delay.ms": "0", "config.storage.replication.factor": replicas,
			"offset.storage.replication.factor": replicas, "offset.storage.partitions": "5", "status.storage.replication.factor": replicas, "status.storage.partitions": "5",
		} {
			settings[s.name+"."+name] = value
		}
		to, from := s.other.name+"->"+s.name+".", s.name+"->"+s.other.name+"."
		settings[to+"enabled"] = "true"
		settings[from+"offset-syncs.topic.replication.factor"] = replicas
		for _, of := range []string{"", "checkpoints.topic.", "heartbeats.topic."} {
			settings[to+of+"replication.factor"] = replicas
		}
	}
	return settings
}

func newSide(t *testing.T, name string, c *cluster.Cluster) *side {
	return &side{name: name, cluster: c, admin: kadm.NewClient(client(t, c)), sent: map[int32][]*kgo.Record{}, copied: map[int32][]*kgo.Record{}}
}

// open makes the clients that send here and read there.
func (s *side) open(t *testing.T) {
	s.seller = client(t, s.cluster, kgo.TransactionalID("seller"), kgo.DefaultProduceTopic("orders"))
	s.reader = client(t, s.other.cluster, kgo.ConsumeTopics(s.name+".orders"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
}

// send sends a round of records, and others in a transaction that is aborted: offsets here and there are not the same.
func (s *side) send(t *testing.T) {
	t.Helper()
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		var round []*kgo.Record
		for i := range perRound {
			round = append(round, &kgo.Record{
				Key: fmt.Appendf(nil, "%d", i), Value: fmt.Appendf(nil, "round %d of %s, committed: %t", s.rounds, s.name, end),
				Timestamp: time.UnixMilli(time.Now().UnixMilli() - int64(perRound-i)), Headers: []kgo.RecordHeader{{Key: "number", Value: fmt.Append(nil, i)}},
			})
		}
		ctx := lane.Patience(t)
		require.NoError(t, s.seller.BeginTransaction())
		require.NoError(t, s.seller.ProduceSync(ctx, round...).FirstErr())
		require.NoError(t, s.seller.EndTransaction(ctx, end))
		if end == kgo.TryCommit {
			slices.SortFunc(round, func(a, b *kgo.Record) int { return int(a.Offset - b.Offset) })
			for _, r := range round {
				s.sent[r.Partition] = append(s.sent[r.Partition], r)
			}
		}
	}
	s.rounds++
}

// plain is what of a record has to be the same after copying.
func plain(r *kgo.Record) string {
	return fmt.Sprintf("%s=%s %v at %d", r.Key, r.Value, r.Headers, r.Timestamp.UnixMilli())
}

// awaitCopied waits until all that was sent here is on the other side, in its partitions and in order.
func (s *side) awaitCopied(t *testing.T, mirror *program) {
	t.Helper()
	await(t, func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		s.reader.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			have := len(s.copied[r.Partition])
			require.Less(t, have, len(s.sent[r.Partition]), "more than what was sent: %s", plain(r))
			require.Equal(t, plain(s.sent[r.Partition][have]), plain(r), "at offset %d of partition %d", r.Offset, r.Partition)
			s.copied[r.Partition] = append(s.copied[r.Partition], r)
		})
		missing := 0
		for p, records := range s.sent {
			missing += len(records) - len(s.copied[p])
		}
		if missing > 0 {
			return fmt.Sprintf("%d records of %s are not copied", missing, s.name)
		}
		return ""
	}, mirror)
}

// sendMore sends a round, waits until it is copied, and returns it.
func (s *side) sendMore(t *testing.T, mirror *program) map[int32][]*kgo.Record {
	t.Helper()
	more := maps.Clone(s.sent)
	s.send(t)
	s.awaitCopied(t, mirror)
	for p, records := range s.sent {
		more[p] = records[len(more[p]):]
	}
	return more
}

// awaitSettings waits until the copy has settings of its own, and no others.
func (s *side) awaitSettings(t *testing.T, mirror *program, want map[string]string) {
	t.Helper()
	await(t, func() string {
		if own := settingsOf(t, s.other.admin, s.name+".orders"); !maps.Equal(want, own) {
			return fmt.Sprintf("%s.orders has the settings %v", s.name, own)
		}
		return ""
	}, mirror)
}

func (s *side) awaitPartitions(t *testing.T, mirror *program, n int) {
	t.Helper()
	await(t, func() string {
		listed, err := s.other.admin.ListTopics(lane.Patience(t), s.name+".orders")
		require.NoError(t, err)
		if have := len(listed[s.name+".orders"].Partitions); have != n {
			return fmt.Sprintf("%s.orders has %d partitions", s.name, have)
		}
		return ""
	}, mirror)
}

// change sets, alters and deletes settings of the topic, and adds a partition.
func (s *side) change(t *testing.T) {
	t.Helper()
	day, megabyte := "172800000", "1048576"
	altered, err := s.admin.AlterTopicConfigs(lane.Patience(t), []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "retention.ms", Value: &day}, {Op: kadm.SetConfig, Name: "segment.bytes", Value: &megabyte}, {Op: kadm.DeleteConfig, Name: "max.message.bytes"},
	}, "orders")
	require.NoError(t, err)
	for _, a := range altered {
		require.NoError(t, a.Err)
	}
	grown, err := s.admin.UpdatePartitions(lane.Patience(t), 4, "orders")
	require.NoError(t, err)
	require.NoError(t, grown.Error())
}

// readAsGroup reads, as the group, what it has not read of a topic, which must be certain records, and says that it has.
func (s *side) readAsGroup(t *testing.T, topic string, want map[int32][]*kgo.Record) {
	t.Helper()
	member := client(t, s.cluster, kgo.ConsumerGroup("billing"), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	defer member.Close()
	read, missing := map[int32]int{}, 0
	for _, records := range want {
		missing += len(records)
	}
	ctx := lane.Patience(t)
	for missing > 0 {
		fetches := member.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "the group has not read %d records of %s", missing, topic)
		fetches.EachRecord(func(r *kgo.Record) {
			have := read[r.Partition]
			require.Less(t, have, len(want[r.Partition]), "was read before: %s", plain(r))
			require.Equal(t, plain(want[r.Partition][have]), plain(r), "at offset %d of partition %d", r.Offset, r.Partition)
			read[r.Partition]++
			missing--
		})
	}
	require.NoError(t, member.CommitUncommittedOffsets(ctx))
}

// awaitGroup waits until the group stands on the other side where it stands here, behind the last record of each partition, and returns that as Java prints it. What MirrorMaker 3.9.1 is about
// to note of the last records it forgets when its tasks begin anew, as they do when a topic has grown; it notes the next ones. So others are sent and read if the group stays behind.
func (s *side) awaitGroup(t *testing.T, mirror *program) string {
	t.Helper()
	topic, since := s.name+".orders", time.Now()
	ends := func() map[int32]int64 {
		ends := map[int32]int64{}
		for p, records := range s.copied {
			ends[p] = records[len(records)-1].Offset + 1
		}
		return ends
	}
	await(t, func() string {
		offsets, err := s.other.admin.FetchOffsets(lane.Patience(t), "billing")
		require.NoError(t, err)
		stands := map[int32]int64{}
		for p, offset := range offsets.Offsets()[topic] {
			stands[p] = offset.At
		}
		if maps.Equal(ends(), stands) {
			return ""
		}
		if time.Since(since) > forgottenAfter {
			s.readAsGroup(t, "orders", s.sendMore(t, mirror))
			since = time.Now()
		}
		return fmt.Sprintf("the group stands at %v of %s, which ends at %v", stands, topic, ends())
	}, mirror)
	var printed []string
	for p, end := range ends() {
		printed = append(printed, fmt.Sprintf("%s-%d=%d", topic, p, end))
	}
	slices.Sort(printed)
	return "{" + strings.Join(printed, ", ") + "}"
}

// awaitHeartbeats waits for more of those that come from here.
func (s *side) awaitHeartbeats(t *testing.T, mirror *program) {
	t.Helper()
	beats := func() int64 {
		ends, err := s.other.admin.ListEndOffsets(lane.Patience(t), s.name+".heartbeats")
		require.NoError(t, err)
		end, ok := ends.Lookup(s.name+".heartbeats", 0)
		require.True(t, ok)
		require.NoError(t, end.Err)
		return end.Offset
	}
	before := beats()
	assert.Positive(t, before)
	await(t, func() string {
		if n := beats(); n <= before {
			return fmt.Sprintf("%s.heartbeats has stopped at %d", s.name, n)
		}
		return ""
	}, mirror)
}

// leader is the broker that leads the first partition of a topic.
func (s *side) leader(t *testing.T, topic string) *cluster.Broker {
	t.Helper()
	listed, err := s.admin.ListTopics(lane.Patience(t), topic)
	require.NoError(t, err)
	return s.cluster.Brokers[listed[topic].Partitions[0].Leader-1]
}
