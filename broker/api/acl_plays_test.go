package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/acl"
	"barnabas/broker/record"
	"barnabas/broker/txn"
)

// What one client is told under several sets of access lists. Each scene sets them,
// and then asks everything again: who may not do a thing is told so, is told
// nothing, or is not told that the topic exists, and that is a matter of each API.

// aclPlays by name; root may do everything.
var aclPlays = map[string]aclScript{
	"enforced": {settings: []string{authorizerOn, superUsers}, play: enforcedPlay},
	"unlisted": {settings: []string{authorizerOn, superUsers, "allow.everyone.if.no.acl.found=true"}, play: unlistedPlay},
	"disabled": {play: disabledPlay},
	"tokens":   {settings: []string{authorizerOn, superUsers, tokensOn}, play: tokensPlay},
}

const (
	authorizerOn = "authorizer.class.name=kafka.security.authorizer.AclAuthorizer"
	superUsers   = "super.users=User:ANONYMOUS;User:nobody"
	tokensOn     = "delegation.token.secret.key=secret"
)

type aclScript struct {
	settings []string // of the broker
	play     func(*aclStage)
}

// anyACL chooses every access list.
var anyACL = acl.Filter{Resource: kmsg.ACLResourceTypeAny, Type: kmsg.ACLResourcePatternTypeAny, Operation: kmsg.ACLOperationAny, Permission: kmsg.ACLPermissionTypeAny}

// disabledPlay asks a broker without an authorizer.
func disabledPlay(p *aclStage) {
	one := acl.Filter{Resource: kmsg.ACLResourceTypeTopic, Name: kmsg.StringPtr("one"), Type: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationAny, Permission: kmsg.ACLPermissionTypeAny}
	for version := range int16(4) {
		p.ask("alice", version, describeACLsOf(one))
		p.ask("alice", version, deleteACLsOf(one, one))
		p.ask("alice", version, deleteACLsOf())
		b := acl.Binding{Pattern: literal(kmsg.ACLResourceTypeTopic, "one"), Entry: acl.Entry{Principal: "nobody", Host: "*", Operation: kmsg.ACLOperationRead, Permission: kmsg.ACLPermissionTypeAllow}}
		p.ask("alice", version, createACLsOf(b, b))
		p.ask("alice", version, createACLsOf())
	}
	p.groups()
	p.metadata(true)
	p.say("there are no tokens")
	p.everyTokenAPI("alice", []byte("hmac"))
}

// unlistedPlay asks where everybody may what no list concerns.
func unlistedPlay(p *aclStage) {
	ask := func() {
		p.metadata(true)
		p.records()
		p.ask("alice", 4, kmsg.NewPtrInitProducerIDRequest())
	}
	p.say("nothing is listed")
	ask()
	p.say("one topic is listed, for another client, and may be read by all")
	p.allow("bob", "*", kmsg.ACLOperationRead, literal(kmsg.ACLResourceTypeTopic, "one"))
	p.allow("*", "*", kmsg.ACLOperationRead, prefixed(kmsg.ACLResourceTypeTopic, "tw"))
	ask()
	p.say("writing is denied everywhere, the cluster is listed")
	p.deny("alice", "*", kmsg.ACLOperationWrite, literal(kmsg.ACLResourceTypeTopic, "*"))
	p.allow("bob", "*", kmsg.ACLOperationDescribe, literal(kmsg.ACLResourceTypeCluster, acl.ClusterName))
	ask()
	p.ask("root", 3, deleteACLsOf(anyACL))
}

