package admin_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	. "barnabas/admin"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

func TestAgainstAServer(t *testing.T) {
	zktest.Each(t, func(t *testing.T, srv zktest.Server) {
		for _, b := range behaviours {
			t.Run(b.name, func(t *testing.T) {
				a, zk := newAdmin(t, srv.Addr()+"/"+b.name, nil)
				b.show(t, a, zk)
			})
		}
	})
}

var behaviours = []struct {
	name string
	show func(t *testing.T, a *Admin, zk *zkstate.Client)
}{
	{"ATopicIsWrittenAsKafkaWritesIt", aTopicIsWrittenAsKafkaWritesIt},
	{"OfManyWhoCreateOneTopicExactlyOneSucceeds", ofManyWhoCreateOneTopicExactlyOneSucceeds},
	{"ValidatingWritesNothing", validatingWritesNothing},
	{"APermitIsAskedForWhatIsAboutToBeWritten", aPermitIsAskedForWhatIsAboutToBeWritten},
	{"ATopicMarkedForDeletionIsLeftAlone", aTopicMarkedForDeletionIsLeftAlone},
	{"ATopicBeingReassignedIsNotEnlarged", aTopicBeingReassignedIsNotEnlarged},
	{"NewPartitionsContinueTheRound", newPartitionsContinueTheRound},
	{"QuotasAreWrittenAsKafkaWritesThemAndRemovedWhenEmpty", quotasAreWritten},
	{"BadQuotasAreRefused", badQuotasAreRefused},
	{"CredentialsAreSetDescribedAndDeleted", credentialsAreSetDescribedAndDeleted},
	{"ChangesThatNoTopicCouldHaveAreRefusedFirst", changesThatNoTopicCouldHaveAreRefusedFirst},
	{"AnUnreadableRegistrationIsNoBroker", anUnreadableRegistrationIsNoBroker},
	{"ATopicWithoutALeftoverConfigurationAndOneWithIt", aLeftoverConfigurationIsReplaced},
	{"AccessListsAreWrittenAsKafkaWritesThem", accessListsAreWrittenAsKafkaWritesThem},
	{"WhatChangesNothingTellsNobody", whatChangesNothingTellsNobody},
	{"BrokersThatChangeOneListKeepEachOthersEntries", brokersThatChangeOneListKeepEachOthersEntries},
	{"WhatAnotherBrokerTellsIsReadAgain", whatAnotherBrokerTellsIsReadAgain},
	{"AccessListsThatCannotBeReadAreNoReasonToLetEverybodyIn", accessListsThatCannotBeReadAreNoReasonToLetEverybodyIn},
	{"BadAccessListsAreRefusedOneByOne", badAccessListsAreRefusedOneByOne},
}

func data(t *testing.T, zk *zkstate.Client, path string) string {
	t.Helper()
	r, err := zk.One(context.Background(), zkstate.Get(path))
	require.NoError(t, err, path)
	return string(r.Data)
}

func missing(t *testing.T, zk *zkstate.Client, path string) {
	t.Helper()
	_, err := zk.One(context.Background(), zkstate.Exists(path))
	assert.ErrorIs(t, err, zkstate.ErrNoNode, path)
}

func manual(name string, replicas ...int32) TopicSpec {
	return TopicSpec{Name: name, Partitions: -1, ReplicationFactor: -1, Assignment: map[int32][]int32{0: replicas}}
}

func one(results []TopicResult) error { return results[0].Err }

