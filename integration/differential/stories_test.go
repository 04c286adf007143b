package differential

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/record"
)

// asked are the APIs of which requests are made at random. The others that Kafka advertises are between brokers: LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown, AlterPartition
// and AllocateProducerIds change the broker that the test asks.
var asked = []kmsg.Key{
	kmsg.Produce, kmsg.Fetch, kmsg.ListOffsets, kmsg.Metadata, kmsg.OffsetCommit, kmsg.OffsetFetch, kmsg.FindCoordinator, kmsg.JoinGroup, kmsg.Heartbeat, kmsg.LeaveGroup, kmsg.SyncGroup, kmsg.DescribeGroups,
	kmsg.ListGroups, kmsg.SASLHandshake, kmsg.ApiVersions, kmsg.CreateTopics, kmsg.DeleteTopics, kmsg.DeleteRecords, kmsg.InitProducerID, kmsg.OffsetForLeaderEpoch, kmsg.AddPartitionsToTxn, kmsg.AddOffsetsToTxn,
	kmsg.EndTxn, kmsg.WriteTxnMarkers, kmsg.TxnOffsetCommit, kmsg.DescribeACLs, kmsg.CreateACLs, kmsg.DeleteACLs, kmsg.DescribeConfigs, kmsg.AlterConfigs, kmsg.AlterReplicaLogDirs, kmsg.DescribeLogDirs,
	kmsg.SASLAuthenticate, kmsg.CreatePartitions, kmsg.CreateDelegationToken, kmsg.RenewDelegationToken, kmsg.ExpireDelegationToken, kmsg.DescribeDelegationToken, kmsg.DeleteGroups, kmsg.ElectLeaders,
	kmsg.IncrementalAlterConfigs, kmsg.AlterPartitionAssignments, kmsg.ListPartitionReassignments, kmsg.OffsetDelete, kmsg.DescribeClientQuotas, kmsg.AlterClientQuotas, kmsg.DescribeUserSCRAMCredentials,
	kmsg.AlterUserSCRAMCredentials, kmsg.UpdateFeatures, kmsg.DescribeCluster, kmsg.DescribeProducers, kmsg.DescribeTransactions, kmsg.ListTransactions, kmsg.ConsumerGroupHeartbeat, kmsg.ConsumerGroupDescribe,
}

// story is some requests in an order that makes sense.
type story func(g *generator, ask func(kmsg.Request))

var stories = []story{groupLife, staticMember, transaction, idempotence, topicLife, recordsAndOffsets, settingsOfTopics, settingsOfBrokers, quotas, credentials, accessLists}

// beginning makes what each seed's requests are about.
func beginning(g *generator, ask func(kmsg.Request)) {
	req := g.next(kmsg.CreateTopics).(*kmsg.CreateTopicsRequest)
	req.TimeoutMillis = 60_000
	for _, name := range []string{orders, events, configs} {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = g.name(name), 1, 1
		if name == orders {
			t.NumPartitions = 3
		}
		req.Topics = append(req.Topics, t)
	}
	ask(req)
	for p := range 2 {
		ask(produceTo(g, g.name(orders), int32(p), nil, g.batch(nil, 3)))
	}
	ask(produceTo(g, g.name(events), 0, nil, g.batch(nil, 3)))
	for _, group := range []string{"g1", "g2", "g3", "static"} {
		commit := g.next(kmsg.OffsetCommit).(*kmsg.OffsetCommitRequest)
		commit.SetVersion(max(commit.Version, 2))
		commit.Group, commit.Generation = g.name(group), -1
		t := kmsg.NewOffsetCommitRequestTopic()
		t.Topic, t.Partitions = g.name(events), []kmsg.OffsetCommitRequestTopicPartition{kmsg.NewOffsetCommitRequestTopicPartition()}
		commit.Topics = append(commit.Topics, t)
		ask(commit)
	}
}

