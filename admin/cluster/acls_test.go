package cluster

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/acl"
)

// Apache Kafka keeps access lists as sets: the same list comes in another order from another broker, and the same entry has to be named as the one that decides.
func TestTheSameEntryDecidesInWhateverOrderTheyCome(t *testing.T) {
	orders := acl.Pattern{Resource: kmsg.ACLResourceTypeTopic, Name: "orders", Type: kmsg.ACLResourcePatternTypeLiteral}
	entry := func(host string, op kmsg.ACLOperation) acl.Binding {
		return acl.Binding{Pattern: orders, Entry: acl.Entry{Principal: "User:alice", Host: host, Operation: op, Permission: kmsg.ACLPermissionTypeAllow}}
	}
	named := entry("*", kmsg.ACLOperationDescribe)
	all := []acl.Binding{entry("*", kmsg.ACLOperationRead), entry("*", kmsg.ACLOperationWrite), entry("10.0.0.7", kmsg.ACLOperationDescribe), named, entry("*", kmsg.ACLOperationAlter)}
	alice, err := acl.ParsePrincipal("User:alice")
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		d, err := decide(acl.Policy{}, all, acl.Subject{Principal: alice, Host: "10.0.0.8"}, kmsg.ACLOperationDescribe, orders.Resource, orders.Name)
		require.NoError(t, err)
		assert.Equal(t, acl.Decision{Allowed: true, Reason: acl.ByEntry, By: named}, d)
		d, err = decide(acl.Policy{}, all, acl.Subject{Principal: alice, Host: "10.0.0.8"}, kmsg.ACLOperationRead, orders.Resource, orders.Name)
		require.NoError(t, err)
		assert.Equal(t, kmsg.ACLOperationRead, d.By.Operation)
	}
}

func TestWhatABrokerKeepsToItselfIsNotKnown(t *testing.T) {
	assert.Equal(t, ACLPolicy{UnlistedKnown: true}, policyOf([]DescribedSetting{{Name: superUsers, Sensitive: true}}))
	assert.Equal(t, ACLPolicy{SuperUsersKnown: true}, policyOf([]DescribedSetting{{Name: allowUnlisted, Sensitive: true}}))
	assert.Equal(t, ACLPolicy{SuperUsersKnown: true, UnlistedKnown: true}, policyOf(nil))
}
