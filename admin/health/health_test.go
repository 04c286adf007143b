package health

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/integration/purecore"
)

// whole is a cluster of three brokers in three racks in which all is well.
func whole() *cluster.Snapshot {
	brokers := []cluster.Broker{{ID: 1, Rack: "a"}, {ID: 2, Rack: "b"}, {ID: 3, Rack: "c"}}
	settings := map[string]string{"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1", "segment.bytes": "1073741824", "unclean.leader.election.enable": "false"}
	partition := func(id int32, replicas ...int32) cluster.Partition {
		return cluster.Partition{ID: id, Leader: replicas[0], LeaderAlive: true, Replicas: replicas, ISR: slices.Clone(replicas)}
	}
	orders := cluster.Topic{Name: "orders", ReplicationFactor: 3, MinISR: 2, Settings: settings, Partitions: []cluster.Partition{partition(0, 1, 2, 3), partition(1, 2, 3, 1), partition(2, 3, 1, 2)}}
	offsets := cluster.Topic{Name: "__consumer_offsets", ReplicationFactor: 3, MinISR: 2, Settings: map[string]string{"cleanup.policy": "compact"}, Partitions: []cluster.Partition{partition(0, 1, 2, 3)}}
	view := cluster.View{Controller: 1, Brokers: brokers}
	p := plan.Partition{Topic: "orders", ID: 0}
	return &cluster.Snapshot{
		Controller: 1, Brokers: brokers, Views: map[int32]cluster.View{1: view, 2: view, 3: view}, Topics: []cluster.Topic{offsets, orders}, Moves: cluster.Moves{},
		Dirs:   map[int32][]cluster.Dir{1: {{Path: "/d", Total: 100, Usable: 50}}},
		Groups: map[string][]cluster.GroupPartition{"g": {{Partition: p, Current: 5, End: 9}}}, Starts: map[plan.Partition]int64{p: 2},
	}
}

func rules(found []Finding) (names []string) {
	for _, f := range found {
		names = append(names, string(f.Severity)+" "+f.Rule)
	}
	return names
}

func TestAWholeClusterIsHealthyAndTheDoctorHasNothingToSay(t *testing.T) {
	found, counts := Doctor(whole(), "h:9092")
	assert.Empty(t, found)
	assert.True(t, Healthy(found))
	assert.Equal(t, Counts{Topics: 2, Partitions: 4}, counts)
}