func aTopicIsWrittenAsKafkaWritesIt(t *testing.T, a *Admin, zk *zkstate.Client) {
	spec := manual("clicks", 2)
	spec.Assignment[1] = []int32{3}
	spec.Configs = []ConfigEntry{{"segment.bytes", ptr("1048576")}, {"cleanup.policy", ptr("compact")}}
	r := a.CreateTopics(context.Background(), []TopicSpec{spec}, false)[0]
	require.NoError(t, r.Err)
	// As in the tree of a real cluster, but for the id.
	assert.Equal(t, fmt.Sprintf(`{"partitions":{"0":[2],"1":[3]},"topic_id":"%s","adding_replicas":{},"removing_replicas":{},"version":3}`,
		zkstate.TopicID(r.ID)), data(t, zk, "/brokers/topics/clicks"))
	assert.Equal(t, `{"version":1,"config":{"cleanup.policy":"compact","segment.bytes":"1048576"}}`, data(t, zk, "/config/topics/clicks"))
	missing(t, zk, "/config/changes/config_change_0000000000")
	require.NoError(t, a.IncrementalAlterConfigs(context.Background(), []IncrementalSpec{{Resource: Resource{ResourceTopic, "clicks"},
		Ops: []ConfigOp{{"retention.ms", OpSet, ptr("7200000")}}}}, false)[0].Err)
	assert.Equal(t, `{"version":2,"entity_path":"topics/clicks"}`, data(t, zk, "/config/changes/config_change_0000000000"))
}

// BR-044: one node of junk must not keep everybody from creating topics.
func anUnreadableRegistrationIsNoBroker(t *testing.T, a *Admin, zk *zkstate.Client) {
	before, err := a.Brokers(context.Background())
	require.NoError(t, err)
	for i, junk := range []string{"", "{", "null", "42"} {
		_, err := zk.One(context.Background(), zkstate.Create(zkstate.BrokerIDPath(int32(50+i)), []byte(junk)))
		require.NoError(t, err)
	}
	after, err := a.Brokers(context.Background())
	require.NoError(t, err)
	assert.Equal(t, before, after)
	assert.NoError(t, one(a.CreateTopics(context.Background(), []TopicSpec{{Name: "beside-junk", Partitions: 3, ReplicationFactor: 1}}, false)))
}

func ofManyWhoCreateOneTopicExactlyOneSucceeds(t *testing.T, a *Admin, zk *zkstate.Client) {
	const contenders = 8
	errs := make([]error, contenders)
	var wg sync.WaitGroup
	for i := range contenders {
		wg.Add(1)
		go func() {
			defer wg.Done()
			spec := manual("t", 1)
			spec.Configs = []ConfigEntry{{"retention.ms", ptr(fmt.Sprint(1000 + i))}}
			errs[i] = one(a.CreateTopics(context.Background(), []TopicSpec{spec}, false))
		}()
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		if err == nil {
			require.Equal(t, -1, winner, "created twice")
			winner = i
			continue
		}
		assert.ErrorIs(t, err, kerr.TopicAlreadyExists)
	}
	require.NotEqual(t, -1, winner)
	assert.Equal(t, fmt.Sprintf(`{"version":1,"config":{"retention.ms":"%d"}}`, 1000+winner), data(t, zk, "/config/topics/t"), "the winner's configuration")
}

func validatingWritesNothing(t *testing.T, a *Admin, zk *zkstate.Client) {
	ctx := context.Background()
	require.NoError(t, one(a.CreateTopics(ctx, []TopicSpec{manual("t", 1)}, true)))
	missing(t, zk, "/brokers/topics/t")
	missing(t, zk, "/config/topics/t")
	require.NoError(t, one(a.CreateTopics(ctx, []TopicSpec{manual("t", 1)}, false)))
	before := data(t, zk, "/brokers/topics/t")
	require.NoError(t, a.CreatePartitions(ctx, []PartitionsSpec{{Name: "t", Count: 3}}, true)[0].Err)
	require.NoError(t, a.AlterConfigs(ctx, []AlterSpec{{Resource{ResourceTopic, "t"}, []ConfigEntry{{"retention.ms", ptr("1")}}}}, true)[0].Err)
	require.NoError(t, a.AlterClientQuotas(ctx, []QuotaSpec{{QuotaEntity{{UserPart, ptr("u")}}, []QuotaOp{{Key: "producer_byte_rate", Value: 1}}}}, true)[0].Err)
	assert.Equal(t, before, data(t, zk, "/brokers/topics/t"))
	assert.Equal(t, `{"version":1,"config":{}}`, data(t, zk, "/config/topics/t"))
	missing(t, zk, "/config/users/u")
	missing(t, zk, "/config/changes/config_change_0000000000")
}

