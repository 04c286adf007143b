package health

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// Doctor examines a cluster, adds what is going to be trouble, and says for each finding what mends it. server is what commands are to be given as --bootstrap-server.
func Doctor(s *cluster.Snapshot, server string) ([]Finding, Counts) {
	found, counts := Examine(s)
	d := doctor{s, "--bootstrap-server " + server}
	for i := range found {
		d.mend(&found[i])
	}
	for _, rule := range []func() []Finding{
		d.duplicateReplicas, d.hangingTransactions, d.offsetsOutOfRange, d.internalTopicsNotCompacted, d.leftoverThrottles, d.singleReplicas, d.minISRLeavesNoRoom, d.oneRack, d.unevenLeaders,
		d.fullDisks, d.retentionBelowSegment, d.uncleanElections,
	} {
		found = append(found, rule()...)
	}
	bySeverity(found)
	return found, counts
}

type doctor struct {
	s      *cluster.Snapshot
	server string
}

// mend says what to do about what Examine found.
func (d doctor) mend(f *Finding) {
	switch f.Rule {
	case "controller_missing", "controller_disagreement":
		f.Advice = "brokers elect the controller through ZooKeeper: look whether it is there and whether brokers hold a session"
		f.Commands = []string{"barnabas zookeeper-shell ZOOKEEPER:2181 get /controller"}
	case "broker_not_answering":
		f.Advice = "look at that broker's process and log; when it hangs, stop it: its leaders move when its ZooKeeper session ends"
		f.Commands = []string{"barnabas kafka-broker-api-versions " + d.server}
	case "broker_missing":
		f.Advice = "start the broker; when it is lost for good, move its replicas to others"
		f.Commands = []string{fmt.Sprintf("barnabas kafka-reassign-partitions %s --topics-to-move-json-file TOPICS.json --broker-list %s --generate", d.server, d.brokerList())}
	case "offline_partitions":
		f.Advice = "start the brokers that have their replicas, the last leader first. Only when these are lost: elect an unclean leader, which loses what it does not have"
		f.Commands = []string{"barnabas kafka-topics " + d.server + " --describe --unavailable-partitions"}
		if topic, id, ok := cutPartition(f.Subjects[0]); ok {
			f.Commands = append(f.Commands, fmt.Sprintf("barnabas kafka-leader-election %s --election-type unclean --topic %s --partition %s", d.server, topic, id))
		}
	case "under_min_isr_partitions":
		f.Advice = "bring the replicas that are out of sync back, and give topics that have too few of them more; lowering min.insync.replicas lets producers go on at the price of safety"
		f.Commands = []string{"barnabas kafka-topics " + d.server + " --describe --under-min-isr-partitions"}
		for _, t := range d.s.Topics {
			if slices.ContainsFunc(t.Partitions, func(p cluster.Partition) bool { return len(p.Replicas) < t.MinISR }) { // no replica is missing: there are too few
				f.Commands = append(f.Commands, d.alterTopic(t.Name, fmt.Sprintf("--replication-factor %d", min(t.MinISR, len(d.s.Brokers)))))
			}
		}
	case "under_replicated_partitions":
		f.Advice = "start the missing brokers, or see why their fetchers do not keep up (disk, network, a throttle)"
		f.Commands = []string{"barnabas kafka-topics " + d.server + " --describe --under-replicated-partitions"}
	case "failed_log_dirs":
		f.Advice = "mend or replace the disk and restart the broker; its replicas there are copied again"
		f.Commands = []string{"barnabas disk " + d.server + " --by dir"}
	case "metadata_disagreement", "brokers_disagreement":
		f.Advice = "a broker does not hear from the controller: look at its log and at the controller's; a restart of the one that is alone makes it read everything again"
	case "leaders_not_preferred":
		f.Advice = "let the preferred replicas lead again"
		f.Commands = []string{"barnabas kafka-leader-election " + d.server + " --election-type preferred --all-topic-partitions"}
	case "reassignments":
		f.Advice = "nothing to mend; watch them end"
		f.Commands = []string{"barnabas kafka-reassign-partitions " + d.server + " --list"}
	}
}

// cutPartition is a partition's topic and number.
func cutPartition(name string) (topic, id string, ok bool) {
	at := strings.LastIndexByte(name, '-')
	if at < 0 {
		return "", "", false
	}
	return name[:at], name[at+1:], true
}