// enforcedPlay asks everything under several sets of lists.
func enforcedPlay(p *aclStage) {
	p.say("the lists themselves")
	p.lists()

	p.say("nothing is allowed")
	p.everything(false)

	p.say("a topic, a group and a transaction may be described")
	p.allow("alice", "127.0.0.1", kmsg.ACLOperationDescribe, literal(kmsg.ACLResourceTypeTopic, "one"))
	p.allow("alice", "*", kmsg.ACLOperationDescribe, literal(kmsg.ACLResourceTypeGroup, "g"))
	p.allow("alice", "*", kmsg.ACLOperationDescribe, literal(kmsg.ACLResourceTypeTransactionalId, "t1"))
	p.everything(false)

	p.say("reading one topic, writing those that begin with tw")
	p.allow("alice", "*", kmsg.ACLOperationRead, literal(kmsg.ACLResourceTypeTopic, "one"))
	p.allow("alice", "*", kmsg.ACLOperationWrite, prefixed(kmsg.ACLResourceTypeTopic, "tw"))
	p.allow("alice", "*", kmsg.ACLOperationCreate, prefixed(kmsg.ACLResourceTypeTopic, "pre-"))
	p.allow("alice", "*", kmsg.ACLOperationRead, prefixed(kmsg.ACLResourceTypeGroup, "g"))
	p.allow("alice", "*", kmsg.ACLOperationWrite, literal(kmsg.ACLResourceTypeTransactionalId, "t1"))
	p.everything(false)

	p.say("settings, and deleting")
	p.allow("*", "*", kmsg.ACLOperationAlterConfigs, literal(kmsg.ACLResourceTypeTopic, "one"))
	p.allow("alice", "*", kmsg.ACLOperationDescribeConfigs, prefixed(kmsg.ACLResourceTypeTopic, "pre-"))
	p.allow("alice", "*", kmsg.ACLOperationDelete, literal(kmsg.ACLResourceTypeGroup, "g"))
	p.allow("alice", "*", kmsg.ACLOperationAlter, literal(kmsg.ACLResourceTypeTopic, "two"))
	p.everything(false)

	p.say("everything on every topic, but not writing here and reading there, and not from another host")
	p.allow("alice", "*", kmsg.ACLOperationAll, literal(kmsg.ACLResourceTypeTopic, "*"))
	p.allow("alice", "*", kmsg.ACLOperationAll, literal(kmsg.ACLResourceTypeGroup, "*"))
	p.deny("*", "*", kmsg.ACLOperationWrite, prefixed(kmsg.ACLResourceTypeTopic, "tw"))
	p.deny("alice", "127.0.0.1", kmsg.ACLOperationRead, literal(kmsg.ACLResourceTypeTopic, "one"))
	p.deny("alice", "*", kmsg.ACLOperationDelete, literal(kmsg.ACLResourceTypeTopic, "one"))
	p.deny("alice", "10.9.8.7", kmsg.ACLOperationAll, literal(kmsg.ACLResourceTypeTopic, "two"))
	p.everything(false)

	p.say("rights on the cluster alone")
	p.ask("root", 3, deleteACLsOf(anyACL))
	for _, op := range []kmsg.ACLOperation{kmsg.ACLOperationDescribe, kmsg.ACLOperationCreate, kmsg.ACLOperationAlterConfigs, kmsg.ACLOperationIdempotentWrite} {
		p.allow("alice", "*", op, literal(kmsg.ACLResourceTypeCluster, acl.ClusterName))
	}
	p.everything(true)

	p.say("what could be written to somewhere")
	p.ask("root", 3, deleteACLsOf(anyACL))
	init := func() { p.ask("alice", 4, kmsg.NewPtrInitProducerIDRequest()) }
	p.allow("alice", "*", kmsg.ACLOperationWrite, prefixed(kmsg.ACLResourceTypeTopic, "w"))
	init()
	p.deny("alice", "*", kmsg.ACLOperationWrite, prefixed(kmsg.ACLResourceTypeTopic, "w"))
	init()
	p.allow("alice", "*", kmsg.ACLOperationAll, literal(kmsg.ACLResourceTypeTopic, "wide"))
	init()
	p.allow("*", "*", kmsg.ACLOperationWrite, literal(kmsg.ACLResourceTypeTopic, "narrow"))
	init()
	p.deny("*", "127.0.0.1", kmsg.ACLOperationAll, literal(kmsg.ACLResourceTypeTopic, "*"))
	init()
	p.ask("root", 3, deleteACLsOf(anyACL))
}