func aPermitIsAskedForWhatIsAboutToBeWritten(t *testing.T, a *Admin, zk *zkstate.Client) {
	ctx := context.Background()
	var asked []int
	refuse := func(partitions int) error {
		asked = append(asked, partitions)
		return kerr.ThrottlingQuotaExceeded
	}
	spec := manual("t", 1)
	spec.Permit = refuse
	require.NoError(t, one(a.CreateTopics(ctx, []TopicSpec{spec}, true)), "only checked")
	assert.Empty(t, asked)
	assert.ErrorIs(t, one(a.CreateTopics(ctx, []TopicSpec{spec}, false)), kerr.ThrottlingQuotaExceeded)
	missing(t, zk, "/brokers/topics/t")
	missing(t, zk, "/config/topics/t")
	require.NoError(t, one(a.CreateTopics(ctx, []TopicSpec{manual("t", 1)}, false)))
	assert.ErrorIs(t, one(a.CreateTopics(ctx, []TopicSpec{spec}, false)), kerr.TopicAlreadyExists, "what fails anyway is not asked for")
	before := data(t, zk, "/brokers/topics/t")
	enlarge := func(count int32, validate bool) error {
		return a.CreatePartitions(ctx, []PartitionsSpec{{Name: "t", Count: count, Permit: refuse}}, validate)[0].Err
	}
	require.NoError(t, enlarge(3, true))
	assert.ErrorIs(t, enlarge(1, false), kerr.InvalidPartitions)
	assert.ErrorIs(t, enlarge(3, false), kerr.ThrottlingQuotaExceeded)
	assert.Equal(t, before, data(t, zk, "/brokers/topics/t"))
	assert.Equal(t, []int{1, 2}, asked)
}

func aTopicMarkedForDeletionIsLeftAlone(t *testing.T, a *Admin, zk *zkstate.Client) {
	ctx := context.Background()
	require.NoError(t, one(a.CreateTopics(ctx, []TopicSpec{manual("t", 1)}, false)))
	rs := a.DeleteTopics(ctx, []string{"t", "missing", "a/b"})
	assert.Equal(t, DeleteResult{Name: "t"}, rs[0])
	assert.ErrorIs(t, rs[1].Err, kerr.UnknownTopicOrPartition)
	assert.EqualError(t, rs[1].Err, "Topic `missing` to delete does not exist")
	assert.ErrorIs(t, rs[2].Err, kerr.UnknownTopicOrPartition)
	assert.Equal(t, "", data(t, zk, "/admin/delete_topics/t"))
	assert.Equal(t, DeleteResult{Name: "t", Already: true}, a.DeleteTopics(ctx, []string{"t"})[0])
	err := a.CreatePartitions(ctx, []PartitionsSpec{{Name: "t", Count: 3}}, false)[0].Err
	assert.ErrorIs(t, err, kerr.InvalidTopicException)
	assert.EqualError(t, err, "The topic is queued for deletion.")
	_, err = zk.One(ctx, zkstate.Delete("/brokers/topics/t", zkstate.AnyVersion)) // the controller is half through
	require.NoError(t, err)
	err = one(a.CreateTopics(ctx, []TopicSpec{manual("t", 1)}, false))
	assert.ErrorIs(t, err, kerr.TopicAlreadyExists)
	assert.EqualError(t, err, "Topic 't' is marked for deletion.")

	off := New(Config{DeleteTopics: false}, zk)
	assert.ErrorIs(t, off.DeleteTopics(ctx, []string{"t"})[0].Err, kerr.TopicDeletionDisabled)
}