// produceTo is a request that can hold a batch of today's.
func produceTo(g *generator, topic string, partition int32, transaction *string, batch []byte) *kmsg.ProduceRequest {
	req := g.next(kmsg.Produce).(*kmsg.ProduceRequest)
	req.SetVersion(max(req.Version, 7))
	req.Acks, req.TimeoutMillis, req.TransactionID = -1, 30_000, transaction
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, batch
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// groupLife is a member that joins, is told to come with its id, leads, commits, and leaves, now and then with something wrong.
func groupLife(g *generator, ask func(kmsg.Request)) {
	group := pick(g, g.name("g1"), g.name("g2"))
	member := memberSymbol(group)
	leave(g, ask, group, member, nil)
	for range 2 {
		join := g.next(kmsg.JoinGroup).(*kmsg.JoinGroupRequest)
		join.Group, join.MemberID, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis, join.ProtocolType = group, member, 600_000, 600_000, "consumer"
		if g.chance(2) {
			join.MemberID = ""
			leave(g, ask, group, member, nil)
		}
		for _, name := range []string{"range", "roundrobin"} {
			p := kmsg.NewJoinGroupRequestProtocol()
			p.Name, p.Metadata = name, subscription(g.name(orders))
			join.Protocols = append(join.Protocols, p)
		}
		ask(join)
		if join.MemberID == "" && join.Version >= 4 {
			join.MemberID = member
			ask(join)
		}
	}
	describe(g, ask, group)
	for range 3 {
		inGroup(g, ask, group, member, nil)
	}
	if g.chance(2) {
		leave(g, ask, group, member, nil)
	}
	describe(g, ask, group)
}

// staticMember is one that has a name of its own and is replaced by another of the same name.
func staticMember(g *generator, ask func(kmsg.Request)) {
	group, instance := g.name("static"), kmsg.StringPtr(g.name("instance"))
	for range 2 {
		join := g.next(kmsg.JoinGroup).(*kmsg.JoinGroupRequest)
		join.SetVersion(max(join.Version, 5))
		join.Group, join.InstanceID, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis, join.ProtocolType = group, instance, 600_000, 600_000, "consumer"
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = "range", subscription(g.name(pick(g, orders, events)))
		join.Protocols = append(join.Protocols, p)
		ask(join)
		inGroup(g, ask, group, memberSymbol(group), instance)
		inGroup(g, ask, group, pick(g, memberSymbol(group), "another"), instance)
	}
	if g.chance(2) {
		leave(g, ask, group, pick(g, memberSymbol(group), ""), instance)
	}
	describe(g, ask, group)
}

func subscription(topics ...string) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = topics
	return m.AppendTo(nil)
}

func leave(g *generator, ask func(kmsg.Request), group, member string, instance *string) {
	req := g.next(kmsg.LeaveGroup).(*kmsg.LeaveGroupRequest)
	req.Group, req.MemberID = group, member
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID, m.InstanceID = member, instance
	req.Members = append(req.Members, m)
	ask(req)
}

func describe(g *generator, ask func(kmsg.Request), group string) {
	req := g.next(kmsg.DescribeGroups).(*kmsg.DescribeGroupsRequest)
	req.Groups = []string{group}
	ask(req)
	ask(g.any(kmsg.ListGroups))
}