func (d doctor) brokerList() string {
	var ids []string
	for _, b := range d.s.Brokers {
		ids = append(ids, strconv.Itoa(int(b.ID)))
	}
	return strings.Join(ids, ",")
}

// one is a finding when there is something that it is true of.
func one(f Finding) []Finding {
	if len(f.Subjects) == 0 {
		return nil
	}
	return []Finding{f}
}

func (d doctor) alterTopic(topic, change string) string {
	return fmt.Sprintf("barnabas topic alter %s %s %s", d.server, change, topic)
}

// eachTopic is a finding about the topics that a rule is true of, with a command for each.
func (d doctor) eachTopic(f Finding, is func(t cluster.Topic) bool, command func(t cluster.Topic) string) []Finding {
	for _, t := range d.s.Topics {
		if is(t) {
			f.Subjects = append(f.Subjects, t.Name)
			f.Commands = append(f.Commands, command(t))
		}
	}
	return one(f)
}

func (d doctor) duplicateReplicas() []Finding {
	f := Finding{Rule: "duplicate_replicas", Severity: Critical, Summary: "partitions whose list of replicas names a broker twice: they have fewer copies than it seems",
		Advice: "give them a list without the duplicate", Commands: []string{"barnabas kafka-reassign-partitions " + d.server + " --reassignment-json-file FILE --execute"}}
	for _, t := range d.s.Topics {
		for _, p := range t.Partitions {
			if sorted := slices.Sorted(slices.Values(p.Replicas)); len(slices.Compact(sorted)) < len(p.Replicas) {
				f.Subjects = append(f.Subjects, plan.Partition{Topic: t.Name, ID: p.ID}.String())
			}
		}
	}
	return one(f)
}

func (d doctor) hangingTransactions() []Finding {
	f := Finding{Rule: "hanging_transactions", Severity: Critical, Summary: "transactions that no coordinator will end: consumers of committed records wait behind them for ever",
		Advice: "abort them"}
	for _, h := range d.s.Hanging {
		f.Subjects = append(f.Subjects, h.Partition.String())
		f.Commands = append(f.Commands, fmt.Sprintf("barnabas kafka-transactions %s abort --topic %s --partition %d --start-offset %d", d.server, h.Partition.Topic, h.Partition.ID, h.CurrentTxnStartOffset))
	}
	return one(f)
}

func (d doctor) offsetsOutOfRange() []Finding {
	lost := Finding{Rule: "offsets_before_start", Severity: Warning, Summary: "groups whose committed offset is below the first record: retention deleted what they had not read, and they go on where auto.offset.reset says",
		Advice: "keep records for longer, or set the group to where the partition begins"}
	beyond := Finding{Rule: "offsets_beyond_end", Severity: Warning, Summary: "groups whose committed offset is beyond the end: the partition was truncated, or its topic made anew; they wait, or start over where auto.offset.reset says",
		Advice: "set the group to where it is to go on"}
	gone := Finding{Rule: "offsets_of_missing_topics", Severity: Note, Summary: "groups with offsets of partitions that are not there", Advice: "nothing to mend: they expire"}
	for _, group := range slices.Sorted(maps.Keys(d.s.Groups)) {
		for _, p := range d.s.Groups[group] {
			subject := group + " " + p.Partition.String()
			reset := func(to string) string {
				return fmt.Sprintf("barnabas group reset %s --topic %s:%d %s %s", d.server, p.Partition.Topic, p.Partition.ID, to, group)
			}
			start, known := d.s.Starts[p.Partition]
			switch {
			case p.Current < 0:
			case known && p.Current < start:
				lost.Subjects, lost.Commands = append(lost.Subjects, subject), append(lost.Commands, reset("--to-earliest"))
			case p.End >= 0 && p.Current > p.End:
				beyond.Subjects, beyond.Commands = append(beyond.Subjects, subject), append(beyond.Commands, reset("--to-latest"))
			case p.Unknown() == "no_such_partition":
				gone.Subjects = append(gone.Subjects, subject)
			}
		}
	}
	return slices.Concat(one(lost), one(beyond), one(gone))
}