func aTopicBeingReassignedIsNotEnlarged(t *testing.T, a *Admin, zk *zkstate.Client) {
	node := zkstate.TopicAssignment{Version: 2, Partitions: map[int32]zkstate.ReplicaAssignment{0: {Replicas: []int32{1, 2}, Adding: []int32{2}}}}
	require.NoError(t, zk.CreateRecursive(context.Background(), "/brokers/topics/t", node.Encode()))
	err := a.CreatePartitions(context.Background(), []PartitionsSpec{{Name: "t", Count: 3}}, false)[0].Err
	assert.ErrorIs(t, err, kerr.ReassignmentInProgress)
	assert.EqualError(t, err, "A partition reassignment is in progress for the topic 't'.")
}

func newPartitionsContinueTheRound(t *testing.T, a *Admin, zk *zkstate.Client) {
	ctx := context.Background()
	for id := int32(2); id <= 3; id++ {
		node := zkstate.Broker{ID: id, Version: 5, Endpoints: []zkstate.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "h", Port: 1}}}
		_, err := zk.RegisterEphemeral(ctx, zkstate.BrokerIDPath(id), node.Encode())
		require.NoError(t, err)
	}
	r := a.CreateTopics(ctx, []TopicSpec{manual("t", 2, 3)}, false)[0]
	require.NoError(t, r.Err)
	p := a.CreatePartitions(ctx, []PartitionsSpec{{Name: "t", Count: 4}}, false)[0]
	require.NoError(t, p.Err)
	assert.Equal(t, int32(4), p.Count)
	assert.Equal(t, fmt.Sprintf(`{"partitions":{"0":[2,3],"1":[3,2],"2":[1,3],"3":[2,3]},"topic_id":"%s","adding_replicas":{},"removing_replicas":{},"version":3}`,
		zkstate.TopicID(r.ID)), data(t, zk, "/brokers/topics/t"), "the id stays")
}

func quotasAreWritten(t *testing.T, a *Admin, zk *zkstate.Client) {
	ctx := context.Background()
	alice, aliceApp, app := QuotaEntity{{UserPart, ptr("al ice")}}, QuotaEntity{{UserPart, ptr("al ice")}, {ClientIDPart, ptr("app1")}}, QuotaEntity{{ClientIDPart, ptr("app1")}}
	everyone, address := QuotaEntity{{UserPart, nil}}, QuotaEntity{{IPPart, ptr("10.0.0.1")}}
	for _, r := range a.AlterClientQuotas(ctx, []QuotaSpec{
		{alice, []QuotaOp{{Key: "request_percentage", Value: 50}}},
		{aliceApp, []QuotaOp{{Key: "producer_byte_rate", Value: 10}}},
		{app, []QuotaOp{{Key: "producer_byte_rate", Value: 1024}, {Key: "consumer_byte_rate", Value: 2048}}},
		{everyone, []QuotaOp{{Key: "controller_mutation_rate", Value: 0.5}}},
		{address, []QuotaOp{{Key: "connection_creation_rate", Value: 7}}},
	}, false) {
		require.NoError(t, r.Err)
	}
	assert.Equal(t, `{"version":1,"config":{"request_percentage":"50.0"}}`, data(t, zk, "/config/users/al%20ice"))
	assert.Equal(t, `{"version":1,"config":{"producer_byte_rate":"10"}}`, data(t, zk, "/config/users/al%20ice/clients/app1"))
	assert.Equal(t, `{"version":1,"config":{"producer_byte_rate":"1024","consumer_byte_rate":"2048"}}`, data(t, zk, "/config/clients/app1"))
	assert.Equal(t, `{"version":1,"config":{"controller_mutation_rate":"0.5"}}`, data(t, zk, "/config/users/<default>"))
	assert.Equal(t, `{"version":2,"entity_path":"users/al%20ice/clients/app1"}`, data(t, zk, "/config/changes/config_change_0000000001"))

	all, err := a.DescribeClientQuotas(ctx, nil, false)
	require.NoError(t, err)
	assert.Equal(t, []QuotaDescription{
		{everyone, []QuotaValue{{"controller_mutation_rate", 0.5}}},
		{alice, []QuotaValue{{"request_percentage", 50}}},
		{aliceApp, []QuotaValue{{"producer_byte_rate", 10}}},
		{app, []QuotaValue{{"consumer_byte_rate", 2048}, {"producer_byte_rate", 1024}}},
		{address, []QuotaValue{{"connection_creation_rate", 7}}},
	}, all)
	of, err := a.DescribeClientQuotas(ctx, []QuotaFilter{{UserPart, MatchExact, ptr("al ice")}}, true)
	require.NoError(t, err)
	assert.Equal(t, []QuotaDescription{{alice, []QuotaValue{{"request_percentage", 50}}}}, of)

	remove := func(e QuotaEntity, key string) {
		require.NoError(t, a.AlterClientQuotas(ctx, []QuotaSpec{{e, []QuotaOp{{Key: key, Remove: true}}}}, false)[0].Err)
	}
	remove(alice, "request_percentage")
	assert.Equal(t, `{"version":1,"config":{}}`, data(t, zk, "/config/users/al%20ice"), "it still has a client")
	remove(aliceApp, "producer_byte_rate")
	missing(t, zk, "/config/users/al%20ice")
	remove(address, "connection_creation_rate")
	missing(t, zk, "/config/ips/10.0.0.1")
}

