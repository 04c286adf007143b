package simulation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// holds runs a scenario on some seeds, which must hold, and did must tell that it did what it is for.
func holds(t *testing.T, seeds int, only scenario, did func(Tally) int) {
	t.Helper()
	var sum Tally
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		s, err := runScenario(seed, nil, "", nil, only)
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
	only := scenario{kinds: []func(*Sim, *node){crash, isolate}, works: []func(*Sim){createTopic, createTopic, reassignByAPI}, clubs: &clubs{}, succeeds: true,
		prepare: func(s *Sim) { s.plants.modern(s); s.unclean = true }}
	holds(t, 20, only, func(d Tally) int { return d.Unclean })
	only.prepare = nil
	fails(t, 20, only, "unclean elections where they are not allowed")
}

// Controllers die and are deposed while they are elected, and the answer to the election is lost.
func TestH24_AControllerAndItsEpochAreMadeAtOnce(t *testing.T) {
	only := scenario{kinds: []func(*Sim, *node){crash, endSession, breakConnection, deposeController}, works: []func(*Sim){createTopic}, clubs: &clubs{}}
	holds(t, 8, only, func(d Tally) int { return d.Elections })
	fails(t, 8, only, "a controller is made first and its epoch then")
}

// A session is lost, and a new one is there before the server has reaped the old one's nodes; or the process is killed
// and started within the session's time, and ends the session that is left, or cannot.
func TestH28_TheBrokersOwnOldRegistrationDoesNotKeepItOut(t *testing.T) {
	only := scenario{kinds: []func(*Sim, *node){crash, endSession, breakConnection}, works: []func(*Sim){createTopic}, succeeds: true}
	holds(t, 8, only, func(d Tally) int { return d.Crashes + d.Expiries })
	holds(t, 8, only, func(d Tally) int { return d.Ended })
	fails(t, 8, only, "a registration of any session is the own")
}

// A broker that only ZooKeeper cannot be reached from goes on serving; nothing that it acknowledges is lost when another
// leads, and no offset is acknowledged by both.
func TestH30_ABrokerWithoutASessionAcknowledgesNothingThatIsLost(t *testing.T) {
	only := scenario{kinds: []func(*Sim, *node){cutFromZooKeeper}, works: []func(*Sim){createTopic, reassignByAPI, electByAPI}}
	holds(t, 8, only, func(d Tally) int { return d.Cuts })
	fails(t, 8, only, "acknowledged before it is committed")
}

// Watches fire once: what changes between a reading and the next watch must not be missed.
func TestH32_NoChangeIsMissedBetweenTheReadingAndTheWatch(t *testing.T) {
	only := scenario{kinds: []func(*Sim, *node){breakConnection}, works: []func(*Sim){createTopic, deleteTopic, addPartitions, reassignByNode, electByNode, writeJunk}}
	holds(t, 8, only, func(d Tally) int { return d.TopicsDeleted })
	fails(t, 30, only, "watches are left after the read")
}

// Brokers leave in good order while the controller goes from one to the next, and several at once.
func TestH35_ControlledShutdownsDuringFailoversLoseNothing(t *testing.T) {
	only := scenario{kinds: []func(*Sim, *node){deposeController}, works: []func(*Sim){createTopic, shutDown, shutDown}}
	holds(t, 8, only, func(d Tally) int { return d.Elections })
	fails(t, 60, only, "orders of earlier controllers")
}

// Topics are deleted while their brokers are away and while their partitions move, and are made again.
func TestH37_DeletionWaitsAndNeverTakesTheNewTopic(t *testing.T) {
	only := scenario{kinds: []func(*Sim, *node){crash, breakDisk}, works: []func(*Sim){createTopic, createTopic, deleteTopic, reassignByAPI},
		prepare: func(s *Sim) { s.plants.modern(s) }}
	holds(t, 8, only, func(d Tally) int { return d.TopicsDeleted })
	fails(t, 100, only, "topic ids are not compared")
}

