package chaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/integration/history"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// What a run must at least have met, unless $BARNABAS_CHAOS_FAULTS and $BARNABAS_CHAOS_RECORDS say otherwise: enough to see that the harness works. Continuous integration asks for more.
const (
	defaultFaults  = 12
	defaultRecords = 50_000
	defaultRate    = 1500 // records of each producer a second; a small disk has to hold all that is written until a slow machine has met its faults
)

const (
	loaded     = "load"
	sessionMs  = 1500
	replicas   = 3
	perRound   = 500 // records acknowledged between two rounds of faults
	producers  = 4
	tmpfsBytes = 384 << 20
)

func TestFaultsOnThreeBrokers(t *testing.T) { runFaults(t, 3, 6) }

func TestFaultsOnFiveBrokers(t *testing.T) { runFaults(t, 5, 10) }

// runFaults harms a cluster in rounds of one fault or two at a time, chosen by what the victim is just then, while idempotent producers wait for all in-sync replicas. After each round the
// cluster must be whole again by itself. In the end every acknowledged record is there, at its offset, once, in its producer's order, on every replica alike, and the storage's own judge
// finds nothing. $BARNABAS_CHAOS_SEED chooses other faults, and whether brokers and clients must prove who they are; $BARNABAS_CHAOS_TIME makes it go on for at least that long, and $BARNABAS_CHAOS_RATE paces the load, since everything
// that is written has to be kept until the end.
func runFaults(t *testing.T, brokers, partitions int) {
	minFaults, minRecords := number("BARNABAS_CHAOS_FAULTS", defaultFaults), number("BARNABAS_CHAOS_RECORDS", defaultRecords)
	seed := uint64(number("BARNABAS_CHAOS_SEED", int(time.Now().UnixNano()&0xffff)))
	t.Logf("BARNABAS_CHAOS_SEED=%d", seed)
	least, _ := time.ParseDuration(os.Getenv("BARNABAS_CHAOS_TIME"))
	began := time.Now()
	var g *guard
	if seed%2 == 1 {
		g = newGuard(t, 1_000_000)
	}
	w := makeWorld(t, brokers, partitions, seed, g, nil)
	load := history.Start(t, history.Config{Seeds: w.entries(), Readers: w.Seeds(), Options: w.credentials(), Topic: loaded, Producers: producers, PerSecond: number("BARNABAS_CHAOS_RATE", defaultRate), MaxValue: 120})
	watched := w.watchMetadata(t)
	met := map[string]int{}
	faults := 0
	for faults < minFaults || time.Since(began) < least {
		load.Progress(t, perRound, "before the next faults")
		round := w.choose()
		t.Logf("%s: %s", time.Now().Format("15:04:05.000"), describe(round))
		for _, f := range round {
			f.inject(t)
			w.pause(0, 700*time.Millisecond)
			met[f.kind]++
			faults++
		}
		w.pause(0, 2*sessionMs*time.Millisecond)
		w.rng.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		for _, f := range round {
			f.heal(t)
		}
		w.converge(t, round)
	}
	if more := minRecords - load.Acked(); more > 0 {
		load.Progress(t, more, "to reach the least that a run must have")
	}
	assert.Empty(t, load.Finish(t, history.Promise{Idempotent: true}))
	assert.Empty(t, load.Refused())
	assert.Empty(t, watched())
	w.compareReplicas(t)
	t.Logf("%d faults (%s) in %s, %d acknowledged records", faults, told(met), time.Since(began).Round(time.Second), load.Acked())
	require.GreaterOrEqual(t, faults, minFaults)
	require.GreaterOrEqual(t, load.Acked(), minRecords)
}

func number(env string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(env)); err == nil {
		return n
	}
	return otherwise
}