func badQuotasAreRefused(t *testing.T, a *Admin, _ *zkstate.Client) {
	u := QuotaEntity{{UserPart, ptr("u")}}
	for message, spec := range map[string]QuotaSpec{
		"Invalid empty client quota entity":         {nil, nil},
		"Empty user not supported":                  {QuotaEntity{{UserPart, ptr("")}}, nil},
		"Unhandled client quota entity type: group": {QuotaEntity{{"group", ptr("x")}}, nil},
		"Invalid quota entity combination, IP entity should not be used with user/client ID entity.": {QuotaEntity{{UserPart, nil}, {IPPart, nil}}, nil},
		"Invalid configuration key connection_creation_rate":                                         {u, []QuotaOp{{Key: "connection_creation_rate", Value: 1}}},
		"Configuration producer_byte_rate must be a LONG value":                                      {u, []QuotaOp{{Key: "producer_byte_rate", Value: 1.5}}},
		"Configuration connection_creation_rate must be a INT value":                                 {QuotaEntity{{IPPart, nil}}, []QuotaOp{{Key: "connection_creation_rate", Value: -1}}},
		"no%20address%20at%20all is not a valid IP or resolvable host.":                              {QuotaEntity{{IPPart, ptr("no address at all")}}, nil},
		"%3A%3A1 is not a valid IP or resolvable host.":                                              {QuotaEntity{{IPPart, ptr("::1")}}, nil},
	} {
		err := a.AlterClientQuotas(context.Background(), []QuotaSpec{spec}, false)[0].Err
		assert.ErrorIs(t, err, kerr.InvalidRequest, message)
		assert.EqualError(t, err, message)
	}
}

// Kafka looks at what is asked before it looks for the topic.
func changesThatNoTopicCouldHaveAreRefusedFirst(t *testing.T, a *Admin, _ *zkstate.Client) {
	ask := func(r Resource, ops ...ConfigOp) string {
		err := a.IncrementalAlterConfigs(context.Background(), []IncrementalSpec{{Resource: r, Ops: ops}}, true)[0].Err
		require.Error(t, err)
		return err.Error()
	}
	absent := Resource{ResourceTopic, "absent"}
	assert.Equal(t, "Config value append is not allowed for config key: retention.ms", ask(absent, ConfigOp{"retention.ms", OpAppend, ptr("1")}))
	assert.Equal(t, kerr.UnknownServerError.Error(), ask(absent, ConfigOp{"nonsense", OpSubtract, ptr("1")}))
	assert.Equal(t, kerr.UnknownServerError.Error(), ask(absent, ConfigOp{"retention.ms", 7, ptr("1")}))
	assert.Equal(t, "The topic 'absent' does not exist.", ask(absent, ConfigOp{"retention.ms", OpSet, ptr("no number")}))
	assert.Equal(t, "The topic 'absent' does not exist.", ask(absent, ConfigOp{"cleanup.policy", OpAppend, ptr("compact")}))
	assert.Equal(t, "Default topic resources are not allowed.", ask(Resource{ResourceTopic, ""}, ConfigOp{"retention.ms", OpAppend, ptr("1")}))
}

