package ecosystem

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
)

const (
	products  = 17
	soldEach  = 20 * time.Millisecond // by the orders' own times
	soldRound = 20                    // orders at once
	soldPause = 100 * time.Millisecond
	goesOn    = 400  // so many orders more show that the application works
	ahead     = 2000 // no more than so many are sold and not counted, or a busy machine would never catch up
)

// shop sells while the application (testdata/Sales.java) counts. What was sold follows from how many orders there are: order i is for product i%products, and made soldEach after the one before.
type shop struct {
	t        *testing.T
	cluster  *cluster.Cluster
	client   *kgo.Client
	sold     atomic.Int64
	stop     chan struct{}
	selling  sync.WaitGroup
	opened   time.Time
	programs []*program

	results *kgo.Client
	counted atomic.Int64 // how many orders the results tell of
	counts  map[string]int
	minutes map[string]string
	paid    map[string]string
}

func product(order int64) string { return fmt.Sprintf("product-%d", order%products) }

// Two instances of an application, each with two threads and with replicas of the other's state, while one is killed and comes back as the same static member, a broker is killed, and the other
// instance is killed for good: each running count is told once and in order, each minute once and as it was, each payment once. Its internal topics are as it wants them, what was read of a
// repartition topic is deleted, and the tool that resets an application finds its way.
func TestAStreamsApplicationCountsEachOrderOnceWhateverIsKilled(t *testing.T) {
	classpath := compiled(t, "Sales.java")
	s := openShop(t)
	instances := map[string]*program{}
	for _, name := range []string{"first", "second"} {
		instances[name] = launch(t, name, classpath, "Sales", properties(t, s.settings(name)))
		s.programs = append(s.programs, instances[name])
	}
	s.awaitGoingOn("the application has started")

	instances["second"].kill()
	instances["second"].start(t)
	s.awaitGoingOn("an instance was killed and came back")

	coordinator := s.coordinator()
	coordinator.Kill(t)
	s.awaitGoingOn("the coordinator of the group was killed")
	coordinator.Start(t)
	coordinator.WaitReady(t)

	instances["first"].kill()
	s.programs = []*program{instances["second"]}
	s.awaitGoingOn("the other instance was killed")

	s.close()
	s.await("all is told", func() bool {
		return s.counted.Load() == s.sold.Load()+products && len(s.paid) == int(s.sold.Load()) && len(s.minutes) == len(s.minutesSold())
	})
	instances["second"].stop(t)
	s.requireTold()
	s.requireInternalTopics()
	s.requireReset(classpath)
	t.Logf("%d orders", s.sold.Load())
}

