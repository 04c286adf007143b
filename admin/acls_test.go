package admin_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	. "barnabas/admin"
	"barnabas/broker/acl"
	"barnabas/zkstate"
)

var everyACL = acl.Filter{Resource: kmsg.ACLResourceTypeAny, Type: kmsg.ACLResourcePatternTypeAny, Operation: kmsg.ACLOperationAny, Permission: kmsg.ACLPermissionTypeAny}

func reading(user string, kind kmsg.ACLResourcePatternType, topic string) acl.Binding {
	return acl.Binding{
		Pattern: acl.Pattern{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Type: kind},
		Entry:   acl.Entry{Principal: "User:" + user, Host: "*", Operation: kmsg.ACLOperationRead, Permission: kmsg.ACLPermissionTypeAllow},
	}
}

func loaded(t *testing.T, zk *zkstate.Client) *ACLs {
	t.Helper()
	lists := NewACLs(zk, acl.Policy{})
	require.NoError(t, lists.Load(bounded(t)))
	return lists
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func accessListsAreWrittenAsKafkaWritesThem(t *testing.T, _ *Admin, zk *zkstate.Client) {
	lists := loaded(t, zk)
	configs := reading("bob", kmsg.ACLResourcePatternTypePrefixed, "pay")
	configs.Operation, configs.Permission = kmsg.ACLOperationAlterConfigs, kmsg.ACLPermissionTypeDeny
	for _, err := range lists.Create(bounded(t), []acl.Binding{reading("alice", kmsg.ACLResourcePatternTypeLiteral, "orders"), configs}) {
		require.NoError(t, err)
	}
	assert.Equal(t, `{"acls":[{"principal":"User:alice","permissionType":"Allow","host":"*","operation":"Read"}],"version":1}`, data(t, zk, "/kafka-acl/Topic/orders"))
	assert.Equal(t, `{"acls":[{"principal":"User:bob","permissionType":"Deny","host":"*","operation":"AlterConfigs"}],"version":1}`, data(t, zk, "/kafka-acl-extended/prefixed/Topic/pay"))
	assert.Equal(t, "TOPIC:orders", data(t, zk, "/kafka-acl-changes/acl_changes_0000000000"))
	assert.Equal(t, `{"version":1,"resourceType":"TOPIC","name":"pay","patternType":"PREFIXED"}`, data(t, zk, "/kafka-acl-extended-changes/acl_changes_0000000000"))

	deleted := lists.Delete(bounded(t), []acl.Filter{everyACL, everyACL})
	require.Len(t, deleted, 2)
	assert.Len(t, deleted[0], 2, "the first filter that chooses a binding has it")
	assert.Empty(t, deleted[1])
	missing(t, zk, "/kafka-acl/Topic/orders")
	assert.Equal(t, "TOPIC:orders", data(t, zk, "/kafka-acl-changes/acl_changes_0000000001"))
	assert.Empty(t, lists.Find(everyACL))
}

func whatChangesNothingTellsNobody(t *testing.T, _ *Admin, zk *zkstate.Client) {
	lists := loaded(t, zk)
	orders := []acl.Binding{reading("alice", kmsg.ACLResourcePatternTypeLiteral, "orders")}
	require.NoError(t, lists.Create(bounded(t), orders)[0])
	require.NoError(t, lists.Create(bounded(t), orders)[0])
	missing(t, zk, "/kafka-acl-changes/acl_changes_0000000001")
	none := everyACL
	none.Principal = kmsg.StringPtr("User:nobody")
	assert.Equal(t, [][]DeletedACL{nil}, lists.Delete(bounded(t), []acl.Filter{none}))
	missing(t, zk, "/kafka-acl-changes/acl_changes_0000000001")
}

// Each of two brokers believes what it last read, and both change the same list.
func brokersThatChangeOneListKeepEachOthersEntries(t *testing.T, _ *Admin, zk *zkstate.Client) {
	brokers := []*ACLs{loaded(t, zk), loaded(t, zk), loaded(t, zk)}
	var all sync.WaitGroup
	for i, lists := range brokers {
		all.Go(func() {
			for n := range 5 {
				for _, err := range lists.Create(bounded(t), []acl.Binding{reading(fmt.Sprintf("u%d-%d", i, n), kmsg.ACLResourcePatternTypeLiteral, "orders")}) {
					assert.NoError(t, err)
				}
			}
		})
	}
	all.Wait()
	assert.Len(t, loaded(t, zk).Find(everyACL), 15)

	stale := brokers[0]
	require.NoError(t, brokers[1].Create(bounded(t), []acl.Binding{reading("late", kmsg.ACLResourcePatternTypeLiteral, "orders")})[0])
	lates := everyACL
	lates.Resource, lates.Name, lates.Type, lates.Principal = kmsg.ACLResourceTypeTopic, kmsg.StringPtr("orders"), kmsg.ACLResourcePatternTypeLiteral, kmsg.StringPtr("User:late")
	deleted := stale.Delete(bounded(t), []acl.Filter{lates})
	require.Len(t, deleted[0], 1, "what was made elsewhere and not heard of yet is deleted too")
	require.NoError(t, deleted[0][0].Err)
	assert.Len(t, loaded(t, zk).Find(everyACL), 15)
}

func whatAnotherBrokerTellsIsReadAgain(t *testing.T, _ *Admin, zk *zkstate.Client) {
	here, there := loaded(t, zk), loaded(t, zk)
	who := acl.Subject{Principal: acl.Principal{Type: "User", Name: "alice"}, Host: "h"}
	may := func() bool {
		return here.Allows(who, kmsg.ACLOperationRead, kmsg.ACLResourceTypeTopic, "orders")
	}
	require.NoError(t, there.Create(bounded(t), []acl.Binding{reading("alice", kmsg.ACLResourcePatternTypePrefixed, "ord")})[0])
	assert.False(t, may())
	told := zkstate.Resource{Type: zkstate.TopicResource, Name: "ord", Prefixed: true}
	require.NoError(t, here.Reread(bounded(t), told))
	assert.True(t, may())
	there.Delete(bounded(t), []acl.Filter{everyACL})
	require.NoError(t, here.Reread(bounded(t), told))
	assert.False(t, may())
}

func accessListsThatCannotBeReadAreNoReasonToLetEverybodyIn(t *testing.T, _ *Admin, zk *zkstate.Client) {
	lists := loaded(t, zk)
	require.NoError(t, lists.Create(bounded(t), []acl.Binding{reading("alice", kmsg.ACLResourcePatternTypeLiteral, "orders")})[0])
	for _, bad := range []string{"{", `{"version":2,"acls":[]}`, `{"version":1,"acls":[{"principal":"alice","permissionType":"Allow","operation":"Read","host":"*"}]}`} {
		_, err := zk.One(bounded(t), zkstate.Set("/kafka-acl/Topic/orders", []byte(bad), zkstate.AnyVersion))
		require.NoError(t, err)
		assert.Error(t, lists.Reread(bounded(t), zkstate.Resource{Type: zkstate.TopicResource, Name: "orders"}), bad)
		assert.Len(t, lists.Find(everyACL), 1, "what was known holds")
		assert.Error(t, NewACLs(zk, acl.Policy{}).Load(bounded(t)), bad)
	}
	_, err := zk.One(bounded(t), zkstate.Set("/kafka-acl/Topic/orders", []byte(`{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow","operation":"FlyToTheMoon","host":"*"}]}`), zkstate.AnyVersion))
	require.NoError(t, err)
	require.NoError(t, lists.Reread(bounded(t), zkstate.Resource{Type: zkstate.TopicResource, Name: "orders"}), "an operation of a later version allows nothing")
	assert.False(t, lists.Allows(acl.Subject{Principal: acl.Principal{Type: "User", Name: "alice"}}, kmsg.ACLOperationRead, kmsg.ACLResourceTypeTopic, "orders"))
}

func badAccessListsAreRefusedOneByOne(t *testing.T, _ *Admin, zk *zkstate.Client) {
	lists := loaded(t, zk)
	slash, nobody := reading("alice", kmsg.ACLResourcePatternTypeLiteral, "a/b"), reading("alice", kmsg.ACLResourcePatternTypeLiteral, "orders")
	nobody.Principal = "nobody"
	errs := lists.Create(bounded(t), []acl.Binding{slash, nobody, reading("alice", kmsg.ACLResourcePatternTypeLiteral, "good")})
	assert.ErrorIs(t, errs[0], kerr.InvalidRequest)
	assert.EqualError(t, errs[0], "Failed to create ACL")
	assert.ErrorContains(t, errs[1], "principalType:principalName")
	assert.NoError(t, errs[2])
	assert.Len(t, lists.Find(everyACL), 1)
}