func told(counts map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// world is a cluster with what it takes to harm it.
type world struct {
	*cluster.Cluster
	t          testing.TB
	zk         zktest.Server
	rng        *rand.Rand
	partitions int
	users      int             // broker n runs as the n-th user after this one
	firewall   *firewall       // nil where there is none
	small      *cluster.Broker // has its log directory on a small disk; nil where nothing can be mounted
	guard      *guard          // nil: everybody comes in
	also       map[string]int  // topics beside the loaded one that must come to rest after faults, with the numbers of their partitions
}

func newWorld(t testing.TB, brokers, partitions int, seed uint64) *world {
	return newWorldWith(t, brokers, partitions, seed, nil)
}

// newWorldWith is newWorld with more settings for all brokers.
func newWorldWith(t testing.TB, brokers, partitions int, seed uint64, settings map[string]string) *world {
	return makeWorld(t, brokers, partitions, seed, nil, settings)
}

// makeWorld is newWorldWith behind a guard, if one is given.
func makeWorld(t testing.TB, brokers, partitions int, seed uint64, g *guard, settings map[string]string) *world {
	here := place(t)
	w := &world{t: t, zk: zktest.Real(t), guard: g, rng: rand.New(rand.NewPCG(seed, 1)), partitions: partitions, users: firstUser + here*brokersPerPlace, firewall: newFirewall(t, here)}
	disk := lane.SmallDisk(t, tmpfsBytes)
	own := func(id int) map[string]string {
		set := map[string]string{}
		if id == 1 && disk != "" {
			set["log.dirs"] = filepath.Join(disk, "logs")
		}
		if g != nil {
			maps.Copy(set, g.entrance(t, id))
		}
		return set
	}
	all := map[string]string{
		"min.insync.replicas": "2", "log.segment.bytes": "4194304", "zookeeper.session.timeout.ms": strconv.Itoa(sessionMs), "zookeeper.connection.timeout.ms": "30000",
		"replica.lag.time.max.ms": "2000", "controlled.shutdown.retry.backoff.ms": "100", "controller.socket.timeout.ms": "5000", "replica.socket.timeout.ms": "5000", "request.timeout.ms": "5000",
	}
	maps.Copy(all, settings)
	if g != nil {
		maps.Copy(all, g.settings(t, w.zk.Addr()))
	}
	w.Cluster = cluster.Prepare(t, w.zk.Addr(), brokers, all, own)
	if disk != "" {
		w.small = w.Brokers[0]
	}
	for _, b := range w.Brokers {
		if w.firewall != nil {
			b.RunAs(w.user(b))
		}
		b.Start(t)
	}
	for _, b := range w.Brokers {
		b.WaitReady(t)
	}
	if g != nil {
		g.letIn(t, w.Seeds())
	}
	createTopic(t, w.Seeds(), loaded, partitions, replicas)
	w.WaitWhole(t, loaded, partitions, replicas)
	return w
}

func (w *world) user(b *cluster.Broker) int { return w.users + b.ID }

func (w *world) pause(least, most time.Duration) {
	time.Sleep(least + time.Duration(w.rng.Int64N(int64(most-least))))
}

// converge waits until the cluster is whole.
func (w *world) converge(t testing.TB, round []fault) {
	t.Helper()
	for _, b := range w.Brokers {
		require.True(t, b.Running(), "broker %d ended by itself after %s:\n%s", b.ID, describe(round), b.LogTail(4000))
		b.WaitReady(t)
	}
	w.WaitWhole(t, loaded, w.partitions, replicas)
	for _, topic := range slices.Sorted(maps.Keys(w.also)) {
		w.WaitWhole(t, topic, w.also[topic], replicas)
	}
}

// compareReplicas waits until the cluster is whole with nobody writing any more, stops the brokers and compares their logs. What was seen before may have been what ZooKeeper knew before
// it was killed: a disk that fails while it is away is heard of when it is back.
func (w *world) compareReplicas(t testing.TB) {
	t.Helper()
	w.WaitWhole(t, loaded, w.partitions, replicas)
	for _, b := range w.Brokers {
		b.Stop(t)
	}
	for p := range w.partitions {
		name := loaded + "-" + strconv.Itoa(p)
		var dirs []string
		for _, b := range w.Brokers {
			if _, err := os.Stat(filepath.Join(b.Dir, name)); err == nil {
				dirs = append(dirs, b.Dir)
				assert.Empty(t, history.Verify(b.Dir, name))
			}
		}
		assert.Len(t, dirs, replicas, name)
		assert.Empty(t, history.CompareReplicas(dirs, name))
	}
}