// inGroup is what members do: synchronize, beat, commit, and look what they have committed.
func inGroup(g *generator, ask func(kmsg.Request), group, member string, instance *string) {
	generation := pick(g, int32(generationSymbol), generationSymbol, generationSymbol, generationSymbol, generationSymbol-1, generationSymbol+1, -1)
	sync := g.next(kmsg.SyncGroup).(*kmsg.SyncGroupRequest)
	sync.Group, sync.MemberID, sync.InstanceID, sync.Generation, sync.ProtocolType, sync.Protocol = group, member, instance, generation, kmsg.StringPtr("consumer"), kmsg.StringPtr(pick(g, "range", "range", "range", "roundrobin"))
	a := kmsg.NewSyncGroupRequestGroupAssignment()
	a.MemberID, a.MemberAssignment = member, []byte("mine")
	sync.GroupAssignment = append(sync.GroupAssignment, a)
	ask(sync)
	beat := g.next(kmsg.Heartbeat).(*kmsg.HeartbeatRequest)
	beat.Group, beat.MemberID, beat.InstanceID, beat.Generation = group, member, instance, generation
	ask(beat)
	commit := g.any(kmsg.OffsetCommit).(*kmsg.OffsetCommitRequest)
	commit.Group, commit.MemberID, commit.InstanceID, commit.Generation = group, member, instance, generation
	ask(commit)
	fetch := g.any(kmsg.OffsetFetch).(*kmsg.OffsetFetchRequest)
	fetch.Group = group
	for i := range fetch.Groups {
		fetch.Groups[i].Group = group
	}
	ask(fetch)
	if g.chance(3) {
		deletion := g.any(kmsg.OffsetDelete).(*kmsg.OffsetDeleteRequest)
		deletion.Group = group
		ask(deletion)
	}
}

// transaction is one from its beginning to its end, sometimes by somebody fenced or in the wrong order.
func transaction(g *generator, ask func(kmsg.Request)) {
	id := pick(g, g.name("t1"), g.name("t2"))
	begin := g.next(kmsg.InitProducerID).(*kmsg.InitProducerIDRequest)
	begin.TransactionalID, begin.TransactionTimeoutMillis, begin.ProducerID, begin.ProducerEpoch = &id, 600_000, -1, -1
	ask(begin)
	if g.chance(4) {
		begin.SetVersion(max(begin.Version, 3))
		begin.ProducerID, begin.ProducerEpoch = producerSymbol, pick(g, int16(epochSymbol), epochSymbol-1)
		ask(begin)
	}
	epoch := func() int16 {
		return pick(g, int16(epochSymbol), epochSymbol, epochSymbol, epochSymbol, epochSymbol, epochSymbol, epochSymbol-1, epochSymbol+1)
	}
	if !g.chance(5) {
		add := g.next(kmsg.AddPartitionsToTxn).(*kmsg.AddPartitionsToTxnRequest)
		add.SetVersion(min(add.Version, 3))
		add.TransactionalID, add.ProducerID, add.ProducerEpoch = id, producerSymbol, epoch()
		t := kmsg.NewAddPartitionsToTxnRequestTopic()
		t.Topic, t.Partitions = g.name(orders), []int32{0, 1}
		add.Topics = append(add.Topics, t)
		ask(add)
	}
	for sequence := range 1 + g.r.IntN(2) {
		who := &record.Producer{ID: producerSymbol, Epoch: epoch(), BaseSequence: int32(sequence), Transactional: true}
		ask(produceTo(g, g.name(orders), 0, &id, g.batch(who, 1)))
	}
	verify := g.next(kmsg.AddPartitionsToTxn).(*kmsg.AddPartitionsToTxnRequest)
	verify.SetVersion(max(verify.Version, 4))
	v := kmsg.NewAddPartitionsToTxnRequestTransaction()
	v.TransactionalID, v.ProducerID, v.ProducerEpoch, v.VerifyOnly = id, producerSymbol, epoch(), g.chance(2)
	t := kmsg.NewAddPartitionsToTxnRequestTransactionTopic()
	t.Topic, t.Partitions = g.name(orders), []int32{0, 2}
	v.Topics = append(v.Topics, t)
	verify.Transactions = append(verify.Transactions, v)
	ask(verify)
	if g.chance(2) {
		offsets := g.next(kmsg.AddOffsetsToTxn).(*kmsg.AddOffsetsToTxnRequest)
		offsets.TransactionalID, offsets.ProducerID, offsets.ProducerEpoch, offsets.Group = id, producerSymbol, epoch(), g.name("g3")
		ask(offsets)
		commit := g.any(kmsg.TxnOffsetCommit).(*kmsg.TxnOffsetCommitRequest)
		commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group, commit.MemberID, commit.InstanceID, commit.Generation = id, producerSymbol, epoch(), g.name("g3"), "", nil, -1
		ask(commit)
		fetch := g.any(kmsg.OffsetFetch).(*kmsg.OffsetFetchRequest)
		fetch.Group = g.name("g3")
		for i := range fetch.Groups {
			fetch.Groups[i].Group = g.name("g3")
		}
		ask(fetch)
	}
	look(g, ask, id)
	end := g.next(kmsg.EndTxn).(*kmsg.EndTxnRequest)
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = id, producerSymbol, epoch(), g.chance(2)
	ask(end)
	if g.chance(2) {
		end.Commit = g.chance(2)
		ask(end)
	}
	look(g, ask, id)
}