func openShop(t *testing.T) *shop {
	c := threeBrokers(t)
	s := &shop{t: t, cluster: c, client: client(t, c), stop: make(chan struct{}), opened: time.Now().Truncate(time.Minute), counts: map[string]int{}, minutes: map[string]string{}, paid: map[string]string{}}
	create(t, kadm.NewClient(s.client), 3, nil, "orders", "payments", "counts", "minutes", "paid")
	for _, topic := range []string{"orders", "payments", "counts", "minutes", "paid"} {
		c.WaitWhole(t, topic, 3, 3)
	}
	s.results = client(t, c, kgo.ConsumeTopics("counts", "minutes", "paid"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	s.selling.Go(s.sell)
	t.Cleanup(func() {
		s.endSelling()
		s.selling.Wait()
	})
	return s
}

func (s *shop) settings(instance string) map[string]string {
	return map[string]string{
		"application.id": "sales", "bootstrap.servers": s.cluster.Bootstrap(), "state.dir": s.t.TempDir(), "processing.guarantee": "exactly_once_v2",
		"num.stream.threads": "2", "num.standby.replicas": "1", "group.instance.id": instance, "session.timeout.ms": "10000", "heartbeat.interval.ms": "1000",
		"statestore.cache.max.bytes": "0", "repartition.purge.interval.ms": "500",
		"default.key.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde", "default.value.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
	}
}

// sell sends orders and their payments until it is told to stop.
func (s *shop) sell() {
	for {
		if s.sold.Load()-s.counted.Load() < ahead {
			s.sellRound()
		}
		select {
		case <-s.stop:
			return
		case <-time.After(soldPause):
		}
	}
}

func (s *shop) sellRound() {
	for range soldRound {
		i := s.sold.Load()
		at := s.opened.Add(time.Duration(i) * soldEach)
		s.send("orders", i, product(i), at)
		s.send("payments", i, "paid", at)
		s.sold.Add(1)
	}
}

func (s *shop) send(topic string, order int64, value string, at time.Time) {
	s.client.Produce(s.t.Context(), &kgo.Record{Topic: topic, Key: strconv.AppendInt(nil, order, 10), Value: []byte(value), Timestamp: at}, func(_ *kgo.Record, err error) {
		if err != nil && s.t.Context().Err() == nil {
			assert.NoError(s.t, err, "%s %d", topic, order)
		}
	})
}

func (s *shop) endSelling() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
}

// close ends the selling. An order for each product two hours later, which nobody pays for, makes all minutes be over.
func (s *shop) close() {
	s.t.Helper()
	s.endSelling()
	s.selling.Wait()
	sold := s.sold.Load()
	s.await("all is counted", func() bool { return s.counted.Load() == sold })
	late := s.opened.Add(time.Duration(sold)*soldEach + 2*time.Hour)
	for i := range int64(products) {
		s.send("orders", sold+i, product(i), late)
	}
	require.NoError(s.t, s.client.Flush(lane.Patience(s.t)))
}

// awaitGoingOn waits until orders that are sold from now on are paid, and counted: of each product as many or more.
func (s *shop) awaitGoingOn(after string) {
	s.t.Helper()
	sold, each := s.sold.Load()+goesOn, map[string]int{}
	for i := range sold {
		each[product(i)]++
	}
	s.await(after, func() bool {
		for product, n := range each {
			if s.counts[product] < n {
				return false
			}
		}
		for i := range sold {
			if s.paid[strconv.FormatInt(i, 10)] == "" {
				return false
			}
		}
		return true
	})
}

// await reads results until something holds.
func (s *shop) await(what string, holds func() bool) {
	s.t.Helper()
	began := time.Now()
	defer func() { s.t.Logf("%s: %.1f s", what, time.Since(began).Seconds()) }()
	await(s.t, func() string {
		ctx, cancel := context.WithTimeout(s.t.Context(), 100*time.Millisecond)
		defer cancel()
		s.results.PollFetches(ctx).EachRecord(s.hear)
		if holds() {
			return ""
		}
		return fmt.Sprintf("%s: of %d orders %d are counted, %d are paid, and %d minutes told of", what, s.sold.Load(), s.counted.Load(), len(s.paid), len(s.minutes))
	}, s.programs...)
}

// hear takes a result. A running count must follow its predecessor; the others must be the first of their key.
func (s *shop) hear(r *kgo.Record) {
	key, value := string(r.Key), string(r.Value)
	switch r.Topic {
	case "counts":
		s.counts[key]++
		require.Equal(s.t, strconv.Itoa(s.counts[key]), value, "count of %s at offset %d of partition %d", key, r.Offset, r.Partition)
		s.counted.Add(1)
	case "minutes":
		require.NotContains(s.t, s.minutes, key)
		s.minutes[key] = value
	case "paid":
		require.NotContains(s.t, s.paid, key)
		s.paid[key] = value
	}
}

// minutesSold is what is to be told of minutes.
func (s *shop) minutesSold() map[string]string {
	sold := map[string]int{}
	for i := range s.sold.Load() {
		minute := s.opened.Add(time.Duration(i) * soldEach).Truncate(time.Minute)
		sold[fmt.Sprintf("%s@%d", product(i), minute.UnixMilli())]++
	}
	told := map[string]string{}
	for key, n := range sold {
		told[key] = strconv.Itoa(n)
	}
	return told
}

func (s *shop) requireTold() {
	s.t.Helper()
	require.Equal(s.t, s.minutesSold(), s.minutes)
	for i := range s.sold.Load() {
		require.Equal(s.t, product(i)+" paid", s.paid[strconv.FormatInt(i, 10)], "order %d", i)
	}
}

// coordinator is the broker that coordinates the application's group.
func (s *shop) coordinator() *cluster.Broker {
	s.t.Helper()
	found := kadm.NewClient(s.client).FindGroupCoordinators(lane.Patience(s.t), "sales")
	require.NoError(s.t, found.Error())
	return s.cluster.Brokers[found["sales"].NodeID-1]
}

// The application's internal topics, with what Kafka Streams 3.9 makes them with. A changelog keeps what may still be changed and a day more.
var salesTopics = map[string]map[string]string{
	"by-product-repartition":          {"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": "52428800"},
	"counts-changelog":                {"cleanup.policy": "compact"},
	"minutes-changelog":               {"cleanup.policy": "compact,delete", "retention.ms": "90060000"},
	"closed-store-changelog":          {"cleanup.policy": "compact"},
	"paid-this-join-store-changelog":  {"cleanup.policy": "delete", "retention.ms": "97200000"},
	"paid-other-join-store-changelog": {"cleanup.policy": "delete", "retention.ms": "97200000"},
}

func (s *shop) requireInternalTopics() {
	s.t.Helper()
	admin := kadm.NewClient(s.client)
	listed, err := admin.ListTopics(lane.Patience(s.t))
	require.NoError(s.t, err)
	var internal []string
	for _, topic := range listed.Names() {
		if name, ok := strings.CutPrefix(topic, "sales-"); ok {
			internal = append(internal, name)
			want := maps.Clone(salesTopics[name])
			require.NotNil(s.t, want, topic)
			want["message.timestamp.type"] = "CreateTime"
			assert.Equal(s.t, want, settingsOf(s.t, admin, topic), topic)
			require.Len(s.t, listed[topic].Partitions, 3, topic)
			for _, p := range listed[topic].Partitions {
				assert.Len(s.t, p.Replicas, 3, topic)
			}
		}
	}
	assert.ElementsMatch(s.t, slices.Collect(maps.Keys(salesTopics)), internal)
	starts, err := admin.ListStartOffsets(lane.Patience(s.t), "sales-by-product-repartition")
	require.NoError(s.t, err)
	starts.Each(func(o kadm.ListedOffset) {
		assert.NoError(s.t, o.Err)
		assert.Positive(s.t, o.Offset, "what was read of partition %d of the repartition topic is deleted", o.Partition)
	})
}

// requireReset lets the application's operator begin anew: the static member that was stopped is still in the group.
func (s *shop) requireReset(classpath string) {
	s.t.Helper()
	said := runs(s.t, classpath, "org.apache.kafka.tools.StreamsResetter", "--application-id", "sales", "--bootstrap-server", s.cluster.Bootstrap(), "--input-topics", "orders,payments", "--force")
	require.Contains(s.t, said, "Done.")
	admin := kadm.NewClient(s.client)
	await(s.t, func() string {
		listed, err := admin.ListTopics(lane.Patience(s.t))
		require.NoError(s.t, err)
		return strings.Join(slices.DeleteFunc(listed.Names(), func(topic string) bool { return !strings.HasPrefix(topic, "sales-") }), ", ")
	})
	offsets, err := admin.FetchOffsets(lane.Patience(s.t), "sales")
	require.NoError(s.t, err)
	for _, topic := range []string{"orders", "payments"} {
		for p := range int32(3) {
			offset, ok := offsets.Lookup(topic, p)
			require.True(s.t, ok, "%s %d", topic, p)
			require.Zero(s.t, offset.At, "%s %d", topic, p)
		}
	}
}
