package tools

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/tools/options"
)

// reassigner carries out the actions of kafka-reassign-partitions through either door.
type reassigner struct {
	f    face
	door reassignmentDoor
}

const (
	alreadyReassigning = "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create a new partition assignment in addition to the existing one. " +
		"The --additional flag can also be used to change the throttle by resubmitting the current reassignment."
	verifyForThrottle = "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
	needsBrokers      = "bootstrap-server needs to be provided when replica reassignments are present."
)

func (r reassigner) byZooKeeper() bool { _, ok := r.door.(*reassignmentByZooKeeper); return ok }

func (r reassigner) say(format string, a ...any) { fmt.Fprintf(r.f.stdout, format+"\n", a...) }

func readFileOption(set *options.Set, name string) (jsonValue, error) {
	path, err := set.Value(name)
	if err != nil {
		return jsonValue{}, err
	}
	return readJSONFile(path)
}

// execute starts a reassignment, with its throttle first.
func (r reassigner) execute(set *options.Set) error {
	file, err := readFileOption(set, "reassignment-json-file")
	if err != nil {
		return err
	}
	asked, err := readReassignmentToExecute(file)
	if err != nil {
		return err
	}
	rate, err := set.Int("throttle", -1)
	if err != nil {
		return err
	}
	dirRate, err := set.Int("replica-alter-log-dirs-throttle", -1)
	if err != nil {
		return err
	}
	timeout, err := set.Int("timeout", 10_000)
	if err != nil {
		return err
	}
	if r.byZooKeeper() && len(asked.dirs) > 0 {
		return &commandFailed{needsBrokers}
	}
	active, now, err := r.admissible(asked, set.Has("additional"))
	if err != nil {
		return err
	}
	if set.Has("disallow-replication-factor-change") {
		if err := sameFactors(asked.targets(), now, active); err != nil {
			return err
		}
	}
	r.say("Current partition replica assignment\n\n%s\n\nSave this to use as the --reassignment-json-file option during rollback", reassignmentJSON(now))
	if rate >= 0 || dirRate >= 0 {
		r.say(verifyForThrottle)
	}
	if err := r.throttle(asked, active, now, rate, dirRate); err != nil {
		return err
	}
	if err = r.start(asked, timeout); err == nil && !set.Has("wait") {
		return nil
	}
	if !set.Has("wait") {
		return err
	}
	if err != nil {
		if rate >= 0 || dirRate >= 0 { // nothing runs that it could be for
			err = errors.Join(err, r.clearThrottles(asked))
		}
		return err
	}
	return r.waitAndVerify(asked, false)
}

// admissible refuses what names partitions or brokers that are not there, or comes while others run. It tells what runs and where the partitions are.
func (r reassigner) admissible(asked reassignmentFile, additional bool) (cluster.Moves, plan.Assignment, error) {
	active, err := r.door.active()
	if err != nil {
		return nil, nil, err
	}
	if !r.byZooKeeper() && len(active) > 0 && !additional {
		return nil, nil, &terse{alreadyReassigning}
	}
	brokers, err := r.door.brokers()
	if err != nil {
		return nil, nil, err
	}
	var unknown []int32
	for _, replicas := range asked.replicas {
		for _, id := range replicas {
			if !slices.Contains(unknown, id) && !slices.ContainsFunc(brokers, func(b plan.Broker) bool { return b.ID == id }) {
				unknown = append(unknown, id)
			}
		}
	}
	slices.Sort(unknown)
	if len(unknown) > 0 && !r.byZooKeeper() {
		return nil, nil, &commandFailed{fmt.Sprintf("Unknown broker id %d", unknown[0])}
	}
	all, failed, err := r.door.replicas(asked.topics())
	if err != nil {
		return nil, nil, err
	}
	now, missing := plan.Assignment{}, []plan.Partition(nil)
	for _, p := range asked.partitions {
		if replicas, there := all[p]; there {
			now[p] = replicas
		} else {
			missing = append(missing, p)
		}
	}
	switch {
	case r.byZooKeeper() && len(missing) > 0:
		return nil, nil, &commandFailed{fmt.Sprintf("The proposed assignment contains non-existent partitions: List(%s)", joinPartitions(missing, ", "))}
	case r.byZooKeeper() && len(unknown) > 0:
		return nil, nil, &commandFailed{"The proposed assignment contains non-existent brokerIDs: " + joinInts(unknown)}
	case r.byZooKeeper() && len(active) > 0:
		return nil, nil, &terse{alreadyReassigning}
	case len(failed) > 0:
		return nil, nil, topicError(failed)
	case len(missing) > 0:
		return nil, nil, &commandFailed{"Unable to find partition: " + joinPartitions(missing, ", ")}
	}
	return active, now, nil
}

