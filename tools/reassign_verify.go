package tools

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/tools/options"
	"barnabas/zkstate"
)

func (r reassigner) verify(set *options.Set) error {
	file, err := readFileOption(set, "reassignment-json-file")
	if err != nil {
		return err
	}
	asked, err := readReassignment(file)
	if err != nil {
		return err
	}
	if r.byZooKeeper() {
		if len(asked.dirs) > 0 {
			return &commandFailed{needsBrokers}
		}
		r.say("Warning: because you are using the deprecated --zookeeper option, the results may be incomplete.  Use --bootstrap-server instead for more accurate results.")
	}
	if set.Has("wait") {
		return r.waitAndVerify(asked, set.Has("preserve-throttles"))
	}
	return r.verifyNow(asked, set.Has("preserve-throttles"))
}

// verifyNow shows how far things are, and removes throttles when nothing runs any more: not even what others have started, since a throttle does not tell for which of them it is.
func (r reassigner) verifyNow(asked reassignmentFile, preserveThrottles bool) error {
	active, err := r.door.active()
	if err != nil {
		return err
	}
	now, failed, err := r.door.replicas(asked.topics())
	if err != nil {
		return err
	}
	for _, err := range failed {
		if !errors.Is(err, kerr.UnknownTopicOrPartition) && !errors.Is(err, zkstate.ErrNoNode) {
			return err
		}
	}
	r.say("Status of partition reassignment:")
	targets, finished := asked.targets(), true
	for _, p := range targets.Partitions() {
		_, running := active[p]
		switch {
		case running:
			finished = false
			r.say("Reassignment of partition %v is still in progress.", p)
		case !slices.Equal(now[p], targets[p]):
			finished = false
			r.say("There is no active reassignment of partition %v, but replica set is %s rather than %s.", p, joinInts(now[p]), joinInts(targets[p]))
		case compat39():
			r.say("Reassignment of partition %v is completed.", p)
		default:
			r.say("Reassignment of partition %v is complete.", p)
		}
	}
	movesEnded := true
	if !r.byZooKeeper() {
		states, err := r.dirStates(asked.dirs)
		if err != nil {
			return err
		}
		var lines []string
		for _, replica := range sortedReplicas(states) {
			lines = append(lines, states[replica].line(replica))
			movesEnded = movesEnded && states[replica].ended()
			finished = finished && states[replica].done()
		}
		r.say("%s", strings.Join(lines, "\n")) // an empty line when there are none
	}
	if len(active) == 0 && movesEnded && !preserveThrottles {
		if err := r.clearThrottles(asked); err != nil {
			return err
		}
	}
	if !finished {
		return errUnfinished
	}
	return nil
}

// dirState is where a replica is that is to be in a certain directory.
type dirState struct{ target, current, future string }

// ended tells that nothing will happen any more, done that it is where it should be.
func (s dirState) ended() bool { return s.current != "" && s.future == "" }
func (s dirState) done() bool  { return s.ended() && s.current == s.target }

func (s dirState) line(r cluster.Replica) string {
	switch {
	case s.current == "":
		return fmt.Sprintf("Partition %v is not found in any live log dir on broker %d. There is likely an offline log directory on the broker.", r.Partition, r.Broker)
	case s.done():
		return fmt.Sprintf("Reassignment of replica %v completed successfully.", r)
	case s.ended():
		return fmt.Sprintf("Partition %v on broker %d is not being moved from log dir %s to %s.", r.Partition, r.Broker, s.current, s.target)
	case s.future == s.target:
		return fmt.Sprintf("Reassignment of replica %v is still in progress.", r)
	}
	return fmt.Sprintf("Partition %v on broker %d is being moved to log dir %s instead of %s.", r.Partition, r.Broker, s.future, s.target)
}

func (r reassigner) dirStates(dirs map[cluster.Replica]string) (map[cluster.Replica]dirState, error) {
	door, ok := r.door.(directories)
	if len(dirs) == 0 || !ok {
		return nil, nil
	}
	asked := plan.Assignment{}
	for replica := range dirs {
		asked[replica.Partition] = nil
	}
	stored, err := door.stored(asked.Partitions())
	if err != nil {
		return nil, err
	}
	states := map[cluster.Replica]dirState{}
	for replica, dir := range dirs {
		states[replica] = dirState{target: dir}
	}
	for _, copy := range stored {
		s, wanted := states[copy.Replica]
		if !wanted {
			continue
		}
		if copy.Future {
			s.future = copy.Dir
		} else {
			s.current = copy.Dir
		}
		states[copy.Replica] = s
	}
	return states, nil
}

// clearThrottles takes back all throttles of the topics and of all brokers: which brokers took part is not known any more.
func (r reassigner) clearThrottles(asked reassignmentFile) error {
	return r.clear(asked, nil)
}

// clear takes back the throttles of the file's topics and of all brokers, but for those of topics and brokers that take part in what still runs.
func (r reassigner) clear(asked reassignmentFile, active cluster.Moves) error {
	alive, err := r.door.brokers()
	if err != nil {
		return err
	}
	involved := map[int32]bool{}
	for _, b := range alive {
		involved[b.ID] = true
	}
	for _, replicas := range asked.replicas {
		for _, id := range replicas {
			involved[id] = true
		}
	}
	topics, brokers := cluster.ThrottlesToEnd(asked.topics(), sortedKeys(involved), active)
	if len(brokers) > 0 {
		r.say("Clearing broker-level throttles on broker%s %s", plural(len(brokers)), joinInts(brokers))
		if err := r.setRates(brokers, map[string]string{leaderThrottleRate: "", followerThrottleRate: "", logDirThrottleRate: ""}); err != nil {
			return err
		}
	}
	if len(topics) == 0 {
		return nil
	}
	r.say("Clearing topic-level throttles on topic%s %s", plural(len(topics)), strings.Join(topics, ","))
	none := map[string]cluster.ThrottledReplicas{}
	for _, topic := range topics {
		none[topic] = cluster.ThrottledReplicas{}
	}
	return r.door.setThrottledReplicas(none)
}