func literal(resource kmsg.ACLResourceType, name string) acl.Pattern {
	return acl.Pattern{Resource: resource, Name: name, Type: kmsg.ACLResourcePatternTypeLiteral}
}

func prefixed(resource kmsg.ACLResourceType, name string) acl.Pattern {
	return acl.Pattern{Resource: resource, Name: name, Type: kmsg.ACLResourcePatternTypePrefixed}
}

func (p *aclStage) allow(user, host string, op kmsg.ACLOperation, on acl.Pattern) {
	p.ask("root", 3, createACLsOf(acl.Binding{Pattern: on, Entry: acl.Entry{Principal: "User:" + user, Host: host, Operation: op, Permission: kmsg.ACLPermissionTypeAllow}}))
}

func (p *aclStage) deny(user, host string, op kmsg.ACLOperation, on acl.Pattern) {
	p.ask("root", 3, createACLsOf(acl.Binding{Pattern: on, Entry: acl.Entry{Principal: "User:" + user, Host: host, Operation: op, Permission: kmsg.ACLPermissionTypeDeny}}))
}

func createACLsOf(bindings ...acl.Binding) *kmsg.CreateACLsRequest {
	req := kmsg.NewPtrCreateACLsRequest()
	for _, b := range bindings {
		c := kmsg.NewCreateACLsRequestCreation()
		c.ResourceType, c.ResourceName, c.ResourcePatternType = b.Resource, b.Name, b.Type
		c.Principal, c.Host, c.Operation, c.PermissionType = b.Principal, b.Host, b.Operation, b.Permission
		req.Creations = append(req.Creations, c)
	}
	return req
}

func deleteACLsOf(filters ...acl.Filter) *kmsg.DeleteACLsRequest {
	req := kmsg.NewPtrDeleteACLsRequest()
	for _, f := range filters {
		to := kmsg.NewDeleteACLsRequestFilter()
		to.ResourceType, to.ResourceName, to.ResourcePatternType = f.Resource, f.Name, f.Type
		to.Principal, to.Host, to.Operation, to.PermissionType = f.Principal, f.Host, f.Operation, f.Permission
		req.Filters = append(req.Filters, to)
	}
	return req
}

func describeACLsOf(f acl.Filter) *kmsg.DescribeACLsRequest {
	req := kmsg.NewPtrDescribeACLsRequest()
	req.ResourceType, req.ResourceName, req.ResourcePatternType = f.Resource, f.Name, f.Type
	req.Principal, req.Host, req.Operation, req.PermissionType = f.Principal, f.Host, f.Operation, f.Permission
	return req
}

