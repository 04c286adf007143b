package tools

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// What --output json prints: one document for a command, with all that is known, whichever of --offsets, --members and --state was asked for. What is not known is null. A group about which nothing can be
// told has an error, and the exit code is 1.

const groupsJSONVersion = 1 // grows when a field changes its meaning or goes

type (
	groupsJSON struct {
		Version int         `json:"version"`
		Groups  []groupJSON `json:"groups"`
	}
	groupJSON struct {
		Group       string           `json:"group"`
		Error       string           `json:"error,omitempty"`
		Type        string           `json:"type,omitempty"`
		State       string           `json:"state,omitempty"`
		Protocol    string           `json:"assignmentStrategy,omitempty"`
		Coordinator *coordinatorJSON `json:"coordinator,omitempty"`
		Lag         *int64           `json:"lag,omitempty"` // of all partitions whose lag is known
		Members     []memberJSON     `json:"members,omitempty"`
		Offsets     []offsetJSON     `json:"offsets,omitempty"`
	}
	coordinatorJSON struct {
		ID   int32  `json:"id"`
		Host string `json:"host"`
		Port int32  `json:"port"`
	}
	memberJSON struct {
		Consumer   string           `json:"consumerId"`
		Instance   *string          `json:"groupInstanceId"`
		Host       string           `json:"host"`
		Client     string           `json:"clientId"`
		Assignment []topicPartition `json:"assignment"`
	}
	offsetJSON struct {
		topicPartition
		Current  *int64  `json:"currentOffset"`
		End      *int64  `json:"logEndOffset"`
		Lag      *int64  `json:"lag"`
		Consumer *string `json:"consumerId"`
	}
)

func (g groupTool) printJSON(groups []groupJSON) {
	fmt.Fprintf(g.f.stdout, "%s\n", plainJSON(groupsJSON{groupsJSONVersion, groups}))
}

func listedGroupsJSON(listed []cluster.ListedGroup) []groupJSON {
	groups := make([]groupJSON, len(listed))
	for i, l := range listed {
		groups[i] = groupJSON{Group: l.Name, Type: l.Type, State: l.State}
	}
	return groups
}

// describeJSON describes groups; what is wrong with one of them stands beside its name.
func (g groupTool) describeJSON(groups []string, described kadm.DescribedGroups) error {
	var failed error
	list := make([]groupJSON, 0, len(groups))
	for _, name := range groups {
		d := described[name]
		var rows []cluster.GroupPartition
		err := d.Err
		switch {
		case cluster.Gone(d):
			err = fmt.Errorf("Consumer group '%s' does not exist.", name)
		case err == nil:
			rows, err = g.cluster.GroupPartitions(g.ctx, name, d)
		}
		if err != nil {
			list, failed = append(list, groupJSON{Group: name, Error: err.Error()}), errFailed
			continue
		}
		list = append(list, describedGroupJSON(name, d, rows))
	}
	g.printJSON(list)
	return failed
}

func describedGroupJSON(name string, d kadm.DescribedGroup, rows []cluster.GroupPartition) groupJSON {
	j := groupJSON{Group: name, State: d.State, Protocol: d.Protocol, Coordinator: &coordinatorJSON{d.Coordinator.NodeID, d.Coordinator.Host, d.Coordinator.Port}}
	for _, m := range d.Members {
		j.Members = append(j.Members, memberJSON{m.MemberID, m.InstanceID, m.ClientHost, m.ClientID, inJSON(cluster.Assigned(m))})
	}
	if lag, ok := cluster.TotalLag(rows); ok {
		j.Lag = &lag
	}
	for _, r := range rows {
		o := offsetJSON{topicPartition: topicPartition{r.Partition.Topic, r.Partition.ID}, Current: known(r.Current), End: known(r.End)}
		if r.Member != nil {
			o.Consumer = &r.Member.MemberID
		}
		if lag, ok := r.Lag(); ok {
			o.Lag = &lag
		}
		j.Offsets = append(j.Offsets, o)
	}
	return j
}

func inJSON(partitions []plan.Partition) []topicPartition {
	list := make([]topicPartition, len(partitions))
	for i, p := range partitions {
		list[i] = topicPartition{p.Topic, p.ID}
	}
	return list
}

// known is a number that is not negative, or null.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}
