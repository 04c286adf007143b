package simulation

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

var zooOnly = flag.String("zoo-only", "", "hazards of the zoo to look at, as H20,H27; empty for all")

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
	{"H22", "unclean elections where they are not allowed"},
	{"H23", "controllers write without the fence"},
	{"H24", "a controller is made first and its epoch then"},
	{"H25", "orders of earlier controllers"},
	{"H26", "orders for earlier registrations"},
	{"H27", "deletions of earlier leader epochs"},
	{"H27", "orders are carried out when they are sent"},
	{"H28", "a registration of any session is the own"},
	{"H32", "watches are left after the read"},
	{"H33", "the state of before is taken for the outcome"},
	{"H34", "control requests are sent once"},
	{"H36", "topic ids are not compared"},
	{"H42", "consumers read to the log end"},
	{"H43", "failed syncs are not noticed"},
	{"H44", "every end is a clean one"},
	{"H50", "repeats are not noticed"},
	{"H51", "late writes of a transaction are not noticed"},
	{"H51", "coordinators do not wait for the replicas"},
	{"H51", "markers are sent once"},
	{"H51", "epochs of transactional producers are not compared"},
	{"H51", "aborted transactions are not listed"},
	{"H51", "readers of what is committed read to the high watermark"},
	{"H51", "open offsets are taken for stable"},
	{"H52", "producer ids are given twice"},
	{"H53", "questions are answered before all is loaded"},
	{"H54", "coordinators keep what they knew"},
	{"H56", "generations of commits are not compared"},
	{"H56", "offsets of a transaction without their generation"},
	{"H56", "instance ids are not compared"},
}

// rare are the faults that one seed in hundreds meets, with a seed from which the search finds them soon.
var rare = map[string]uint64{
	"fetches are not fenced":                       300,
	"late writes of a transaction are not noticed": 950,
}

// A simulation that finds nothing proves nothing: each planted fault must be found, and without one the same seeds find
// nothing (TestSeeds).
func TestZoo(t *testing.T) {
	needed := make([]string, len(zoo)) // the seeds that each took, as a table
	each(len(zoo), func(i int) {
		if *zooOnly == "" || strings.Contains(*zooOnly, zoo[i].hazard) {
			needed[i] = hunt(t, zoo[i].hazard, zoo[i].plant)
			t.Log(needed[i])
		}
	})
	t.Logf("planted faults and the seeds that were needed:\n%s", strings.Join(needed, "\n"))
}

// hunt gives the line of the table for one fault.
func hunt(t *testing.T, hazard, plant string) string {
	first := max(rare[plant], 1)
	for seed := first; seed < first+uint64(*zooSeeds); seed++ {
		if _, err := run(seed, nil, plant, nil); err != nil {
			return fmt.Sprintf("%s  %-58s %4d  %.110v", hazard, plant, seed, err)
		}
	}
	assert.Fail(t, "not found", "%s: %s, with %d seeds from %d", hazard, plant, *zooSeeds, first)
	return fmt.Sprintf("%s  %-58s none of %d", hazard, plant, *zooSeeds)
}