// lists asks about access lists, good ones and bad ones, and leaves none behind.
func (p *aclStage) lists() {
	entry := func(principal, host string, op kmsg.ACLOperation, permission kmsg.ACLPermissionType) acl.Entry {
		return acl.Entry{Principal: principal, Host: host, Operation: op, Permission: permission}
	}
	reading := entry("User:bob", "*", kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAllow)
	topic := func(name string) acl.Binding {
		return acl.Binding{Pattern: literal(kmsg.ACLResourceTypeTopic, name), Entry: reading}
	}
	for version := range int16(4) {
		p.ask("root", version, createACLsOf(topic("one"), topic("one"), topic("*")))
	}
	p.ask("root", 1, createACLsOf(acl.Binding{Pattern: prefixed(kmsg.ACLResourceTypeTopic, "o"), Entry: reading}))
	p.ask("root", 3, createACLsOf(
		topic(""), topic("a/b"), topic("."),
		acl.Binding{Pattern: literal(kmsg.ACLResourceTypeCluster, "another"), Entry: reading},
		acl.Binding{Pattern: literal(kmsg.ACLResourceTypeCluster, acl.ClusterName), Entry: reading},
		acl.Binding{Pattern: literal(kmsg.ACLResourceTypeUser, "User:carol"), Entry: entry("User:bob", "*", kmsg.ACLOperationCreateTokens, kmsg.ACLPermissionTypeDeny)},
		acl.Binding{Pattern: literal(kmsg.ACLResourceTypeDelegationToken, "token"), Entry: entry("Group:a:b", "no host at all", kmsg.ACLOperationDescribe, kmsg.ACLPermissionTypeAllow)},
		acl.Binding{Pattern: literal(kmsg.ACLResourceTypeTopic, "three"), Entry: entry("nobody", "*", kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAllow)},
		acl.Binding{Pattern: literal(kmsg.ACLResourceTypeTopic, "four"), Entry: entry("User:ü", "*", kmsg.ACLOperationIdempotentWrite, kmsg.ACLPermissionTypeDeny)},
		acl.Binding{Pattern: literal(kmsg.ACLResourceTypeTopic, "five"), Entry: entry("User:bob", "*", 99, kmsg.ACLPermissionTypeDeny)},
		acl.Binding{Pattern: literal(99, "six"), Entry: reading},
		acl.Binding{Pattern: acl.Pattern{Resource: kmsg.ACLResourceTypeTopic, Name: "seven", Type: 99}, Entry: reading},
		acl.Binding{Pattern: literal(kmsg.ACLResourceTypeTopic, "eight"), Entry: entry("User:bob", "*", kmsg.ACLOperationRead, 99)},
	))
	for _, bad := range []acl.Binding{
		{Pattern: literal(kmsg.ACLResourceTypeAny, "one"), Entry: reading},
		{Pattern: acl.Pattern{Resource: kmsg.ACLResourceTypeTopic, Name: "one", Type: kmsg.ACLResourcePatternTypeMatch}, Entry: reading},
		{Pattern: acl.Pattern{Resource: kmsg.ACLResourceTypeTopic, Name: "one", Type: kmsg.ACLResourcePatternTypeAny}, Entry: reading},
		{Pattern: literal(kmsg.ACLResourceTypeTopic, "one"), Entry: entry("User:bob", "*", kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAllow)},
		{Pattern: literal(kmsg.ACLResourceTypeTopic, "one"), Entry: entry("User:bob", "*", kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAny)},
		{Pattern: literal(kmsg.ACLResourceTypeTopic, "one"), Entry: entry("User:bob", "*", 0, kmsg.ACLPermissionTypeAllow)},
	} {
		p.ask("root", 3, createACLsOf(topic("good"), bad))
	}
	all, one := anyACL, anyACL
	one.Resource, one.Name = kmsg.ACLResourceTypeTopic, kmsg.StringPtr("one")
	match, wrong, bobs, elsewhere, reads, unknown, strange := one, one, all, all, all, one, one
	match.Type = kmsg.ACLResourcePatternTypeMatch
	wrong.Type = kmsg.ACLResourcePatternTypePrefixed
	bobs.Principal = kmsg.StringPtr("User:bob")
	elsewhere.Host = kmsg.StringPtr("no host at all")
	reads.Operation, reads.Permission = kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAllow
	unknown.Type = 0
	strange.Type, strange.Operation = 99, 99
	for _, f := range []acl.Filter{all, one, match, wrong, bobs, elsewhere, reads, strange, unknown} {
		p.ask("root", 3, describeACLsOf(f))
	}
	literals := all
	literals.Type = kmsg.ACLResourcePatternTypeLiteral
	p.ask("root", 0, describeACLsOf(literals))
	p.ask("root", 1, describeACLsOf(all))
	p.ask("root", 3, deleteACLsOf(unknown))
	p.ask("root", 3, deleteACLsOf(strange))
	nothing := one
	nothing.Name = kmsg.StringPtr("nothing")
	p.ask("root", 3, deleteACLsOf(nothing))
	p.ask("root", 0, deleteACLsOf(elsewhere))
	p.ask("root", 3, deleteACLsOf(match, one))
	p.ask("root", 3, deleteACLsOf())
	p.ask("root", 2, deleteACLsOf(reads, all))
	p.ask("root", 3, describeACLsOf(all))
}