// topicError is the error of the first topic that has one.
func topicError(failed map[string]error) error {
	topic := sortedKeys(failed)[0]
	var e *answerError
	if compat39() && errors.As(failed[topic], &e) {
		return &answerError{Code: e.Code, Message: fmt.Sprintf("Topic %s not found.", topic)}
	}
	return failed[topic]
}

// sameFactors refuses targets with more or fewer replicas than partitions have, not counting those that a running move has added.
func sameFactors(targets, now plan.Assignment, active cluster.Moves) error {
	var lines []string
	for _, p := range targets.Partitions() {
		if before, after := len(plan.Without(now[p], active[p].Adding)), len(targets[p]); before != after {
			lines = append(lines, fmt.Sprintf("%v: The replication factor is changed from %d to %d", p, before, after))
		}
	}
	if lines == nil {
		return nil
	}
	return &terse{"Error reassigning partition(s):\n" + strings.Join(lines, "\n")}
}

// throttle limits what is about to move.
func (r reassigner) throttle(asked reassignmentFile, active cluster.Moves, now plan.Assignment, rate, dirRate int64) error {
	if rate >= 0 {
		t := cluster.ThrottlingOf(active, asked.targets(), now)
		if err := r.door.setThrottledReplicas(t.Topics); err != nil {
			return err
		}
		text := strconv.FormatInt(rate, 10)
		if err := r.setRates(t.Brokers, map[string]string{leaderThrottleRate: text, followerThrottleRate: text}); err != nil {
			return err
		}
		r.say("The inter-broker throttle limit was set to %d B/s", rate)
	}
	if dirRate >= 0 {
		brokers := map[int32]bool{}
		for replica := range asked.dirs {
			brokers[replica.Broker] = true
		}
		if err := r.setRates(sortedKeys(brokers), map[string]string{logDirThrottleRate: strconv.FormatInt(dirRate, 10)}); err != nil {
			return err
		}
		r.say("The replica-alter-dir throttle limit was set to %d B/s", dirRate)
	}
	return nil
}

func (r reassigner) setRates(brokers []int32, rates map[string]string) error {
	unreachable, err := r.door.setRates(brokers, rates)
	if len(unreachable) > 0 {
		fmt.Fprintf(r.f.stderr, "Broker%s %s cannot be reached; throttles there are as they were. They can be changed with --zookeeper.\n", plural(len(unreachable)), joinInts(unreachable))
	}
	return err
}

func (r reassigner) start(asked reassignmentFile, timeout int64) error {
	targets := asked.targets()
	failed, err := r.door.start(targets)
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		return &terse{"Error reassigning partition(s):\n" + errorLines(failed)}
	}
	r.say("Successfully started partition reassignment%s for %s", plural(len(targets)), joinPartitions(targets.Partitions(), ","))
	if len(asked.dirs) == 0 {
		return nil
	}
	return r.moveTo(asked.dirs, timeout)
}

func errorLines(failed map[plan.Partition]error) string {
	list := plan.Assignment{}
	for p := range failed {
		list[p] = nil
	}
	var lines []string
	for _, p := range list.Partitions() {
		lines = append(lines, fmt.Sprintf("%v: %s", p, failed[p]))
	}
	return strings.Join(lines, "\n")
}

// dirMovePause is between two attempts to move replicas that are not on their brokers yet.
const dirMovePause = 100 * time.Millisecond