// The source, the target or the controller dies in every phase of a reassignment.
func TestH38_AReassignmentEndsAsAskedOrIsTakenBack(t *testing.T) {
	only := scenario{kinds: []func(*Sim, *node){crash, powerCut, deposeController, cutLink},
		succeeds: true, works: []func(*Sim){createTopic, reassignByAPI, reassignByAPI, thereAndBack, cancelReassignment, reassignByNode}}
	holds(t, 10, only, func(d Tally) int { return d.Reassignments })
	fails(t, 40, only, "members of the ISR that move away are left out")
}

// Disks fill up and are given room again, and the brokers go on without a restart.
func TestH46_ADiskThatWasFullIsUsedAgain(t *testing.T) {
	only := scenario{kinds: []func(*Sim, *node){fillDisk, fillDisk, crash, pause, cutLink, deposeController}, works: []func(*Sim){createTopic, deleteTopic, flipLeader, reassignByAPI}}
	holds(t, 12, only, func(d Tally) int { return d.Reopened })
}

// Batches are repeated over crashes and changes of the leader, and are there once.
func TestH50_RepeatedBatchesAreThereOnce(t *testing.T) {
	only := scenario{kinds: []func(*Sim, *node){crash, pause, cutLink}, works: []func(*Sim){createTopic, flipLeader, reassignByAPI}, succeeds: true, clubs: &clubs{}}
	holds(t, 8, only, func(d Tally) int { return d.Leads })
	fails(t, 20, only, "repeats are not noticed")
}

// Coordinators of transactions die, sleep and are led elsewhere in every step of one, and writes come when it is over.
func TestH51_TransactionsEndAndAreNeverSeenInPart(t *testing.T) {
	only := scenario{kinds: []func(*Sim, *node){crash, pause, cutLink}, works: []func(*Sim){flipLeader, electByAPI}, clubs: &clubs{transforms: true}}
	holds(t, 8, only, func(d Tally) int { return d.CommittedTxns })
	for _, plant := range []string{"markers are sent once", "aborted transactions are not listed", "readers of what is committed read to the high watermark",
		"open offsets are taken for stable", "coordinators do not wait for the replicas"} {
		fails(t, 40, only, plant)
	}
}

func TestH52_NoProducerIDIsGivenTwice(t *testing.T) {
	only := scenario{kinds: []func(*Sim, *node){crash, deposeController, breakConnection}, works: []func(*Sim){allocateIDs, allocateIDs, createTopic}, clubs: &clubs{transforms: true}}
	holds(t, 8, only, func(d Tally) int { return d.Elections })
	fails(t, 8, only, "producer ids are given twice")
}

// Offsets are committed, their coordinator moves, and they are asked for while it loads.
func TestH53_NoOffsetIsAnsweredBeforeAllIsLoaded(t *testing.T) {
	only := scenario{kinds: []func(*Sim, *node){crash, pause}, works: []func(*Sim){flipLeader}, clubs: &clubs{plain: true}}
	holds(t, 8, only, func(d Tally) int { return d.Loads })
	fails(t, 8, only, "questions are answered before all is loaded")
}

// A coordinator sleeps, another one takes over, and the first one goes on.
func TestH54_ACoordinatorThatWasDeposedKnowsNothing(t *testing.T) {
	only := scenario{kinds: []func(*Sim, *node){pause, cutFromZooKeeper, cutLink}, works: []func(*Sim){flipLeader}, clubs: &clubs{plain: true}}
	holds(t, 8, only, func(d Tally) int { return d.Loads })
	fails(t, 20, only, "coordinators keep what they knew")
}

// Members sleep past their sessions and commit with the generation that they had; static ones find another of their name.
func TestH56_APartitionHasOneOwnerInAGeneration(t *testing.T) {
	only := scenario{kinds: []func(*Sim, *node){crash, pause}, works: []func(*Sim){flipLeader}, clubs: &clubs{plain: true, transforms: true}}
	holds(t, 8, only, func(d Tally) int { return d.Commits })
	for _, plant := range []string{"generations of commits are not compared", "offsets of a transaction without their generation", "instance ids are not compared"} {
		fails(t, 100, only, plant)
	}
}