// look asks for what transactions leave to be seen.
func look(g *generator, ask func(kmsg.Request), id string) {
	t := g.next(kmsg.DescribeTransactions).(*kmsg.DescribeTransactionsRequest)
	t.TransactionalIDs = []string{id}
	ask(t)
	ask(g.any(kmsg.ListTransactions))
	ask(g.any(kmsg.DescribeProducers))
	ask(g.any(kmsg.ListOffsets))
	ask(g.any(kmsg.Fetch))
}

// idempotence is a producer whose sequence has gaps, repetitions and old epochs.
func idempotence(g *generator, ask func(kmsg.Request)) {
	begin := g.next(kmsg.InitProducerID).(*kmsg.InitProducerIDRequest)
	begin.TransactionTimeoutMillis, begin.ProducerID, begin.ProducerEpoch = 600_000, -1, -1
	ask(begin)
	sequence := int32(0)
	for range 6 {
		who := &record.Producer{ID: producerSymbol, Epoch: pick(g, int16(epochSymbol), epochSymbol, epochSymbol, epochSymbol+1, epochSymbol-1), BaseSequence: sequence + pick(g, int32(0), 0, 0, 0, 1, -1, 100)}
		if who.BaseSequence < 0 {
			who.BaseSequence = 0
		}
		n := 1 + g.r.IntN(2)
		ask(produceTo(g, g.name(events), 0, nil, g.batch(who, n)))
		sequence += int32(n)
	}
	ask(g.any(kmsg.DescribeProducers))
}

// topicLife creates, enlarges, asks after and deletes topics.
func topicLife(g *generator, ask func(kmsg.Request)) {
	for _, key := range []kmsg.Key{kmsg.CreateTopics, kmsg.CreateTopics, kmsg.Metadata, kmsg.CreatePartitions, kmsg.CreatePartitions, kmsg.DescribeConfigs, kmsg.ElectLeaders, kmsg.AlterPartitionAssignments, kmsg.ListPartitionReassignments,
		kmsg.DescribeLogDirs, kmsg.DeleteTopics, kmsg.Metadata} {
		ask(g.any(key))
	}
	if g.chance(2) {
		return
	}
	made := g.next(kmsg.CreateTopics).(*kmsg.CreateTopicsRequest)
	made.TimeoutMillis = 60_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = g.once("topic"), -1, -1
	for p := range 2 {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(p), []int32{1}
		t.ReplicaAssignment = append(t.ReplicaAssignment, a)
	}
	for _, c := range [][2]string{{"message.timestamp.type", pick(g, "CreateTime", "CreateTime", "LogAppendTime")}, {"max.message.bytes", pick(g, "100", "100000")}, {"cleanup.policy", pick(g, "compact", "delete")}} {
		e := kmsg.NewCreateTopicsRequestTopicConfig()
		e.Name, e.Value = c[0], kmsg.StringPtr(c[1])
		if c[1] != "LogAppendTime" { // which would make times part of the answers
			t.Configs = append(t.Configs, e)
		}
	}
	made.Topics = append(made.Topics, t)
	ask(made)
	for range 3 {
		req := g.any(kmsg.Produce).(*kmsg.ProduceRequest)
		for i := range req.Topics {
			req.Topics[i].Topic = t.Topic
		}
		ask(req)
	}
	for _, key := range []kmsg.Key{kmsg.Fetch, kmsg.ListOffsets, kmsg.DeleteRecords, kmsg.ListOffsets} {
		req := g.any(key)
		switch r := req.(type) {
		case *kmsg.FetchRequest:
			r.SetVersion(min(r.Version, 12))
			for i := range r.Topics {
				r.Topics[i].Topic = t.Topic
			}
		case *kmsg.ListOffsetsRequest:
			for i := range r.Topics {
				r.Topics[i].Topic = t.Topic
			}
		case *kmsg.DeleteRecordsRequest:
			for i := range r.Topics {
				r.Topics[i].Topic = t.Topic
			}
		}
		ask(req)
	}
}

