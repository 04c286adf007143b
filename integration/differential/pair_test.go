package differential

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate"
)

// settings are those of both brokers. Nothing happens by itself within the time of a test.
var settings = map[string]string{
	"auto.create.topics.enable": "true", "num.partitions": "2", "group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2",
	"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1", "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:ANONYMOUS",
	"zookeeper.session.timeout.ms": "20000", "log.retention.ms": "-1", "auto.leader.rebalance.enable": "false", "log.cleaner.enable": "false",
}

// settling is how long two brokers may tell different things of what each does in its own time, in the background.
const settling = 15 * time.Second

// pair is both brokers, asked the same in the same order.
type pair struct {
	t        *testing.T
	kafka    *side
	ours     *side
	story    []string       // what was asked lately
	compared map[string]int // requests, by API and version
	found    []string
}

func startPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t, compared: map[string]int{}}
	p.kafka = startSide(t, "Kafka", cluster.Kafka("3.9.1"))
	p.ours = startSide(t, "Barnabas", cluster.Barnabas)
	for _, s := range []*side{p.kafka, p.ours} {
		s.makeInternalTopics(t)
	}
	return p
}

// makeInternalTopics waits until both coordinators are at work.
func (s *side) makeInternalTopics(t *testing.T) {
	t.Helper()
	eventually(t, s.name+" has no coordinators", func() bool {
		group := kmsg.NewPtrDescribeGroupsRequest()
		group.Groups = []string{"any"}
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorKey = 1, "any" // from version 1 on, it is said of what kind
		do[*kmsg.FindCoordinatorResponse](t, s, find)
		find.CoordinatorType = 1
		do[*kmsg.FindCoordinatorResponse](t, s, find)
		begin := kmsg.NewPtrInitProducerIDRequest()
		begin.TransactionalID, begin.TransactionTimeoutMillis = kmsg.StringPtr("any"), 1000
		return do[*kmsg.DescribeGroupsResponse](t, s, group).Groups[0].ErrorCode == 0 && do[*kmsg.InitProducerIDResponse](t, s, begin).ErrorCode == 0
	})
}

// both asks both sides at once.
func (p *pair) both(req kmsg.Request) (kafka, ours answer) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		kafka = p.kafka.ask(req)
	}()
	ours = p.ours.ask(req)
	<-done
	return kafka, ours
}

// ask asks both and notes where their answers differ.
func (p *pair) ask(req kmsg.Request) {
	said, err := clone(req) // without what this version does not have
	require.NoError(p.t, err)
	what := fmt.Sprintf("%s v%d %s", kmsg.NameForKey(req.Key()), req.GetVersion(), text(said))
	p.story = append(p.story, what)
	p.compared[fmt.Sprintf("%s v%d", kmsg.NameForKey(req.Key()), req.GetVersion())]++
	kafka, ours := p.both(req)
	found := p.compare(kafka, ours)
	for until := time.Now().Add(settling); len(found) > 0 && onlyReads(req) && time.Now().Before(until); found = p.compare(kafka, ours) {
		time.Sleep(50 * time.Millisecond) // the pace of looking
		kafka, ours = p.both(req)
	}
	if len(found) > 0 {
		p.found = append(p.found, what+"\n    "+strings.Join(found, "\n    "))
	}
	p.settle(req)
}

func (p *pair) compare(kafka, ours answer) []string {
	switch {
	case kafka.broken != nil:
		p.ours.hangUp()
		return []string{"Kafka: " + kafka.broken.Error()}
	case ours.broken != nil:
		return []string{"Barnabas: " + ours.broken.Error()}
	case kafka.closed != ours.closed:
		return []string{fmt.Sprintf("closed the connection: Kafka %t, Barnabas %t", kafka.closed, ours.closed)}
	case kafka.resp == nil || ours.resp == nil:
		return nil
	}
	return differences("", p.kafka.normal(kafka.resp), p.ours.normal(ours.resp))
}

