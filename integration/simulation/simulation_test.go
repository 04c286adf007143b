package simulation

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var (
	seeds = flag.Int("seeds", 300, "how many seeds to run")
	seed  = flag.Uint64("seed", 0, "the one seed to run, telling everything; 0 for many")
	plant = flag.String("plant", "", "with -seed: the planted fault of the zoo")
	first = flag.Uint64("first", 1, "the first of many seeds")
	which = flag.String("scenario", "", "the scenario to run, as H27; empty for everything")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSeeds(t *testing.T) {
	only, known := scenarios[*which]
	require.True(t, known, "there is no scenario %q", *which)
	if *seed != 0 {
		var trace strings.Builder
		_, err := runScenario(*seed, &trace, *plant, nil, only)
		fmt.Println(trace.String())
		require.NoError(t, err)
		return
	}
	var sum Tally
	var mu sync.Mutex
	var failed []uint64
	each(*seeds, func(i int) {
		s, err := runScenario(*first+uint64(i), nil, "", nil, only)
		mu.Lock()
		defer mu.Unlock()
		if !assert.NoError(t, err, "replay: go test ./integration/simulation -run TestSeeds -seed %d -scenario %q", *first+uint64(i), *which) {
			failed = append(failed, *first+uint64(i))
		}
		sum.add(s.Done)
	})
	slices.Sort(failed)
	for i, seed := range failed {
		if i == 3 {
			break
		}
		small := shrink(kept{Scenario: *which, Seed: seed}, 60)
		path, err := keep(seedsDir, small)
		require.NoError(t, err)
		t.Logf("seed %d was made smaller by %d faults and works, and is kept as %s: %s", seed, len(small.Drop), path, small.Found)
	}
	t.Logf("%d seeds: %+v", *seeds, sum)
	if *seeds >= 100 && *which == "" {
		assert.Greater(t, sum.Elections, 2**seeds, "the storm must make elections")
		assert.Greater(t, sum.Crashes+sum.Pauses+sum.Cuts+sum.Expiries, 3**seeds, "there must be faults")
		assert.Greater(t, sum.TopicsDeleted+sum.Reassignments, 2**seeds, "there must be work")
	}
}

// each runs things side by side; every one of them is a single thread.
func each(n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				do(i)
			}
		})
	}
	wg.Wait()
}

// What was found once stays mended.
func TestKeptSeeds(t *testing.T) {
	files, err := filepath.Glob(seedsDir + "/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		k, err := readKept(f)
		require.NoError(t, err)
		_, err = k.run()
		if k.Plant == "" {
			assert.NoError(t, err, f)
		} else if assert.Error(t, err, f) {
			assert.Equal(t, kindOf(errors.New(k.Found)), kindOf(err), f)
		}
	}
}

// A fault that shows late, after many faults and works: most of them are left out, and what is kept fails in the same way,
// as often as it is replayed.
func TestAFailingSeedIsMadeSmallerAndKept(t *testing.T) {
	big := kept{Plant: "aborted transactions are not listed"}
	happened := 0
	for big.Seed = 1; happened < 20; big.Seed++ {
		if s, err := big.run(); err != nil {
			happened = len(s.happened)
		}
	}
	big.Seed--
	small := shrink(big, 60)
	s, err := small.run()
	require.EqualError(t, err, small.Found)
	assert.Less(t, len(s.happened), happened, "something is left out")
	path, err := keep(t.TempDir(), small)
	require.NoError(t, err)
	again, err := readKept(path)
	require.NoError(t, err)
	assert.Equal(t, small, again)
	_, err = again.run()
	assert.EqualError(t, err, small.Found)
	t.Logf("seed %d: of %d faults and works %d are left: %s", small.Seed, happened, len(s.happened), small.Found)
}

func TestASeedReplaysExactly(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		a, errA := Run(seed, nil)
		b, errB := Run(seed, nil)
		assert.Equal(t, fmt.Sprint(errA), fmt.Sprint(errB))
		assert.Equal(t, a.Done, b.Done, "seed %d", seed)
		assert.Equal(t, a.w.digest, b.w.digest, "seed %d", seed)
	}
}

func (t *Tally) add(o Tally) {
	t.Steps += o.Steps
	t.Transactions += o.Transactions
	t.Elections += o.Elections
	t.Crashes += o.Crashes
	t.Pauses += o.Pauses
	t.Cuts += o.Cuts
	t.Expiries += o.Expiries
	t.Lost += o.Lost
	t.Repeated += o.Repeated
	t.TopicsCreated += o.TopicsCreated
	t.TopicsDeleted += o.TopicsDeleted
	t.Reassignments += o.Reassignments
	t.ISRChanges += o.ISRChanges
	t.Joins += o.Joins
	t.Commits += o.Commits
	t.CommittedTxns += o.CommittedTxns
	t.AbortedTxns += o.AbortedTxns
	t.Markers += o.Markers
	t.Loads += o.Loads
	t.Isolated += o.Isolated
	t.Flips += o.Flips
	t.Unclean += o.Unclean
	t.Ended += o.Ended
	t.Damaged += o.Damaged
	t.PowerCuts += o.PowerCuts
	t.DiskErrors += o.DiskErrors
	t.Reopened += o.Reopened
	t.ClockJumps += o.ClockJumps
	t.Leads += o.Leads
	t.Committed += o.Committed
	t.Acked += o.Acked
	t.Read += o.Read
}
