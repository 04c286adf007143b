package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
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
	defaultClusters = 2
	copierCount     = 3
	aimTimeout      = 30 * time.Second

	coordinatedPartitions = 6
	internalPartitions    = 5

	// A transaction may be open for its timeout, be found late by one search, and then its coordinator may just be moving, to a broker that starts on a busy machine.
	stuckAfter = transactionTimeout + time.Minute
)

// coordination is a world with groups and transactions in it.
type coordination struct {
	*world
	listener  *listener
	admin     *kadm.Client
	consumers []*consumers
	copiers   *copiers // franz-go's
	others    *copiers // another library's
	load      *history.Load
	provoking sync.WaitGroup

	progress []history.Progress // of the watcher until it ends
}

// newCoordination makes one, behind a guard if one is given; the copiers are franz-go's and another library's.
func newCoordination(t testing.TB, seed uint64, g *guard, other library) *coordination {
	s := &coordination{listener: listen(franzCopiers.topic, other.topic), consumers: allConsumers()}
	s.world = makeWorld(t, 3, coordinatedPartitions, seed, g, map[string]string{
		"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5", "transaction.state.log.num.partitions": "5",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
	})
	s.load = history.Start(t, history.Config{Seeds: s.entries(), Readers: s.Seeds(), Options: s.credentials(), Topic: loaded, Producers: 2, PerSecond: 100, MaxValue: 40})
	if g != nil {
		s.listener.tap.TLS = g.tls
	}
	client, err := kgo.NewClient(s.throughTap(s.listener, kgo.MetadataMinAge(50*time.Millisecond))...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	s.admin = kadm.NewClient(client)
	for _, c := range s.consumers {
		c.startAll(t, s.world, s.listener)
		t.Cleanup(c.stopAll)
	}
	s.copiers = startCopiers(t, s.world, s.listener, franzCopiers)
	s.others = startCopiers(t, s.world, s.listener, other)
	s.also = map[string]int{"__consumer_offsets": internalPartitions, "__transaction_state": internalPartitions}
	for _, c := range s.allCopiers() {
		require.Eventually(t, func() bool { return c.count()[history.Done] > 0 }, 2*soon, 50*time.Millisecond, "transactions of %s are committed; sessions ended by: %v", c.name, told(c.trouble))
		s.also[c.name] = coordinatedPartitions
	}
	s.converge(t, nil)
	return s
}

func (s *coordination) allCopiers() []*copiers { return []*copiers{s.copiers, s.others} }

// inTransactions are the topics that transactions write to.
func (s *coordination) inTransactions() []string {
	topics := []string{"__consumer_offsets"}
	for _, c := range s.allCopiers() {
		topics = append(topics, c.name)
	}
	return topics
}

// deck deals the steps out to clusters that run side by side: each step once, in a drawn order, then all of them again.
type deck struct {
	mu    sync.Mutex
	rng   *rand.Rand
	left  int
	dealt int
	steps []aim
}

// take gives the next step; false when all are dealt.
func (d *deck) take(cutting bool) (aim, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.left > 0 {
		n := d.dealt % len(d.steps)
		if n == 0 {
			d.rng.Shuffle(len(d.steps), func(i, j int) { d.steps[i], d.steps[j] = d.steps[j], d.steps[i] })
		}
		d.dealt++
		if a := d.steps[n]; cutting || !a.needsCut {
			d.left--
			return a, true
		}
	}
	return aim{}, false
}

// Groups of four kinds consume and commit, and copiers of two libraries copy in transactions, while their coordinators come to harm at each step of what they do. What clients asked and were
// answered is judged: no partition is owned twice in a generation, no acknowledged commit is lost or goes back, no transaction is torn or stuck, each record is copied once and in order, and
// no zombie gets through. $BARNABAS_CHAOS_KILLS asks for more harm than once at each step, $BARNABAS_CHAOS_CLUSTERS for more clusters among which it is divided: most of the time is spent
// waiting until a cluster is whole again. In the first, Java copies instead of sarama; the second is behind a guard. $BARNABAS_CHAOS_SEED chooses other harm.
func TestCoordinatorsAreHarmedAtEachStep(t *testing.T) {
	seed := uint64(number("BARNABAS_CHAOS_SEED", int(time.Now().UnixNano()&0xffff)))
	t.Logf("BARNABAS_CHAOS_SEED=%d", seed)
	d := &deck{rng: rand.New(rand.NewPCG(seed, 2)), left: number("BARNABAS_CHAOS_KILLS", len(aims)), steps: slices.Clone(aims)}
	var clusters sync.WaitGroup
	var began atomic.Bool // what a cluster needs is on this machine
	for i := range min(mostPlaces, number("BARNABAS_CHAOS_CLUSTERS", defaultClusters)) {
		clusters.Go(func() {
			t.Run(fmt.Sprint("cluster ", i), func(t *testing.T) {
				var s *coordination
				switch i {
				case 0:
					s = newCoordination(t, seed, nil, javaCopiers(t))
				case 1:
					s = newCoordination(t, seed+1, newGuard(t, 50_000), saramaCopiers)
				default:
					s = newCoordination(t, seed+uint64(i), nil, saramaCopiers)
				}
				began.Store(true)
				s.harm(t, d)
			})
		})
	}
	clusters.Wait()
	if !began.Load() {
		t.Skip("not run: no cluster could be made, for the reason that each gives")
	}
	assert.Zero(t, d.left, "steps that nothing was harmed at")
}

// harm goes on until the deck is empty, and judges.
func (s *coordination) harm(t *testing.T, d *deck) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var watching sync.WaitGroup
	watching.Go(func() { s.watchProgress(ctx, s.inTransactions()...) })
	for _, b := range s.Brokers {
		watching.Go(func() { s.askByItself(ctx, t, b) })
	}

	met, kinds := map[string]int{}, map[string]int{}
	harmed, missed := 0, 0
	for a, more := d.take(s.firewall != nil); more; a, more = d.take(s.firewall != nil) {
		f, hit := s.hit(t, a)
		for ; !hit; f, hit = s.hit(t, a) {
			s.provoking.Wait()
			s.converge(t, nil) // a coordinator may just have moved
			missed++
			require.Less(t, missed, 10+harmed/4, "%s does not come", a.name)
		}
		t.Logf("%s: %s at %s", time.Now().Format("15:04:05.000"), a.name, describe([]fault{f}))
		harmed++
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
	assignments, commits, fetches, epochs, acts := s.listener.heard()
	t.Logf("%d coordinators harmed (%s) at steps (%s)", harmed, told(kinds), told(met))
	t.Logf("%d records; heard: %d assignments, %d commits, %d fetched offsets, %d epochs, %d acts of producers; %d samples of progress",
		s.load.Acked(), assignments, commits, fetches, epochs, acts, len(s.progress))
	for _, c := range s.allCopiers() {
		fates := c.count()
		t.Logf("%s: %d transactions committed, %d aborted, %d unknown to their producer, %d zombies refused; sessions ended by: %s",
			c.name, fates[history.Done], fates[history.Refused], fates[history.Unknown], c.zombies, told(c.trouble))
		require.Greater(t, fates[history.Done], c.library.perHarm*harmed)
	}
	require.Greater(t, commits, 10*harmed)
}

// askByItself asks a broker again and again for the offsets of all groups, for the listener to hear the answers: one that has been deposed must not tell what has changed since.
func (s *coordination) askByItself(ctx context.Context, t testing.TB, b *cluster.Broker) {
	client, err := kgo.NewClient(s.throughTap(s.listener, kgo.SeedBrokers(s.entry(b)))...)
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
		if !assert.Eventually(t, func() bool { return c.missed(in) == 0 }, 2*soon, 100*time.Millisecond, "group %s consumes every record", c.group) {
			t.Logf("group %s has not consumed %d records", c.group, c.missed(in))
		}
		assert.Eventually(t, func() bool {
			described, err := s.admin.DescribeGroups(lane.Patience(t), c.group)
			return err == nil && described[c.group].State == "Stable" && len(described[c.group].Members) == c.members
		}, 2*soon, 200*time.Millisecond, "group %s is whole", c.group)
	}
	for _, c := range s.allCopiers() {
		assert.Eventually(t, func() bool { return s.allCopied(c.name, in) }, 2*soon, 200*time.Millisecond, "everything is copied by %s", c.name)
	}
	for _, c := range s.allCopiers() {
		c.stop()
	}
	for _, c := range s.consumers {
		c.stopAll()
	}
	s.fetchOffsets()
	assert.Eventually(t, s.allStable, stuckAfter, 200*time.Millisecond, "no transaction stays open")
	for _, c := range s.allCopiers() {
		assert.Empty(t, c.judge(t, in), c.name)
	}
	assert.Empty(t, s.listener.judge())
}

// allCopied tells whether the copiers of a group have stored that they are at the end of the loaded topic.
func (s *coordination) allCopied(group string, in map[int32][]history.Read) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	stored, err := s.admin.FetchOffsets(ctx, group)
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
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	stable, err := s.admin.ListCommittedOffsets(ctx, s.inTransactions()...)
	ends, endErr := s.admin.ListEndOffsets(ctx, s.inTransactions()...)
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