func (d doctor) internalTopicsNotCompacted() []Finding {
	return d.eachTopic(Finding{Rule: "internal_topic_not_compacted", Severity: Critical, Summary: "a topic in which coordinators keep their state is not compacted only: retention deletes offsets and transactions that are in use",
		Advice: "compact it"}, func(t cluster.Topic) bool {
		return cluster.IsInternal(t.Name) && t.Settings != nil && t.Settings["cleanup.policy"] != "compact"
	}, func(t cluster.Topic) string { return d.alterTopic(t.Name, "--config cleanup.policy=compact") })
}

// leftoverThrottles finds what holds replication back although nothing moves.
func (d doctor) leftoverThrottles() []Finding {
	if d.s.Moves == nil || len(d.s.Moves) > 0 {
		return nil // not known, or in use
	}
	f := Finding{Rule: "leftover_throttles", Severity: Warning, Summary: "throttles of a reassignment that is over: replication is held back, and a replica that falls behind may never catch up",
		Advice: "take them back"}
	for _, id := range slices.Sorted(maps.Keys(d.s.Throttles)) {
		var names []string
		for _, t := range d.s.Throttles[id] {
			names = append(names, t.Name)
		}
		f.Subjects = append(f.Subjects, broker(id))
		f.Commands = append(f.Commands, fmt.Sprintf("barnabas kafka-configs %s --alter --entity-type brokers --entity-name %d --delete-config %s", d.server, id, strings.Join(names, ",")))
	}
	for _, t := range d.s.Topics {
		var change []string
		for _, o := range t.Overrides {
			if (o.Name == cluster.LeaderThrottleReplicas || o.Name == cluster.FollowerThrottleReplicas) && o.Value != "" {
				change = append(change, "--delete-config "+o.Name)
			}
		}
		if change != nil {
			f.Subjects = append(f.Subjects, t.Name)
			f.Commands = append(f.Commands, d.alterTopic(t.Name, strings.Join(change, " ")))
		}
	}
	return one(f)
}

func (d doctor) singleReplicas() []Finding {
	if len(d.s.Brokers) < 2 {
		return nil // there is nowhere else to put one
	}
	factor := min(3, len(d.s.Brokers))
	return d.eachTopic(Finding{Rule: "single_replica", Severity: Warning, Summary: "topics with one replica: when its broker stops they cannot be used, when its disk is lost so are they",
		Advice: "give them more replicas"}, func(t cluster.Topic) bool { return t.ReplicationFactor == 1 },
		func(t cluster.Topic) string {
			return d.alterTopic(t.Name, "--replication-factor "+strconv.Itoa(factor))
		})
}

func (d doctor) minISRLeavesNoRoom() []Finding {
	return d.eachTopic(Finding{Rule: "min_isr_leaves_no_room", Severity: Warning, Summary: "topics whose min.insync.replicas is as large as their replication factor, or larger: when any one broker stops, acks=all is refused",
		Advice: "ask for one in-sync replica less than there are"}, func(t cluster.Topic) bool { return t.ReplicationFactor > 1 && t.MinISR >= t.ReplicationFactor },
		func(t cluster.Topic) string {
			return d.alterTopic(t.Name, fmt.Sprintf("--config min.insync.replicas=%d", t.ReplicationFactor-1))
		})
}

func (d doctor) oneRack() []Finding {
	racks := map[int32]string{}
	all := map[string]bool{}
	for _, b := range d.s.Brokers {
		racks[b.ID], all[b.Rack] = b.Rack, true
	}
	if len(all) < 2 || all[""] {
		return nil
	}
	return d.eachTopic(Finding{Rule: "one_rack", Severity: Warning, Summary: "topics with partitions whose replicas are all in one rack",
		Advice: "plan them anew: put {\"version\":1,\"topics\":[{\"topic\":\"NAME\"}]} into a file"}, func(t cluster.Topic) bool {
		return slices.ContainsFunc(t.Partitions, func(p cluster.Partition) bool {
			in := map[string]bool{}
			for _, id := range p.Replicas {
				in[racks[id]] = true
			}
			return len(p.Replicas) > 1 && len(in) == 1
		})
	}, func(cluster.Topic) string { return d.generate() })
}

