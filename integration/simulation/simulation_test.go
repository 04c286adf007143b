package simulation

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var (
	seeds = flag.Int("seeds", 300, "how many seeds to run")
	seed  = flag.Uint64("seed", 0, "the one seed to run, telling everything; 0 for many")
	first = flag.Uint64("first", 1, "the first of many seeds")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSeeds(t *testing.T) {
	if *seed != 0 {
		var trace strings.Builder
		_, err := Run(*seed, &trace)
		fmt.Println(trace.String())
		require.NoError(t, err)
		return
	}
	var sum Tally
	failed := 0
	for i := range uint64(*seeds) {
		s, err := Run(*first+i, nil)
		if !assert.NoError(t, err, "replay: go test ./integration/simulation -run TestSeeds -seed %d", *first+i) {
			if failed++; failed == 5 {
				t.Fatal("enough")
			}
		}
		sum.add(s.Done)
	}
	t.Logf("%d seeds: %+v", *seeds, sum)
	if *seeds >= 100 {
		assert.Greater(t, sum.Elections, 2**seeds, "the storm must make elections")
		assert.Greater(t, sum.Crashes+sum.Pauses+sum.Cuts+sum.Expiries, 3**seeds, "there must be faults")
		assert.Greater(t, sum.TopicsDeleted+sum.Reassignments, 2**seeds, "there must be work")
	}
}

func TestASeedReplaysExactly(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
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
	t.Damaged += o.Damaged
	t.PowerCuts += o.PowerCuts
	t.DiskErrors += o.DiskErrors
	t.ClockJumps += o.ClockJumps
	t.Leads += o.Leads
	t.Committed += o.Committed
	t.Acked += o.Acked
	t.Read += o.Read
}