// onlyReads tells whether a request changes nothing, so that it may be asked again until what goes on in the background is done on both sides.
func onlyReads(req kmsg.Request) bool {
	switch r := req.(type) {
	case *kmsg.MetadataRequest:
		return r.Version >= 4 && !r.AllowAutoTopicCreation
	case *kmsg.FetchRequest:
		return r.SessionEpoch == -1 || r.Version < 7
	}
	return slices.Contains([]kmsg.Key{kmsg.ListOffsets, kmsg.OffsetFetch, kmsg.FindCoordinator, kmsg.DescribeGroups, kmsg.ListGroups, kmsg.ApiVersions, kmsg.OffsetForLeaderEpoch, kmsg.DescribeACLs, kmsg.DescribeConfigs,
		kmsg.DescribeLogDirs, kmsg.ListPartitionReassignments, kmsg.DescribeClientQuotas, kmsg.DescribeUserSCRAMCredentials, kmsg.DescribeCluster, kmsg.DescribeProducers, kmsg.DescribeTransactions, kmsg.ListTransactions}, kmsg.Key(req.Key()))
}

// settle waits until what a request set going in the background is done on both sides.
func (p *pair) settle(req kmsg.Request) {
	p.t.Helper()
	if _, moves := req.(*kmsg.AlterPartitionAssignmentsRequest); moves {
		defer p.awaitLeaderEpochs()
	}
	what := p.story[len(p.story)-1]
	for _, s := range []*side{p.kafka, p.ours} {
		switch req.(type) {
		case *kmsg.MetadataRequest, *kmsg.CreateTopicsRequest, *kmsg.DeleteTopicsRequest, *kmsg.CreatePartitionsRequest:
			eventually(p.t, s.name+" does not come to rest after "+what, func() bool { return s.topicsAreSettled(p.t) })
		case *kmsg.AlterPartitionAssignmentsRequest:
			eventually(p.t, s.name+" is not done with "+what, func() bool {
				return len(do[*kmsg.ListPartitionReassignmentsResponse](p.t, s, kmsg.NewPtrListPartitionReassignmentsRequest()).Topics) == 0
			})
		case *kmsg.InitProducerIDRequest, *kmsg.EndTxnRequest:
			eventually(p.t, s.name+" is not done with "+what, func() bool {
				list := kmsg.NewPtrListTransactionsRequest()
				list.StateFilters = []string{"PrepareCommit", "PrepareAbort", "PrepareEpochFence"}
				return len(do[*kmsg.ListTransactionsResponse](p.t, s, list).TransactionStates) == 0
			})
		}
	}
}

// awaitLeaderEpochs waits until both sides show the same leader epochs: the last one of a reassignment is told after it has left the list. Coordinators write epochs into markers, where they
// stay. If both do not come to the same, requests for metadata find it.
func (p *pair) awaitLeaderEpochs() {
	p.t.Helper()
	for until := time.Now().Add(settling); p.kafka.leaderEpochs(p.t) != p.ours.leaderEpochs(p.t) && time.Now().Before(until); {
		time.Sleep(5 * time.Millisecond) // the pace of looking
	}
}

// leaderEpochs are those of all partitions, in one text.
func (s *side) leaderEpochs(t *testing.T) string {
	t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.Topics = 12, nil
	epochs := map[string]int32{}
	for _, topic := range do[*kmsg.MetadataResponse](t, s, req).Topics {
		for _, p := range topic.Partitions {
			epochs[fmt.Sprintf("%s-%d", *topic.Topic, p.Partition)] = p.LeaderEpoch
		}
	}
	return text(epochs)
}

// topicsAreSettled tells whether a broker knows of the topics that ZooKeeper has, all of their partitions have leaders, and none waits to be deleted.
func (s *side) topicsAreSettled(t *testing.T) bool {
	t.Helper()
	results, err := s.tree.Do(lane.Patience(t), []zkstate.Op{zkstate.Children(zkstate.DeleteTopicsPath), zkstate.Children("/brokers/topics")})
	require.NoError(t, err)
	require.NoError(t, results[0].Err)
	require.NoError(t, results[1].Err)
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.Topics = 12, nil
	known := do[*kmsg.MetadataResponse](t, s, req).Topics
	if len(results[0].Children) > 0 || len(known) != len(results[1].Children) {
		return false
	}
	for _, topic := range known {
		if topic.ErrorCode != 0 || topic.Topic == nil || !slices.Contains(results[1].Children, *topic.Topic) || len(topic.Partitions) == 0 {
			return false
		}
		for _, partition := range topic.Partitions {
			if partition.ErrorCode != 0 || partition.Leader < 0 {
				return false
			}
		}
	}
	return true
}

// eventually asks again until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) { // the pace of looking
		if time.Now().After(until) {
			t.Fatal(what)
		}
	}
}