func (d doctor) generate() string {
	return fmt.Sprintf("barnabas kafka-reassign-partitions %s --topics-to-move-json-file TOPICS.json --broker-list %s --generate", d.server, d.brokerList())
}

// unevenLeaders compares who should lead, so that leaders that are merely away are not told twice.
func (d doctor) unevenLeaders() []Finding {
	preferred := map[int32]int{}
	total := 0
	for _, t := range d.s.Topics {
		for _, p := range t.Partitions {
			if id := p.Preferred(); registered(d.s, id) {
				preferred[id]++
				total++
			}
		}
	}
	const tolerated = 5 // leaders more than the average, with few partitions
	var most, least []string
	for _, b := range d.s.Brokers {
		average := float64(total) / float64(len(d.s.Brokers))
		n := preferred[b.ID]
		switch {
		case float64(n) > average*1.5 && float64(n) > average+tolerated:
			most = append(most, fmt.Sprintf("broker %d (%d of %d)", b.ID, n, total))
		case float64(n) < average*0.5 && float64(n) < average-tolerated:
			least = append(least, fmt.Sprintf("broker %d (%d of %d)", b.ID, n, total))
		}
	}
	return one(Finding{Rule: "uneven_leaders", Severity: Warning, Subjects: append(most, least...), Summary: "preferred leaders are spread unevenly: some brokers do much more than their share, or less",
		Advice: "plan the largest topics anew", Commands: []string{d.generate()}})
}

func (d doctor) fullDisks() []Finding {
	const low = 0.15
	f := Finding{Rule: "disk_nearly_full", Severity: Warning, Summary: "log directories with less than 15% of their disk left: a full disk takes all replicas on it out of use",
		Advice: "see what is large, then shorten retention or move partitions", Commands: []string{"barnabas disk " + d.server + " --by topic"}}
	for _, id := range slices.Sorted(maps.Keys(d.s.Dirs)) {
		for _, dir := range d.s.Dirs[id] {
			if dir.Err == nil && dir.Total > 0 && dir.Usable >= 0 && float64(dir.Usable) < low*float64(dir.Total) {
				f.Subjects = append(f.Subjects, broker(id)+":"+dir.Path)
			}
		}
	}
	return one(f)
}

func (d doctor) retentionBelowSegment() []Finding {
	number := func(t cluster.Topic, key string) int64 {
		n, err := strconv.ParseInt(t.Settings[key], 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	deleting := func(t cluster.Topic) bool { return strings.Contains(t.Settings["cleanup.policy"], "delete") }
	bytes := d.eachTopic(Finding{Rule: "retention_below_segment", Severity: Note, Summary: "topics whose retention.bytes is smaller than a segment: only whole segments are deleted, so that each partition keeps up to segment.bytes more",
		Advice: "make segments smaller than what is to be kept"}, func(t cluster.Topic) bool {
		keep, segment := number(t, "retention.bytes"), number(t, "segment.bytes")
		return deleting(t) && keep >= 0 && segment > keep
	}, func(t cluster.Topic) string {
		const segments, smallest = 4, 14 // so many in what is kept; no segment may be smaller
		return d.alterTopic(t.Name, fmt.Sprintf("--config segment.bytes=%d", max(number(t, "retention.bytes")/segments, smallest)))
	})
	short := d.eachTopic(Finding{Rule: "retention_very_short", Severity: Warning, Summary: "topics that keep records for less than a minute: a consumer that restarts loses what it had not read",
		Advice: "keep them for longer"}, func(t cluster.Topic) bool {
		keep := number(t, "retention.ms")
		return deleting(t) && keep >= 0 && keep < time.Minute.Milliseconds()
	}, func(t cluster.Topic) string { return d.alterTopic(t.Name, "--delete-config retention.ms") })
	return slices.Concat(bytes, short)
}

func (d doctor) uncleanElections() []Finding {
	return d.eachTopic(Finding{Rule: "unclean_elections", Severity: Warning, Summary: "topics in which a replica that is out of sync may become leader: acknowledged records are lost then",
		Advice: "wait for an in-sync replica instead"}, func(t cluster.Topic) bool { return t.Settings["unclean.leader.election.enable"] == "true" },
		func(t cluster.Topic) string {
			return d.alterTopic(t.Name, "--config unclean.leader.election.enable=false")
		})
}
