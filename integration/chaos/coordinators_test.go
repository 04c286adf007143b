package chaos

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/history"
	"barnabas/integration/lane"
)

const (
	copierCount = 3
	aimTimeout  = 15 * time.Second

	coordinatedPartitions = 6
	internalPartitions    = 5

	// A transaction may be open for its timeout, be found late by one search, and then its coordinator may just be moving.
	stuckAfter = transactionTimeout + 15*time.Second
)

// coordination is a world with groups and transactions in it.
type coordination struct {
	*world
	listener  *listener
	admin     *kadm.Client
	consumers []*consumers
	copiers   *copiers
	load      *history.Load
	provoking sync.WaitGroup

	progress []history.Progress // of the watcher until it ends
}

func newCoordination(t testing.TB, seed uint64) *coordination {
	s := &coordination{listener: listen(copying), consumers: allConsumers()}
	s.world = newWorldWith(t, 3, coordinatedPartitions, seed, map[string]string{
		"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5", "transaction.state.log.num.partitions": "5",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
	})
	createTopic(t, s.Seeds(), copied, coordinatedPartitions, replicas)
	s.WaitWhole(t, copied, coordinatedPartitions, replicas)
	s.load = history.Start(t, history.Config{Seeds: s.Seeds(), Topic: loaded, Producers: 2, PerSecond: 100, MaxValue: 40})
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Seeds()...), kgo.Dialer(s.listener.tap.DialContext), kgo.MetadataMinAge(50*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	s.admin = kadm.NewClient(client)
	for _, c := range s.consumers {
		c.startAll(t, s.world, s.listener)
		t.Cleanup(c.stopAll)
	}
	s.copiers = startCopiers(t, s.world, s.listener, copierCount)
	require.Eventually(t, func() bool { return s.copiers.count()[history.Done] > 0 }, time.Minute, 50*time.Millisecond, "transactions are committed")
	s.also = map[string]int{copied: coordinatedPartitions, "__consumer_offsets": internalPartitions, "__transaction_state": internalPartitions}
	s.converge(t, nil)
	return s
}

// Groups of four kinds consume and commit, and copiers copy in transactions, while their coordinators come to harm at each step of what they do. What clients asked and were answered is
// judged: no partition is owned twice in a generation, no acknowledged commit is lost or goes back, no transaction is torn or stuck, each record is copied once and in order, and no zombie
// gets through. $BARNABAS_CHAOS_KILLS asks for more harm than once at each step, $BARNABAS_CHAOS_SEED chooses other.
func TestCoordinatorsAreHarmedAtEachStep(t *testing.T) {
	seed := uint64(number("BARNABAS_CHAOS_SEED", int(time.Now().UnixNano()&0xffff)))
	t.Logf("BARNABAS_CHAOS_SEED=%d", seed)
	s := newCoordination(t, seed)
	steps := slices.DeleteFunc(slices.Clone(aims), func(a aim) bool { return a.needsCut && s.firewall == nil })
	wanted := number("BARNABAS_CHAOS_KILLS", len(steps))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var watching sync.WaitGroup
	watching.Go(func() { s.watchProgress(ctx, copied, "__consumer_offsets") })
	for _, b := range s.Brokers {
		watching.Go(func() { s.askByItself(ctx, t, b) })
	}

	met, kinds := map[string]int{}, map[string]int{}
	for n, missed := 0, 0; n < wanted; {
		if n%len(steps) == 0 {
			s.rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		}
		a := steps[n%len(steps)]
		f, hit := s.hit(t, a)
		if !hit {
			s.provoking.Wait()
			missed++
			require.Less(t, missed, 10+wanted/4, "%s does not come", a.name)
			continue
		}
		t.Logf("%s: %s at %s", time.Now().Format("15:04:05.000"), a.name, describe([]fault{f}))
		n++
		met[a.name]++
		kinds[f.kind]++
		s.pause(0, 2*sessionMs*time.Millisecond)
		f.heal(t)
		s.converge(t, []fault{f})
		s.provoking.Wait()
		s.fetchOffsets()
	}
	s.finish(t)
	cancel()
	watching.Wait()
	assert.Empty(t, history.JudgeProgress(s.progress, stuckAfter))
	fates := s.copiers.count()
	assignments, commits, fetches, epochs, acts := s.listener.heard()
	t.Logf("%d coordinators harmed (%s) at steps (%s)", wanted, told(kinds), told(met))
	t.Logf("%d records; transactions: %d committed, %d aborted, %d unknown to their producer; %d zombies refused; heard: %d assignments, %d commits, %d fetched offsets, %d epochs, %d acts of producers; %d samples of progress",
		s.load.Acked(), fates[history.Done], fates[history.Refused], fates[history.Unknown], s.copiers.zombies, assignments, commits, fetches, epochs, acts, len(s.progress))
	t.Logf("sessions of copiers ended by: %s", told(s.copiers.trouble))
	require.Greater(t, fates[history.Done], 2*wanted)
	require.Greater(t, commits, 10*wanted)
}

