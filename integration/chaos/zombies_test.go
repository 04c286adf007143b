package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
)

const zombieGroup = "watched"

// askForOffsets asks the broker that is a client's seed for the offsets of some partitions of the loaded topic, whether it is the group's coordinator or not.
func askForOffsets(ctx context.Context, client *kgo.Client, name string, partitions ...int32) (kmsg.Response, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = name
	topic := kmsg.NewOffsetFetchRequestGroupTopic()
	topic.Topic, topic.Partitions = loaded, partitions
	group.Topics = append(group.Topics, topic)
	req.Groups = append(req.Groups, group)
	req.Group, req.Topics = name, []kmsg.OffsetFetchRequestTopic{{Topic: loaded, Partitions: partitions}}
	return client.SeedBrokers()[0].Request(ctx, req)
}

// toldBy is the offset that a broker tells, asked by itself, or its error.
func toldBy(client *kgo.Client) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	resp, err := askForOffsets(ctx, client, zombieGroup, 0)
	if err != nil {
		return 0, err
	}
	answer := resp.(*kmsg.OffsetFetchResponse)
	if len(answer.Groups) > 0 {
		g := answer.Groups[0]
		if err := kerr.ErrorForCode(g.ErrorCode); err != nil {
			return 0, err
		}
		return g.Topics[0].Partitions[0].Offset, kerr.ErrorForCode(g.Topics[0].Partitions[0].ErrorCode)
	}
	return answer.Topics[0].Partitions[0].Offset, kerr.ErrorForCode(answer.ErrorCode)
}

// A coordinator that is cut off from ZooKeeper alone, or that sleeps, is deposed without hearing of it, while clients reach it as before. It must not tell them an offset that has been
// committed past at its successor: an application that begins there would do again what is done, and commit it again.
func TestACoordinatorThatIsDeposedUnawaresTellsNoOldOffset(t *testing.T) {
	w := newWorldWith(t, 3, 1, 7, map[string]string{"offsets.topic.num.partitions": "1"})
	lane.Need(t, w.firewall != nil, "nft, which root can use")
	for name, harm := range map[string]func(*cluster.Broker, string) fault{"cut from ZooKeeper": w.cutFromZooKeeper, "asleep": w.freeze} {
		t.Run(name, func(t *testing.T) {
			client, err := kgo.NewClient(kgo.SeedBrokers(w.Seeds()...), kgo.MetadataMinAge(50*time.Millisecond))
			require.NoError(t, err)
			defer client.Close()
			commitTo(t, client, 10)
			w.also = map[string]int{"__consumer_offsets": 1}
			w.converge(t, nil)
			old := coordinatorOf(t, client, w)
			asker, err := kgo.NewClient(kgo.SeedBrokers(old.Addr), kgo.RequestTimeoutOverhead(15*time.Second))
			require.NoError(t, err)
			defer asker.Close()
			require.Eventually(t, func() bool { // on a connection that stays
				offset, err := toldBy(asker)
				return err == nil && assert.EqualValues(t, 10, offset)
			}, soon, 20*time.Millisecond, "the coordinator tells its offset")

			f := harm(old, "coordinator")
			f.inject(t)
			t.Cleanup(func() {
				if t.Failed() {
					f.heal(t)
				}
			})
			others, err := kgo.NewClient(kgo.SeedBrokers(w.other(old).Addr), kgo.MetadataMinAge(50*time.Millisecond))
			require.NoError(t, err)
			defer others.Close()
			require.Eventually(t, func() bool { return coordinatorOf(t, others, w) != old }, soon, 20*time.Millisecond, "another is elected")
			commitTo(t, others, 20)

			type told struct {
				offset int64
				err    error
			}
			answer := make(chan told, 1)
			go func() {
				offset, err := toldBy(asker)
				answer <- told{offset, err}
			}()
			if name == "asleep" {
				time.Sleep(200 * time.Millisecond) // the question is in its socket when it wakes
				f.heal(t)
			}
			got := <-answer
			require.True(t, got.err != nil || got.offset == 20, "the deposed coordinator tells %d", got.offset)
			t.Logf("the deposed coordinator says %d, %v", got.offset, got.err)
			if name != "asleep" {
				f.heal(t)
			}
			w.converge(t, []fault{f})
			require.Eventually(t, func() bool {
				all, err := kadm.NewClient(client).FetchOffsets(lane.Patience(t), zombieGroup)
				at, found := all.Lookup(loaded, 0)
				return err == nil && found && at.At == 20
			}, soon, 50*time.Millisecond, "whoever is coordinator in the end knows the last offset")
		})
	}
}

func coordinatorOf(t testing.TB, client *kgo.Client, w *world) *cluster.Broker {
	t.Helper()
	var b *cluster.Broker
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		found := kadm.NewClient(client).FindGroupCoordinators(ctx, zombieGroup)[zombieGroup]
		if found.Err != nil || found.NodeID < 1 {
			return false
		}
		b = w.Brokers[found.NodeID-1]
		return true
	}, soon, 20*time.Millisecond, "there is a coordinator")
	return b
}

// commitTo commits an offset until it is acknowledged.
func commitTo(t testing.TB, client *kgo.Client, offset int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		var offsets kadm.Offsets
		offsets.Add(kadm.Offset{Topic: loaded, Partition: 0, At: offset, LeaderEpoch: -1})
		committed, err := kadm.NewClient(client).CommitOffsets(ctx, zombieGroup, offsets)
		return err == nil && committed.Error() == nil
	}, soon, 50*time.Millisecond, "offset %d is committed", offset)
}

// While ZooKeeper is away for everybody no session vouches for a coordinator, but its followers do: it goes on telling offsets and ending transactions.
func TestCoordinatorsAnswerWhileZooKeeperIsAway(t *testing.T) {
	w := newWorldWith(t, 3, 1, 8, map[string]string{"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"})
	client, err := kgo.NewClient(kgo.SeedBrokers(w.Seeds()...), kgo.MetadataMinAge(50*time.Millisecond), kgo.AlwaysRetryEOF(), kgo.DefaultProduceTopic(loaded), kgo.TransactionalID("steady"))
	require.NoError(t, err)
	defer client.Close()
	commitTo(t, client, 10)
	transact := func() {
		require.NoError(t, client.BeginTransaction())
		require.NoError(t, client.ProduceSync(lane.Patience(t), kgo.StringRecord("x")).FirstErr())
		require.NoError(t, client.EndTransaction(lane.Patience(t), kgo.TryCommit))
	}
	transact()
	w.also = map[string]int{"__consumer_offsets": 1, "__transaction_state": 1}
	w.converge(t, nil)
	asker, err := kgo.NewClient(kgo.SeedBrokers(coordinatorOf(t, client, w).Addr))
	require.NoError(t, err)
	defer asker.Close()
	w.zk.Stop()
	for away := time.Now(); time.Since(away) < 4*session; {
		// A follower that is held up for seconds makes a coordinator say that it may be none: then a client asks again.
		require.Eventually(t, func() bool {
			offset, err := toldBy(asker)
			return err == nil && assert.EqualValues(t, 10, offset)
		}, soon, 20*time.Millisecond, "offsets are told")
		transact()
	}
	w.zk.Start()
	w.converge(t, nil)
}
