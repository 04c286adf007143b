package native

import (
	"github.com/twmb/franz-go/pkg/kadm"

	"barnabas/admin/cluster"
	"barnabas/admin/health"
)

// The documents of commands, for who serves the same JSON by another way: what they are made of is what the commands read.

// BrokersDocument is the document of `broker list`.
func BrokersDocument(s *cluster.Snapshot) any { return brokersOf(s) }

// TopicsDocument is the document of `topic list`.
func TopicsDocument(topics []cluster.Topic) any {
	d := &topicsDocument{documentVersion, []topicLine{}}
	for _, t := range topics {
		d.Topics = append(d.Topics, topicLineOf(t))
	}
	return d
}

// GroupsDocument is the document of `group list`.
func GroupsDocument(groups []cluster.ListedGroup, told kadm.DescribedGroups, partitions map[string][]cluster.GroupPartition, failures map[string]error) any {
	d := &groupsDocument{documentVersion, []groupLine{}}
	for _, g := range groups {
		d.Groups = append(d.Groups, lineOf(g, told[g.Name], partitions[g.Name], failures[g.Name]))
	}
	return d
}

// VerdictDocument is the document of `health` and `doctor`.
func VerdictDocument(s *cluster.Snapshot, findings []health.Finding, counts health.Counts) any {
	return verdictOf(s, findings, counts)
}