// everything asks what may be asked without changing what is asked next. With rights
// on the cluster, what then reaches the controller is left out.
func (p *aclStage) everything(cluster bool) {
	p.metadata(cluster)
	p.records()
	p.groups()
	p.transactions()
	p.configs()
	p.topics(cluster)
	if !cluster {
		p.brokers()
	}
}

func (p *aclStage) metadata(cluster bool) {
	names := func(create bool, topics ...string) *kmsg.MetadataRequest {
		req := kmsg.NewPtrMetadataRequest()
		req.AllowAutoTopicCreation, req.IncludeClusterAuthorizedOperations, req.IncludeTopicAuthorizedOperations = create, true, true
		for i := range topics {
			t := kmsg.NewMetadataRequestTopic()
			t.Topic = &topics[i]
			req.Topics = append(req.Topics, t)
		}
		return req
	}
	p.ask("alice", 9, names(false, "one", "two", "nope", offsetsTopic, "in valid"))
	p.ask("alice", 4, names(false, "one", "two", "nope"))
	p.ask("alice", 12, names(false))
	p.ask("alice", 0, names(false))
	if !cluster {
		p.ask("alice", 9, names(true, "auto-made"))
	}
	byID := kmsg.NewPtrMetadataRequest()
	for _, topic := range []string{"one", "two"} {
		t := kmsg.NewMetadataRequestTopic()
		t.TopicID = p.topicID(topic)
		byID.Topics = append(byID.Topics, t)
	}
	p.ask("alice", 12, byID)
	described := kmsg.NewPtrDescribeClusterRequest()
	described.IncludeClusterAuthorizedOperations = true
	p.ask("alice", 1, described)
}

func (p *aclStage) records() {
	produce := kmsg.NewPtrProduceRequest()
	produce.Acks, produce.TimeoutMillis = 1, 1000
	fetch := kmsg.NewPtrFetchRequest()
	fetch.MaxBytes, fetch.ReplicaID = 1000, -1
	offsets := kmsg.NewPtrListOffsetsRequest()
	offsets.ReplicaID = -1
	epochs := kmsg.NewPtrOffsetForLeaderEpochRequest()
	epochs.ReplicaID = -2
	remove := kmsg.NewPtrDeleteRecordsRequest()
	for _, topic := range []string{"one", "two", "nope"} {
		one := produceOne(1, topic, 0, oneBatch(p.t, "x"))
		produce.Topics = append(produce.Topics, one.Topics...)
		f := kmsg.NewFetchRequestTopic()
		f.Topic = topic
		fp := kmsg.NewFetchRequestTopicPartition()
		fp.Partition, fp.FetchOffset, fp.PartitionMaxBytes = 0, 1000, 100
		f.Partitions = append(f.Partitions, fp)
		fetch.Topics = append(fetch.Topics, f)
		o := kmsg.NewListOffsetsRequestTopic()
		o.Topic = topic
		op := kmsg.NewListOffsetsRequestTopicPartition()
		op.Timestamp, op.MaxNumOffsets = -2, 1
		o.Partitions = append(o.Partitions, op)
		offsets.Topics = append(offsets.Topics, o)
		e := kmsg.NewOffsetForLeaderEpochRequestTopic()
		e.Topic = topic
		ep := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		ep.CurrentLeaderEpoch = -1
		e.Partitions = append(e.Partitions, ep)
		epochs.Topics = append(epochs.Topics, e)
		d := kmsg.NewDeleteRecordsRequestTopic()
		d.Topic = topic
		d.Partitions = append(d.Partitions, kmsg.NewDeleteRecordsRequestTopicPartition())
		remove.Topics = append(remove.Topics, d)
	}
	p.ask("alice", 8, produce)
	p.ask("alice", 3, produce)
	p.ask("alice", 11, fetch)
	p.ask("alice", 4, fetch)
	follower := *fetch
	follower.ReplicaID = 7
	p.ask("alice", 12, &follower)
	fetch.Topics = fetch.Topics[:2]
	for i := range fetch.Topics {
		fetch.Topics[i].TopicID = p.topicID(fetch.Topics[i].Topic)
	}
	p.ask("alice", 13, fetch)
	p.ask("alice", 7, offsets)
	p.ask("alice", 0, offsets)
	p.ask("alice", 4, epochs)
	p.ask("alice", 2, remove)
}