// askByItself asks a broker again and again for the offsets of all groups, for the listener to hear the answers: one that has been deposed must not tell what has changed since.
func (s *coordination) askByItself(ctx context.Context, t testing.TB, b *cluster.Broker) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.Dialer(s.listener.tap.DialContext))
	if !assert.NoError(t, err) {
		return
	}
	defer client.Close()
	for ctx.Err() == nil {
		for _, c := range s.consumers {
			limited, cancel := context.WithTimeout(ctx, 5*time.Second)
			_, _ = askForOffsets(limited, client, c.group, 0, 1, 2, 3, 4, 5)
			cancel()
		}
		select {
		case <-ctx.Done():
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// fetchOffsets asks for the offsets of all groups, for the listener to hear the answers.
func (s *coordination) fetchOffsets() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, c := range s.consumers {
		_, _ = s.admin.FetchOffsets(ctx, c.group)
	}
}

// finish waits until everything is consumed and copied, ends all clients, and judges.
func (s *coordination) finish(t testing.TB) {
	t.Helper()
	assert.Empty(t, s.load.Finish(t, history.Promise{Idempotent: true}))
	assert.Empty(t, s.load.Refused())
	in := history.ReadAll(t, s.Seeds(), loaded)
	for _, c := range s.consumers {
		if !assert.Eventually(t, func() bool { return c.missed(in) == 0 }, time.Minute, 100*time.Millisecond, "group %s consumes every record", c.group) {
			t.Logf("group %s has not consumed %d records", c.group, c.missed(in))
		}
		assert.Eventually(t, func() bool {
			described, err := s.admin.DescribeGroups(lane.Patience(t), c.group)
			return err == nil && described[c.group].State == "Stable" && len(described[c.group].Members) == c.members
		}, time.Minute, 200*time.Millisecond, "group %s is whole", c.group)
	}
	assert.Eventually(t, func() bool { return s.allCopied(in) }, time.Minute, 200*time.Millisecond, "everything is copied")
	s.copiers.stop()
	for _, c := range s.consumers {
		c.stopAll()
	}
	s.fetchOffsets()
	assert.Eventually(t, s.allStable, stuckAfter, 200*time.Millisecond, "no transaction stays open")
	assert.Empty(t, s.copiers.judge(t, in))
	assert.Empty(t, s.listener.judge())
}

// allCopied tells whether the copiers have stored that they are at the end of the loaded topic.
func (s *coordination) allCopied(in map[int32][]history.Read) bool {
	stored, err := s.admin.FetchOffsets(lane.Patience(s.t), copying)
	if err != nil {
		return false
	}
	for p, log := range in {
		if at, found := stored.Lookup(loaded, p); len(log) > 0 && (!found || at.At < log[len(log)-1].Offset+1) {
			return false
		}
	}
	return true
}

// allStable tells whether no transaction is open in the copies and among the stored offsets.
func (s *coordination) allStable() bool {
	stable, err := s.admin.ListCommittedOffsets(lane.Patience(s.t), copied, "__consumer_offsets")
	ends, endErr := s.admin.ListEndOffsets(lane.Patience(s.t), copied, "__consumer_offsets")
	if err != nil || endErr != nil || stable.Error() != nil || ends.Error() != nil {
		return false
	}
	open := 0
	stable.Each(func(o kadm.ListedOffset) {
		if end, _ := ends.Lookup(o.Topic, o.Partition); end.Offset != o.Offset {
			open++
		}
	})
	return open == 0
}

func progressOf(stable, end kadm.ListedOffset, at time.Duration) history.Progress {
	return history.Progress{Place: history.Place{Topic: stable.Topic, Partition: stable.Partition}, Stable: stable.Offset, End: end.Offset, At: at}
}