// Each case breaks one thing; all findings are listed, since a trouble must not be told under a wrong name too.
func TestEachTroubleIsFound(t *testing.T) {
	const orders, offsets = 1, 0
	for name, c := range map[string]struct {
		damage  func(s *cluster.Snapshot)
		want    []string
		subject string
		command string
	}{
		"no controller":   {func(s *cluster.Snapshot) { s.Controller = -1 }, []string{"critical controller_missing"}, "cluster", "zookeeper-shell"},
		"two controllers": {func(s *cluster.Snapshot) { s.Views[2] = cluster.View{Controller: 2, Brokers: s.Brokers} }, []string{"critical controller_disagreement"}, "cluster", "zookeeper-shell"},
		"a silent broker": {func(s *cluster.Snapshot) {
			delete(s.Views, 3)
			s.Silent = map[int32]error{3: errors.New("connection refused")}
		}, []string{"critical broker_not_answering"}, "broker 3", "kafka-broker-api-versions"},
		"a broker that is gone": {func(s *cluster.Snapshot) {
			s.Brokers = s.Brokers[:2]
			for id := range s.Views {
				s.Views[id] = cluster.View{Controller: 1, Brokers: s.Brokers}
			}
			delete(s.Views, 3)
			for i := range s.Topics {
				for j := range s.Topics[i].Partitions {
					p := &s.Topics[i].Partitions[j]
					p.ISR = slices.DeleteFunc(p.ISR, func(id int32) bool { return id == 3 })
					if p.Leader == 3 {
						p.Leader = p.ISR[0]
					}
				}
			}
		}, []string{"critical broker_missing", "critical under_replicated_partitions", "warning leaders_not_preferred"}, "orders-2", "--broker-list 1,2"},
		"nobody leads": {func(s *cluster.Snapshot) {
			p := &s.Topics[orders].Partitions[1]
			p.Leader, p.LeaderAlive = -1, false
		}, []string{"critical offline_partitions"}, "orders-1", "--election-type unclean --topic orders --partition 1"},
		"out of sync":            {func(s *cluster.Snapshot) { s.Topics[orders].Partitions[0].ISR = []int32{1, 2} }, []string{"critical under_replicated_partitions"}, "orders-0", "--under-replicated-partitions"},
		"below the minimum":      {func(s *cluster.Snapshot) { s.Topics[orders].Partitions[0].ISR = []int32{1} }, []string{"critical under_min_isr_partitions", "critical under_replicated_partitions"}, "orders-0", "--under-min-isr-partitions"},
		"a directory out of use": {func(s *cluster.Snapshot) { s.Dirs[1][0].Err = kerr.KafkaStorageError }, []string{"critical failed_log_dirs"}, "broker 1:/d", "barnabas disk"},
		"leaders told differently": {func(s *cluster.Snapshot) {
			p := plan.Partition{Topic: "orders", ID: 0}
			for id, leader := range map[int32]int32{1: 1, 2: 1, 3: 2} {
				s.Views[id] = cluster.View{Controller: 1, Brokers: s.Brokers, Leaders: map[plan.Partition]cluster.Leadership{p: {Leader: leader}}}
			}
		}, []string{"critical metadata_disagreement"}, "orders-0", ""},
		"another leads":        {func(s *cluster.Snapshot) { s.Topics[orders].Partitions[0].Leader = 2 }, []string{"warning leaders_not_preferred"}, "orders-0", "--election-type preferred --all-topic-partitions"},
		"a move":               {func(s *cluster.Snapshot) { s.Moves = cluster.Moves{{Topic: "orders", ID: 0}: {}} }, []string{"note reassignments"}, "orders-0", "kafka-reassign-partitions --bootstrap-server h:9092 --list"},
		"a broker named twice": {func(s *cluster.Snapshot) { s.Topics[orders].Partitions[0].Replicas = []int32{1, 2, 2} }, []string{"critical duplicate_replicas"}, "orders-0", "--reassignment-json-file"},
		"a hanging transaction": {func(s *cluster.Snapshot) {
			h := cluster.OpenTransaction{Partition: plan.Partition{Topic: "orders", ID: 2}}
			h.CurrentTxnStartOffset = 77
			s.Hanging = []cluster.OpenTransaction{h}
		}, []string{"critical hanging_transactions"}, "orders-2", "abort --topic orders --partition 2 --start-offset 77"},
		"records deleted before they were read": {func(s *cluster.Snapshot) { s.Starts[plan.Partition{Topic: "orders", ID: 0}] = 6 }, []string{"warning offsets_before_start"}, "g orders-0", "group reset --bootstrap-server h:9092 --topic orders:0 --to-earliest g"},
		"a topic made anew":                     {func(s *cluster.Snapshot) { s.Groups["g"][0].End = 3 }, []string{"warning offsets_beyond_end"}, "g orders-0", "--to-latest g"},
		"a topic that is gone": {func(s *cluster.Snapshot) {
			s.Groups["g"][0].End, s.Groups["g"][0].Fault = -1, kerr.UnknownTopicOrPartition
			s.Starts = nil
		}, []string{"note offsets_of_missing_topics"}, "g orders-0", ""},
		"offsets that expire by time": {func(s *cluster.Snapshot) { s.Topics[offsets].Settings["cleanup.policy"] = "compact,delete" }, []string{"critical internal_topic_not_compacted"}, "__consumer_offsets", "--config cleanup.policy=compact __consumer_offsets"},
		"a rate left over": {func(s *cluster.Snapshot) {
			s.Throttles = map[int32][]cluster.Setting{2: {{Name: cluster.LeaderThrottleRate, Value: "1"}, {Name: cluster.FollowerThrottleRate, Value: "1"}}}
		}, []string{"warning leftover_throttles"}, "broker 2", "--entity-name 2 --delete-config leader.replication.throttled.rate,follower.replication.throttled.rate"},
		"throttled replicas left over": {func(s *cluster.Snapshot) {
			s.Topics[orders].Overrides = []cluster.Setting{{Name: cluster.LeaderThrottleReplicas, Value: "0:1"}}
		}, []string{"warning leftover_throttles"}, "orders", "topic alter --bootstrap-server h:9092 --delete-config leader.replication.throttled.replicas orders"},
		"one replica": {func(s *cluster.Snapshot) {
			t := &s.Topics[orders]
			t.ReplicationFactor, t.MinISR = 1, 1
			for i := range t.Partitions {
				t.Partitions[i].Replicas, t.Partitions[i].ISR = t.Partitions[i].Replicas[:1], t.Partitions[i].ISR[:1]
			}
		}, []string{"warning single_replica"}, "orders", "--replication-factor 3 orders"},
		"no room": {func(s *cluster.Snapshot) { s.Topics[orders].MinISR = 3 }, []string{"warning min_isr_leaves_no_room"}, "orders", "--config min.insync.replicas=2 orders"},
		"one rack": {func(s *cluster.Snapshot) {
			for i := range s.Brokers {
				s.Brokers[i].Rack = []string{"a", "a", "b"}[i]
			}
			s.Topics[orders].Partitions[0].Replicas, s.Topics[orders].Partitions[0].ISR = []int32{1, 2}, []int32{1, 2}
		}, []string{"warning one_rack"}, "orders", "--generate"},
		"uneven leaders": {func(s *cluster.Snapshot) {
			for i := int32(3); i < 40; i++ {
				s.Topics[orders].Partitions = append(s.Topics[orders].Partitions, cluster.Partition{ID: i, Leader: 1, LeaderAlive: true, Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2, 3}})
			}
		}, []string{"warning uneven_leaders"}, "broker 1 (39 of 41)", "--generate"},
		"a full disk":          {func(s *cluster.Snapshot) { s.Dirs[1][0].Usable = 14 }, []string{"warning disk_nearly_full"}, "broker 1:/d", "--by topic"},
		"retention in vain":    {func(s *cluster.Snapshot) { s.Topics[orders].Settings["retention.bytes"] = "8388608" }, []string{"note retention_below_segment"}, "orders", "--config segment.bytes=2097152 orders"},
		"hardly any retention": {func(s *cluster.Snapshot) { s.Topics[orders].Settings["retention.ms"] = "1000" }, []string{"warning retention_very_short"}, "orders", "--delete-config retention.ms orders"},
		"unclean elections":    {func(s *cluster.Snapshot) { s.Topics[orders].Settings["unclean.leader.election.enable"] = "true" }, []string{"warning unclean_elections"}, "orders", "=false orders"},
	} {
		t.Run(name, func(t *testing.T) {
			s := whole()
			c.damage(s)
			found, _ := Doctor(s, "h:9092")
			require.Equal(t, c.want, rules(found))
			assert.Contains(t, found[0].Subjects, c.subject)
			assert.Contains(t, strings.Join(found[0].Commands, "\n"), c.command)
			assert.Equal(t, !strings.HasPrefix(c.want[0], "critical"), Healthy(found))
			for _, f := range found {
				assert.NotEmpty(t, f.Advice, f.Rule)
			}
		})
	}
}