func (p *aclStage) groups() {
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKey, find.CoordinatorKeys = "g", []string{"g", "h"}
	p.ask("alice", 3, find)
	p.ask("alice", 4, find)
	for _, group := range []string{"g", "h"} {
		join := joinOf(group, "", nil, "one")
		join.SessionTimeoutMillis = 0
		p.ask("alice", 0, join)
		p.ask("alice", 9, join)
		p.ask("alice", 5, syncOf(group, 1, "member", nil, nil))
		p.ask("alice", 4, heartbeatOf(group, 1, "member", nil))
		p.ask("alice", 2, leaveOf(group, "member", nil))
		p.ask("alice", 5, leaveOf(group, "member", nil))
		commit := commitOf(group, -1, "", nil, "one", 3)
		commit.Topics = append(commit.Topics, commitOf(group, -1, "", nil, "two", 4).Topics...)
		commit.Topics = append(commit.Topics, commitOf(group, -1, "", nil, "nope", 5).Topics...)
		p.ask("alice", 8, commit)
		for _, version := range []int16{1, 3, 7, 9} {
			p.ask("alice", version, fetchOf(version, group, "two", 0))
			p.ask("alice", version, fetchOf(version, group, "one", 0))
		}
		p.ask("alice", 9, fetchOf(9, group, ""))
		p.ask("alice", 7, fetchOf(7, group, ""))
		describe := describeOf(group)
		describe.IncludeAuthorizedOperations = true
		p.ask("alice", 5, describe)
	}
	p.ask("alice", 4, kmsg.NewPtrListGroupsRequest())
	p.ask("alice", 0, offsetDeleteOf("g", "nope", 0))
	p.ask("alice", 0, offsetDeleteOf("g", "two", 1))
	p.ask("alice", 2, deleteOf("gone", "hidden"))
}

func (p *aclStage) transactions() {
	nobody := txn.Producer{ID: 77_000, Epoch: 0}
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorType, find.CoordinatorKeys = transactionCoordinator, []string{"t1", "t2"}
	p.ask("alice", 4, find)
	p.ask("alice", 4, kmsg.NewPtrInitProducerIDRequest())
	for _, id := range []string{"t1", "t2"} {
		p.ask("alice", 4, initOf(id, 0, nil))
		p.ask("alice", 3, addOf(id, nobody, "two", 0))
		mixed := addOf(id, nobody, "two", 0)
		mixed.Topics = append(mixed.Topics, addOf(id, nobody, "one", 0).Topics...)
		mixed.Topics = append(mixed.Topics, addOf(id, nobody, offsetsTopic, 0).Topics...)
		p.ask("alice", 3, mixed)
		p.ask("alice", 3, addOffsetsOf(id, nobody, "g"))
		p.ask("alice", 3, addOffsetsOf(id, nobody, "h"))
		p.ask("alice", 3, endOf(id, nobody, true))
		commit := txnCommitOf(id, nobody, "h", "one", 1)
		p.ask("alice", 3, commit)
		commit = txnCommitOf(id, nobody, "g", "nope", 1)
		commit.Topics = append(commit.Topics, txnCommitOf(id, nobody, "g", "two", 1).Topics...)
		p.ask("alice", 3, commit)
		b := record.NewBuilder(record.BuilderOptions{Producer: &record.Producer{ID: nobody.ID, Transactional: true}})
		b.Append(goldenTime, nil, []byte("x"))
		batch, err := b.Build()
		if err != nil {
			p.t.Fatal(err)
		}
		produce := produceOne(1, "nope", 0, batch)
		produce.TransactionID = kmsg.StringPtr(id)
		p.ask("alice", 8, produce)
	}
	p.ask("alice", 0, producersOf("one", 0))
	p.ask("alice", 0, producersOf("nope", 0))
	p.ask("alice", 0, transactionsOf("t1", "t2"))
	p.ask("alice", 0, kmsg.NewPtrListTransactionsRequest())
}

