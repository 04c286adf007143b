// Package health judges a cluster: what is wrong with it, and, for who asks the doctor, what is going to be and which command mends it. It is pure: the same snapshot gives the same findings in the
// same order.
package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// Severity is how much a finding matters.
type Severity string

// Critical is what makes a cluster unhealthy: somebody cannot write or read, or the next failure costs records. A Warning is not as it should be, a Note is worth knowing.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Note     Severity = "note"
)

// Finding is one thing that was found, with all that it is true of.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Summary  string   `json:"summary"`
	Subjects []string `json:"subjects"`           // partitions, topics, brokers or groups
	Advice   string   `json:"advice,omitempty"`   // of the doctor
	Commands []string `json:"commands,omitempty"` // that mend it, or tell more; of the doctor
}

// Counts are the figures of a cluster.
type Counts struct {
	Topics              int `json:"topics"`
	Partitions          int `json:"partitions"`
	Offline             int `json:"offline_partitions"`
	UnderReplicated     int `json:"under_replicated_partitions"`
	UnderMinISR         int `json:"under_min_isr_partitions"`
	NotPreferred        int `json:"leaders_not_preferred"`
	Reassigning         int `json:"reassigning_partitions"`
	FailedDirs          int `json:"failed_log_dirs"`
	BrokersNotAnswering int `json:"brokers_not_answering"`
}

// Healthy tells whether nothing critical was found.
func Healthy(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Critical })
}

// examined is what an examination goes through the partitions for, once.
type examined struct {
	offline, underReplicated, underMinISR, notPreferred []string
	onMissing                                           map[int32][]string // partitions by the broker that is not registered
}

func examine(s *cluster.Snapshot) (examined, Counts) {
	e := examined{onMissing: map[int32][]string{}}
	c := Counts{Topics: len(s.Topics), Reassigning: len(s.Moves), BrokersNotAnswering: len(s.Silent)}
	for _, t := range s.Topics {
		for _, p := range t.Partitions {
			c.Partitions++
			name := plan.Partition{Topic: t.Name, ID: p.ID}.String()
			if p.Unavailable() {
				e.offline = append(e.offline, name)
			}
			if p.UnderReplicated() {
				e.underReplicated = append(e.underReplicated, name)
			}
			if p.UnderMinISR(t.MinISR) {
				e.underMinISR = append(e.underMinISR, name)
			}
			if !p.Unavailable() && p.Leader != p.Preferred() {
				e.notPreferred = append(e.notPreferred, name)
			}
			for _, id := range p.Replicas {
				if !registered(s, id) {
					e.onMissing[id] = append(e.onMissing[id], name)
				}
			}
		}
	}
	c.Offline, c.UnderReplicated, c.UnderMinISR, c.NotPreferred = len(e.offline), len(e.underReplicated), len(e.underMinISR), len(e.notPreferred)
	for _, id := range slices.Sorted(maps.Keys(s.Dirs)) {
		for _, d := range s.Dirs[id] {
			if d.Err != nil {
				c.FailedDirs++
			}
		}
	}
	return e, c
}

func registered(s *cluster.Snapshot, id int32) bool {
	return slices.ContainsFunc(s.Brokers, func(b cluster.Broker) bool { return b.ID == id })
}

// Examine finds what is wrong now, the most severe first.
func Examine(s *cluster.Snapshot) ([]Finding, Counts) {
	e, counts := examine(s)
	var found []Finding
	add := func(rule string, severity Severity, subjects []string, format string, args ...any) {
		if len(subjects) > 0 {
			found = append(found, Finding{Rule: rule, Severity: severity, Subjects: subjects, Summary: fmt.Sprintf(format, args...)})
		}
	}
	if s.Controller < 0 {
		add("controller_missing", Critical, []string{"cluster"}, "no broker is the controller: no leader is elected, no topic is made or deleted")
	}
	for _, id := range slices.Sorted(maps.Keys(s.Silent)) {
		add("broker_not_answering", Critical, []string{broker(id)}, "broker %d is registered and does not answer: %v", id, s.Silent[id])
	}
	for _, id := range slices.Sorted(maps.Keys(e.onMissing)) {
		add("broker_missing", Critical, e.onMissing[id], "broker %d is not registered and has %s", id, replicasOf(len(e.onMissing[id])))
	}
	add("offline_partitions", Critical, e.offline, "%s without a living leader: nobody can write or read", partitions(len(e.offline)))
	add("under_min_isr_partitions", Critical, e.underMinISR, "%s with fewer in-sync replicas than min.insync.replicas: acks=all is refused", partitions(len(e.underMinISR)))
	add("under_replicated_partitions", Critical, e.underReplicated, "%s with a replica out of sync", partitions(len(e.underReplicated)))
	for _, id := range slices.Sorted(maps.Keys(s.Dirs)) {
		for _, d := range s.Dirs[id] {
			if d.Err != nil {
				add("failed_log_dirs", Critical, []string{broker(id) + ":" + d.Path}, "log directory %s of broker %d is out of use: %v", d.Path, id, d.Err)
			}
		}
	}
	found = append(found, disagreements(s.Disagreements())...)
	add("leaders_not_preferred", Warning, e.notPreferred, "%s led by another than the preferred replica", partitions(len(e.notPreferred)))
	var moving []string
	for _, p := range slices.SortedFunc(maps.Keys(s.Moves), plan.Partition.Compare) {
		moving = append(moving, p.String())
	}
	add("reassignments", Note, moving, "%s being reassigned", partitions(len(moving)))
	bySeverity(found)
	return found, counts
}

// disagreements tells those about the controller and the brokers each, and those about leaders together.
func disagreements(list []cluster.Disagreement) []Finding {
	var found []Finding
	var leaders []string
	example := ""
	for _, d := range list {
		text := says(d)
		if name, ok := strings.CutPrefix(d.What, "leader of "); ok {
			if leaders = append(leaders, name); example == "" {
				example = text
			}
			continue
		}
		found = append(found, Finding{Rule: d.What + "_disagreement", Severity: Critical, Subjects: []string{"cluster"}, Summary: fmt.Sprintf("brokers do not agree on the %s: %s", d.What, text)})
	}
	if leaders != nil {
		found = append(found, Finding{Rule: "metadata_disagreement", Severity: Critical, Subjects: leaders,
			Summary: fmt.Sprintf("brokers do not agree on who leads %s; of %s: %s", partitions(len(leaders)), leaders[0], example)})
	}
	return found
}

func says(d cluster.Disagreement) string {
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(d.Says)) {
		parts = append(parts, fmt.Sprintf("broker %d says %s", id, d.Says[id]))
	}
	return strings.Join(parts, ", ")
}

// bySeverity puts the most severe first and leaves the order within a severity.
func bySeverity(found []Finding) {
	rank := map[Severity]int{Critical: 0, Warning: 1, Note: 2}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
}

func broker(id int32) string { return "broker " + strconv.Itoa(int(id)) }

func partitions(n int) string {
	if n == 1 {
		return "1 partition"
	}
	return strconv.Itoa(n) + " partitions"
}

func replicasOf(n int) string {
	if n == 1 {
		return "a replica of 1 partition"
	}
	return "replicas of " + partitions(n)
}