func TestThrottlesOfAMoveThatIsUnderWayAreInUse(t *testing.T) {
	s := whole()
	s.Throttles = map[int32][]cluster.Setting{2: {{Name: cluster.LeaderThrottleRate, Value: "1"}}}
	for _, moves := range []cluster.Moves{nil, {{Topic: "orders", ID: 0}: {}}} {
		s.Moves = moves
		found, _ := Doctor(s, "h:9092")
		assert.NotContains(t, rules(found), "warning leftover_throttles")
	}
}

func TestOneBrokerCannotHaveTwoReplicas(t *testing.T) {
	s := whole()
	s.Brokers = s.Brokers[:1]
	s.Views = map[int32]cluster.View{1: {Controller: 1, Brokers: s.Brokers}}
	s.Topics = []cluster.Topic{{Name: "t", ReplicationFactor: 1, MinISR: 1, Partitions: []cluster.Partition{{Leader: 1, LeaderAlive: true, Replicas: []int32{1}, ISR: []int32{1}}}}}
	s.Groups = nil
	found, _ := Doctor(s, "h:9092")
	assert.Empty(t, found)
}

func TestSettingsThatCouldNotBeReadAreNotJudged(t *testing.T) {
	s := whole()
	for i := range s.Topics {
		s.Topics[i].Settings, s.Topics[i].MinISR = nil, 0
	}
	found, _ := Doctor(s, "h:9092")
	assert.Empty(t, found)
}

func TestTopicsWithTooFewReplicasForTheirMinimumAreGivenMore(t *testing.T) {
	s := whole()
	s.Topics[1].Partitions, s.Topics[1].ReplicationFactor = []cluster.Partition{{Leader: 1, LeaderAlive: true, Replicas: []int32{1}, ISR: []int32{1}}}, 1
	found, _ := Doctor(s, "h:9092")
	require.Equal(t, []string{"critical under_min_isr_partitions", "warning single_replica"}, rules(found))
	assert.Contains(t, found[0].Commands, "barnabas topic alter --bootstrap-server h:9092 --replication-factor 2 orders")
}

func TestTheRulesTouchNothingOutside(t *testing.T) { purecore.Check(t, ".") }