func (p *aclStage) configs() {
	describe := kmsg.NewPtrDescribeConfigsRequest()
	for _, r := range []struct {
		kind      kmsg.ConfigResourceType
		name, key string
	}{
		{kmsg.ConfigResourceTypeTopic, "one", "cleanup.policy"}, {kmsg.ConfigResourceTypeTopic, "two", "cleanup.policy"},
		{kmsg.ConfigResourceTypeTopic, "nope", "cleanup.policy"}, {kmsg.ConfigResourceTypeBroker, "1", "background.threads"},
	} {
		to := kmsg.NewDescribeConfigsRequestResource()
		to.ResourceType, to.ResourceName, to.ConfigNames = r.kind, r.name, []string{r.key}
		describe.Resources = append(describe.Resources, to)
	}
	p.ask("alice", 1, describe)
	alter := kmsg.NewPtrAlterConfigsRequest()
	increment := kmsg.NewPtrIncrementalAlterConfigsRequest()
	alter.ValidateOnly, increment.ValidateOnly = true, true
	for _, topic := range []string{"one", "two"} {
		a := kmsg.NewAlterConfigsRequestResource()
		a.ResourceType, a.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		a.Configs = append(a.Configs, kmsg.AlterConfigsRequestResourceConfig{Name: "retention.ms", Value: kmsg.StringPtr("1000")})
		alter.Resources = append(alter.Resources, a)
		i := kmsg.NewIncrementalAlterConfigsRequestResource()
		i.ResourceType, i.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		i.Configs = append(i.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: "retention.ms", Value: kmsg.StringPtr("1000")})
		increment.Resources = append(increment.Resources, i)
	}
	broker := kmsg.NewIncrementalAlterConfigsRequestResource()
	broker.ResourceType, broker.ResourceName = kmsg.ConfigResourceTypeBroker, "1"
	broker.Configs = append(broker.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: "background.threads", Value: kmsg.StringPtr("11")})
	increment.Resources = append(increment.Resources, broker)
	p.ask("alice", 1, alter)
	p.ask("alice", 1, increment)
	p.ask("alice", 1, kmsg.NewPtrDescribeClientQuotasRequest())
	quotas := kmsg.NewPtrAlterClientQuotasRequest()
	quotas.ValidateOnly, quotas.Entries = true, append(quotas.Entries, quotaEntry("user=alice", setQuota("producer_byte_rate", 5)))
	p.ask("alice", 1, quotas)
	scram := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	scram.Users = append(scram.Users, kmsg.DescribeUserSCRAMCredentialsRequestUser{Name: "nobody"})
	p.ask("alice", 0, scram)
}

func (p *aclStage) topics(cluster bool) {
	create := kmsg.NewPtrCreateTopicsRequest()
	create.ValidateOnly, create.TimeoutMillis = true, 1000
	for _, topic := range []string{"made", "pre-made", "one", metadataTopic} {
		create.Topics = append(create.Topics, createTopic(topic, 1, 1, nil))
	}
	p.ask("alice", 7, create)
	p.ask("alice", 4, create)
	enlarge := kmsg.NewPtrCreatePartitionsRequest()
	enlarge.ValidateOnly, enlarge.TimeoutMillis = true, 1000
	for _, topic := range []string{"one", "two"} {
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = topic, 1
		enlarge.Topics = append(enlarge.Topics, t)
	}
	p.ask("alice", 3, enlarge)
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.TimeoutMillis, remove.TopicNames = 1000, []string{"nope", "one"}
	p.ask("alice", 5, remove)
	t := kmsg.NewDeleteTopicsRequestTopic()
	t.TopicID = p.topicID("one")
	remove.Topics = append(remove.Topics, t)
	p.ask("alice", 6, remove)
	if !cluster {
		elect := kmsg.NewPtrElectLeadersRequest()
		elect.TimeoutMillis = 1000
		for _, version := range []int16{0, 2} {
			elect.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "one", Partitions: []int32{0}}}
			p.ask("alice", version, elect)
		}
		elect.Topics = nil
		p.ask("alice", 2, elect)
	}
}

