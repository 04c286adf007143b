package simulation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// holds runs the scenario of a hazard on some seeds, which must hold, and did must tell that it did what it is for.
func holds(t *testing.T, seeds int, hazard string, did func(Tally) int) {
	t.Helper()
	var sum Tally
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		s, err := runScenario(seed, nil, "", nil, scenarios[hazard])
		require.NoError(t, err)
		sum.add(s.Done)
	}
	assert.GreaterOrEqual(t, did(sum), seeds, "the scenario did not happen: %+v", sum)
}

// fails runs a scenario without its guard, which some seed must notice.
func fails(t *testing.T, seeds int, only scenario, plant string) {
	t.Helper()
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		if _, err := runScenario(seed, nil, plant, nil, only); err != nil {
			t.Logf("without the guard, seed %d: %v", seed, err)
			return
		}
	}
	assert.Fail(t, "not noticed", "%s", plant)
}

// All replicas of the ISR die, and one that was not in it is elected, as the topic's owner allows: it is known to be one
// that has to recover, nobody else is in the ISR, and the others follow it, also those that have more. Where it is not
// allowed, none is elected.
func TestH22_AnUncleanLeaderIsAloneAndKnownToRecover(t *testing.T) {
	holds(t, 20, "H22", func(d Tally) int { return d.Unclean })
	only := scenarios["H22"]
	only.prepare = nil
	fails(t, 20, only, "unclean elections where they are not allowed")
}

// Controllers die and are deposed while they are elected, and the answer to the election is lost.
func TestH24_AControllerAndItsEpochAreMadeAtOnce(t *testing.T) {
	holds(t, 8, "H24", func(d Tally) int { return d.Elections })
	fails(t, 8, scenarios["H24"], "a controller is made first and its epoch then")
}

// A replica is moved away and back again before it has deleted what it had, and may lead without having been in sync: it is
// not elected only to delete itself.
func TestH27_NobodyIsElectedWhoIsYetToDeleteWhatItHas(t *testing.T) {
	holds(t, 10, "H27", func(d Tally) int { return d.Unclean })
	fails(t, 20, scenarios["H27"], "orders are carried out when they are sent")
}

// A session is lost, and a new one is there before the server has reaped the old one's nodes; or the process is killed
// and started within the session's time, and ends the session that is left, or cannot.
func TestH28_TheBrokersOwnOldRegistrationDoesNotKeepItOut(t *testing.T) {
	holds(t, 8, "H28", func(d Tally) int { return min(d.Ended, d.Crashes+d.Expiries) })
	fails(t, 8, scenarios["H28"], "a registration of any session is the own")
}

// A broker that only ZooKeeper cannot be reached from goes on serving; nothing that it acknowledges is lost when another
// leads, and no offset is acknowledged by both.
func TestH30_ABrokerWithoutASessionAcknowledgesNothingThatIsLost(t *testing.T) {
	holds(t, 8, "H30", func(d Tally) int { return d.Cuts })
	fails(t, 8, scenarios["H30"], "acknowledged before it is committed")
}

// Watches fire once: what changes between a reading and the next watch must not be missed.
func TestH32_NoChangeIsMissedBetweenTheReadingAndTheWatch(t *testing.T) {
	holds(t, 8, "H32", func(d Tally) int { return d.TopicsDeleted })
	fails(t, 30, scenarios["H32"], "watches are left after the read")
}

// Brokers leave in good order while the controller goes from one to the next, and several at once.
func TestH35_ControlledShutdownsDuringFailoversLoseNothing(t *testing.T) {
	holds(t, 8, "H35", func(d Tally) int { return d.Elections })
	fails(t, 60, scenarios["H35"], "orders of earlier controllers")
}

// Topics are deleted while their brokers are away and while their partitions move, and are made again.
func TestH37_DeletionWaitsAndNeverTakesTheNewTopic(t *testing.T) {
	holds(t, 8, "H37", func(d Tally) int { return d.TopicsDeleted })
	fails(t, 300, scenarios["H37"], "topic ids are not compared")
}

// The source, the target or the controller dies in every phase of a reassignment.
func TestH38_AReassignmentEndsAsAskedOrIsTakenBack(t *testing.T) {
	holds(t, 10, "H38", func(d Tally) int { return d.Reassignments })
	fails(t, 40, scenarios["H38"], "members of the ISR that move away are left out")
}

// Disks fill up and are given room again, and the brokers go on without a restart.
func TestH46_ADiskThatWasFullIsUsedAgain(t *testing.T) {
	holds(t, 12, "H46", func(d Tally) int { return d.Reopened })
}

// Batches are repeated over crashes and changes of the leader, and are there once.
func TestH50_RepeatedBatchesAreThereOnce(t *testing.T) {
	holds(t, 8, "H50", func(d Tally) int { return d.Leads })
	fails(t, 20, scenarios["H50"], "repeats are not noticed")
}

// Coordinators of transactions die, sleep and are led elsewhere in every step of one, and writes come when it is over.
func TestH51_TransactionsEndAndAreNeverSeenInPart(t *testing.T) {
	holds(t, 8, "H51", func(d Tally) int { return d.CommittedTxns })
	for _, plant := range []string{"markers are sent once", "aborted transactions are not listed", "readers of what is committed read to the high watermark",
		"open offsets are taken for stable", "coordinators do not wait for the replicas"} {
		fails(t, 40, scenarios["H51"], plant)
	}
}

func TestH52_NoProducerIDIsGivenTwice(t *testing.T) {
	holds(t, 8, "H52", func(d Tally) int { return d.Elections })
	fails(t, 8, scenarios["H52"], "producer ids are given twice")
}

// Offsets are committed, their coordinator moves, and they are asked for while it loads.
func TestH53_NoOffsetIsAnsweredBeforeAllIsLoaded(t *testing.T) {
	holds(t, 8, "H53", func(d Tally) int { return d.Loads })
	fails(t, 8, scenarios["H53"], "questions are answered before all is loaded")
}

// A coordinator sleeps, another one takes over, and the first one goes on.
func TestH54_ACoordinatorThatWasDeposedKnowsNothing(t *testing.T) {
	holds(t, 8, "H54", func(d Tally) int { return d.Loads })
	fails(t, 20, scenarios["H54"], "coordinators keep what they knew")
}

// Members sleep past their sessions and commit with the generation that they had; static ones find another of their name.
func TestH56_APartitionHasOneOwnerInAGeneration(t *testing.T) {
	holds(t, 8, "H56", func(d Tally) int { return d.Commits })
	for _, plant := range []string{"generations of commits are not compared", "offsets of a transaction without their generation", "instance ids are not compared"} {
		fails(t, 100, scenarios["H56"], plant)
	}
}