func credentialsAreSetDescribedAndDeleted(t *testing.T, a *Admin, zk *zkstate.Client) {
	ctx := context.Background()
	require.NoError(t, a.AlterClientQuotas(ctx, []QuotaSpec{{QuotaEntity{{UserPart, ptr("bob")}}, []QuotaOp{{Key: "request_percentage", Value: 50}}}}, false)[0].Err)
	up := func(user string, m ScramMechanism, iterations int32) ScramUpsertion {
		return ScramUpsertion{User: user, Mechanism: m, Iterations: iterations, Salt: []byte("salt"), SaltedPassword: []byte("password")}
	}
	rs := a.AlterUserScramCredentials(ctx, []ScramUpsertion{up("bob", ScramSHA256, 4096), up("bob", ScramSHA512, 8192), up("few", ScramSHA256, 1), up("many", ScramSHA256, 99999),
		up("odd", 3, 4096), up("", ScramSHA256, 4096), up("twice", ScramSHA256, 4096),
		up("both", ScramSHA256, 1), up("both", 3, 4096)}, []ScramDeletion{{"twice", ScramSHA256}, {"nobody", ScramSHA256}})
	messages := map[string]string{}
	for _, r := range rs {
		if r.Err != nil {
			messages[r.User] = r.Err.Error()
		}
	}
	assert.Equal(t, map[string]string{"few": "Too few iterations", "many": "Too many iterations", "odd": "Unknown SCRAM mechanism", "both": "Unknown SCRAM mechanism", "": "Username must not be empty",
		"twice": "A user credential cannot be altered twice in the same request", "nobody": "Attempt to delete a user credential that does not exist"}, messages)

	withoutPassword := ScramUpsertion{User: "empty", Mechanism: ScramSHA256, Iterations: 4096, Salt: []byte("salt")}
	assert.ErrorIs(t, a.AlterUserScramCredentials(ctx, []ScramUpsertion{withoutPassword}, nil)[0].Err, kerr.UnknownServerError)

	ds, err := a.DescribeUserScramCredentials(ctx, nil)
	require.NoError(t, err)
	assert.Equal(t, []ScramDescription{{User: "bob", Credentials: []ScramInfo{{ScramSHA256, 4096}, {ScramSHA512, 8192}}}}, ds)
	ds, err = a.DescribeUserScramCredentials(ctx, []string{"bob", "x", "x", ""})
	require.NoError(t, err)
	require.Len(t, ds, 3)
	assert.NoError(t, ds[0].Err)
	assert.ErrorIs(t, ds[1].Err, kerr.DuplicateResource)
	assert.ErrorIs(t, ds[2].Err, kerr.ResourceNotFound)

	require.NoError(t, a.AlterUserScramCredentials(ctx, nil, []ScramDeletion{{"bob", ScramSHA256}, {"bob", ScramSHA512}})[0].Err)
	assert.Equal(t, `{"version":1,"config":{"request_percentage":"50.0"}}`, data(t, zk, "/config/users/bob"), "the quota stays")
	of, err := a.DescribeClientQuotas(ctx, nil, false)
	require.NoError(t, err)
	assert.Len(t, of, 1)
}

func aLeftoverConfigurationIsReplaced(t *testing.T, a *Admin, zk *zkstate.Client) {
	require.NoError(t, zk.CreateRecursive(context.Background(), "/config/topics/t", []byte(`{"version":1,"config":{"retention.ms":"1"}}`)))
	require.NoError(t, one(a.CreateTopics(context.Background(), []TopicSpec{manual("t", 1)}, false)))
	assert.Equal(t, `{"version":1,"config":{}}`, data(t, zk, "/config/topics/t"))
}