// brokers asks what only brokers and administrators may.
func (p *aclStage) brokers() {
	order := kmsg.NewPtrLeaderAndISRRequest()
	order.ControllerID, order.BrokerEpoch = 1, -1
	state := kmsg.NewLeaderAndISRRequestTopicState()
	state.Topic, state.TopicID = "one", p.topicID("one")
	state.PartitionStates = append(state.PartitionStates, kmsg.NewLeaderAndISRRequestTopicPartition())
	order.TopicStates = append(order.TopicStates, state)
	p.ask("alice", 4, order)
	p.ask("alice", 7, order)
	stop := kmsg.NewPtrStopReplicaRequest()
	stop.ControllerID, stop.BrokerEpoch = 1, -1
	stop.Topics = append(stop.Topics, kmsg.StopReplicaRequestTopic{Topic: "one", PartitionStates: []kmsg.StopReplicaRequestTopicPartitionState{{LeaderEpoch: 1}}})
	p.ask("alice", 3, stop)
	update := kmsg.NewPtrUpdateMetadataRequest()
	update.ControllerID, update.BrokerEpoch = 1, -1
	p.ask("alice", 8, update)
	shutdown := kmsg.NewPtrControlledShutdownRequest()
	shutdown.BrokerID = 9
	p.ask("alice", 3, shutdown)
	isr := kmsg.NewPtrAlterPartitionRequest()
	isr.BrokerID = 9
	p.ask("alice", 3, isr)
	p.ask("alice", 0, kmsg.NewPtrAllocateProducerIDsRequest())
	p.ask("alice", 1, markersOf("one", 0, txn.Producer{ID: 77_000}, 1, true))
	verify := kmsg.NewPtrAddPartitionsToTxnRequest()
	verify.Transactions = append(verify.Transactions, verifyOf("t1", txn.Producer{ID: 77_000}, true, "one", 0))
	p.ask("alice", 4, verify)

	move := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	move.TimeoutMillis = 1000
	move.Topics = append(move.Topics, kmsg.AlterPartitionAssignmentsRequestTopic{Topic: "one", Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Replicas: []int32{1}}}})
	p.ask("alice", 0, move)
	moves := kmsg.NewPtrListPartitionReassignmentsRequest()
	moves.TimeoutMillis = 1000
	p.ask("alice", 0, moves)
	dirs := kmsg.NewPtrAlterReplicaLogDirsRequest()
	dirs.Dirs = append(dirs.Dirs, kmsg.AlterReplicaLogDirsRequestDir{Dir: "/nowhere", Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: "one", Partitions: []int32{0}}}})
	p.ask("alice", 2, dirs)
	p.ask("alice", 1, kmsg.NewPtrDescribeLogDirsRequest())
	p.ask("alice", 4, kmsg.NewPtrDescribeLogDirsRequest())
	scram := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	scram.Deletions = append(scram.Deletions, kmsg.AlterUserSCRAMCredentialsRequestDeletion{Name: "nobody", Mechanism: int8(admin.ScramSHA256)})
	p.ask("alice", 0, scram)

	for _, version := range []int16{1, 3} {
		p.ask("alice", version, describeACLsOf(anyACL))
		p.ask("alice", version, deleteACLsOf(anyACL, anyACL))
		p.ask("alice", version, createACLsOf(acl.Binding{Pattern: literal(kmsg.ACLResourceTypeTopic, "one"),
			Entry: acl.Entry{Principal: "User:alice", Host: "*", Operation: kmsg.ACLOperationRead, Permission: kmsg.ACLPermissionTypeAllow}}))
	}
}