// moveTo moves replicas between directories of their brokers. Replicas that the reassignment brings are asked for until they are there, for at most timeout milliseconds.
func (r reassigner) moveTo(dirs map[cluster.Replica]string, timeout int64) error {
	door, ok := r.door.(directories)
	if !ok {
		return &commandFailed{needsBrokers}
	}
	pending := map[cluster.Replica]string{}
	for replica, dir := range dirs {
		pending[replica] = dir
	}
	for deadline := time.Now().Add(time.Duration(timeout) * time.Millisecond); ; time.Sleep(dirMovePause) {
		taken, err := door.moveTo(pending)
		if err != nil {
			return err
		}
		if len(taken) > 0 {
			r.sayMoved(taken, pending)
		}
		for _, replica := range taken {
			delete(pending, replica)
		}
		if len(pending) == 0 {
			return nil
		}
		if !time.Now().Before(deadline) {
			left := sortedReplicas(pending)
			return &terse{fmt.Sprintf("Timed out before log directory move%s could be started for: %s", plural(len(left)), joinReplicas(left))}
		}
	}
}

func (r reassigner) sayMoved(taken []cluster.Replica, dirs map[cluster.Replica]string) {
	if !compat39() {
		r.say("Successfully started log directory move%s for: %s", plural(len(taken)), joinReplicas(taken))
		return
	}
	for _, replica := range taken {
		r.say("Successfully started moving log directory to %s for replica %v with broker %d ", dirs[replica], replica.Partition, replica.Broker)
	}
}

func sortedReplicas[V any](m map[cluster.Replica]V) []cluster.Replica {
	var list []cluster.Replica
	for replica := range m {
		list = append(list, replica)
	}
	slices.SortFunc(list, cluster.Replica.Compare)
	return list
}

func joinReplicas(list []cluster.Replica) string {
	texts := make([]string, len(list))
	for i, replica := range list {
		texts[i] = replica.String()
	}
	return strings.Join(texts, ",")
}

// cancel ends what runs of the partitions in the file, and moves back what moves between directories.
func (r reassigner) cancel(set *options.Set) error {
	file, err := readFileOption(set, "reassignment-json-file")
	if err != nil {
		return err
	}
	asked, err := readReassignment(file)
	if err != nil {
		return err
	}
	timeout, err := set.Int("timeout", 10_000)
	if err != nil {
		return err
	}
	door := r.door.(directories) // there is no cancelling through ZooKeeper
	active, err := r.door.active()
	if err != nil {
		return err
	}
	running := plan.Assignment{}
	for _, p := range asked.partitions {
		if m := active[p]; len(m.Adding)+len(m.Removing) > 0 {
			running[p] = nil
		}
	}
	if len(running) > 0 {
		failed, err := door.cancelMoves(running.Partitions())
		if err != nil {
			return err
		}
		if len(failed) > 0 {
			return &terse{fmt.Sprintf("Error cancelling partition reassignment%s for:\n%s", plural(len(failed)), errorLines(failed))}
		}
		r.say("Successfully cancelled partition reassignment%s for: %s", plural(len(running)), joinPartitions(running.Partitions(), ","))
	} else {
		r.say("None of the specified partition reassignments are active.")
	}
	back := map[cluster.Replica]string{}
	states, err := r.dirStates(asked.dirs)
	if err != nil {
		return err
	}
	for replica, s := range states {
		if s.future != "" {
			back[replica] = s.current
		}
	}
	if len(back) == 0 {
		r.say("None of the specified partition moves are active.")
	} else if err := r.moveTo(back, timeout); err != nil {
		return err
	}
	if !set.Has("preserve-throttles") {
		if err := r.clearThrottles(asked); err != nil {
			return err
		}
	}
	if len(running)+len(back) == 0 {
		return errUnfinished
	}
	return nil
}

// list shows what runs.
func (r reassigner) list() error {
	active, err := r.door.active()
	if err != nil {
		return err
	}
	if len(active) == 0 {
		r.say("No partition reassignments found.")
		return nil
	}
	r.say("Current partition reassignments:")
	list := plan.Assignment{}
	for p := range active {
		list[p] = nil
	}
	for _, p := range list.Partitions() {
		m := active[p]
		line := fmt.Sprintf("%v: replicas: %s.", p, joinInts(m.Replicas))
		if len(m.Adding) > 0 {
			line += fmt.Sprintf(" adding: %s.", joinInts(m.Adding))
		}
		if len(m.Removing) > 0 {
			line += fmt.Sprintf(" removing: %s.", joinInts(m.Removing))
		}
		r.say("%s", line)
	}
	return nil
}