// recordsAndOffsets writes records, takes some away, and asks what there is.
func recordsAndOffsets(g *generator, ask func(kmsg.Request)) {
	for range 2 {
		for _, key := range []kmsg.Key{kmsg.Produce, kmsg.Produce, kmsg.Fetch, kmsg.ListOffsets, kmsg.OffsetForLeaderEpoch, kmsg.DeleteRecords, kmsg.ListOffsets, kmsg.Fetch} {
			ask(g.any(key))
		}
	}
}

func settingsOfTopics(g *generator, ask func(kmsg.Request)) {
	for range 4 {
		ask(g.any(kmsg.IncrementalAlterConfigs))
		req := g.next(kmsg.DescribeConfigs).(*kmsg.DescribeConfigsRequest)
		req.IncludeSynonyms = g.chance(2)
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, g.name(configs)
		req.Resources = append(req.Resources, r)
		ask(req)
	}
	ask(g.any(kmsg.AlterConfigs))
	ask(g.any(kmsg.DescribeConfigs))
}

func settingsOfBrokers(g *generator, ask func(kmsg.Request)) {
	for range 3 {
		req := g.any(kmsg.IncrementalAlterConfigs).(*kmsg.IncrementalAlterConfigsRequest)
		for i := range req.Resources {
			req.Resources[i].ResourceType, req.Resources[i].ResourceName = kmsg.ConfigResourceTypeBroker, pick(g, "", "1")
		}
		ask(req)
		for _, name := range []string{"", "1"} {
			req := g.next(kmsg.DescribeConfigs).(*kmsg.DescribeConfigsRequest)
			req.IncludeSynonyms = g.chance(2)
			r := kmsg.NewDescribeConfigsRequestResource()
			r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeBroker, name
			req.Resources = append(req.Resources, r)
			ask(req)
		}
	}
}

func quotas(g *generator, ask func(kmsg.Request)) {
	for range 4 {
		ask(g.any(kmsg.AlterClientQuotas))
		ask(g.any(kmsg.DescribeClientQuotas))
	}
	all := g.next(kmsg.DescribeClientQuotas).(*kmsg.DescribeClientQuotasRequest)
	ask(all)
}

func credentials(g *generator, ask func(kmsg.Request)) {
	for range 3 {
		ask(g.any(kmsg.AlterUserSCRAMCredentials))
		ask(g.any(kmsg.DescribeUserSCRAMCredentials))
	}
	ask(g.next(kmsg.DescribeUserSCRAMCredentials))
}

func accessLists(g *generator, ask func(kmsg.Request)) {
	for range 3 {
		ask(g.any(kmsg.CreateACLs))
		ask(g.any(kmsg.DescribeACLs))
	}
	deletion := g.any(kmsg.DeleteACLs).(*kmsg.DeleteACLsRequest)
	for i := range deletion.Filters {
		deletion.Filters[i].Principal = kmsg.StringPtr("User:" + g.name("alice"))
	}
	ask(deletion)
	ask(g.any(kmsg.DescribeACLs))
}

// tell is all that one seed asks: stories, with anything at all between them.
func tell(g *generator, requests int, ask func(kmsg.Request)) {
	n := 0
	count := func(req kmsg.Request) {
		n++
		ask(req)
	}
	beginning(g, count)
	for at := g.seed; n < requests; at++ {
		stories[at%len(stories)](g, count)
		for range 12 {
			count(g.any(pick(g, asked...)))
		}
	}
}
