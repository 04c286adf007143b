package simulation

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

var zooSeeds = flag.Int("zoo", 200, "how many seeds may be needed to find a planted fault")

// zoo is the planted faults, with the hazard whose guard is taken away.
var zoo = []struct{ hazard, plant string }{
	{"H01", "truncation to the high watermark"},
	{"H02", "epoch lookups without the found epoch"},
	{"H03", "followers do not truncate"},
	{"H04", "fetches are not fenced"},
	{"H05", "the high watermark beside a diverging epoch"},
	{"H12", "ISR changes are done when they are asked for"},
	{"H12", "acknowledged before it is committed"},
	{"H13", "the latest offset at any time"},
	{"H14", "min.insync.replicas is not looked at"},
	{"H16", "a lost answer is an answer"},
	{"H19", "members of the ISR that move away are left out"},
	{"H20", "no flush of a thin ISR"},
	{"H21", "no flush before commit"},
	{"H23", "controllers write without the fence"},
	{"H25", "orders of earlier controllers"},
	{"H26", "orders for earlier registrations"},
	{"H27", "deletions of earlier leader epochs"},
	{"H28", "a registration of any session is the own"},
	{"H32", "watches are left after the read"},
	{"H33", "the state of before is taken for the outcome"},
	{"H34", "control requests are sent once"},
	{"H36", "topic ids are not compared"},
	{"H42", "consumers read to the log end"},
	{"H43", "failed syncs are not noticed"},
	{"H44", "every end is a clean one"},
	{"H50", "repeats are not noticed"},
}

// A simulation that finds nothing proves nothing: each planted fault must be found, and without one the same seeds find
// nothing (TestSeeds).
func TestZoo(t *testing.T) {
	needed := make([]string, len(zoo))
	each(len(zoo), func(i int) { needed[i] = hunt(t, zoo[i].hazard, zoo[i].plant) })
	t.Logf("planted faults and the seeds that were needed:\n%s", strings.Join(needed, "\n"))
}

func hunt(t *testing.T, hazard, plant string) string {
	for seed := uint64(1); seed <= uint64(*zooSeeds); seed++ {
		if _, err := run(seed, nil, plant, nil); err != nil {
			return fmt.Sprintf("%s  %-58s %4d  %.110v", hazard, plant, seed, err)
		}
	}
	assert.Fail(t, "not found", "%s: %s, with %d seeds", hazard, plant, *zooSeeds)
	return fmt.Sprintf("%s  %-58s none of %d", hazard, plant, *zooSeeds)
}
