package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/broker/quota"
	"barnabas/config"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

func TestQuotasAreTakenFromZooKeeper(t *testing.T) {
	zk := zkClient(t, zktest.Embedded(t))
	ctx := within(t, time.Minute)
	require.NoError(t, zk.MakePersistentPaths(ctx))
	limited := zkstate.EntityConfig{"producer_byte_rate": "1000", "consumer_byte_rate": "nonsense", "SCRAM-SHA-256": "secret"}
	odd := zkstate.SanitizeName("a/b c")
	for _, e := range []struct {
		entity zkstate.EntityType
		name   string
	}{
		{zkstate.UserEntity, odd}, {zkstate.UserEntity, zkstate.UserClientEntity("carol", odd)},
		{zkstate.UserEntity, zkstate.UserClientEntity("dave", zkstate.DefaultEntity)}, {zkstate.ClientEntity, odd},
	} {
		require.NoError(t, zk.SetEntityConfig(ctx, e.entity, e.name, limited), e.name)
	}
	require.NoError(t, zk.SetEntityConfig(ctx, zkstate.UserEntity, "erin", zkstate.EntityConfig{"SCRAM-SHA-256": "secret"}))

	v, err := config.New(map[string]string{"zookeeper.connect": "here"})
	require.NoError(t, err)
	q := newClientQuotas(zk, v, quietLog())
	require.NoError(t, q.load(ctx))
	most := func(user, client string) int64 {
		return q.held.Most(quota.Produce, quota.Client{User: user, ID: client})
	}
	const held = 10 * 1000 // eleven samples of a second, all but one
	assert.EqualValues(t, held, most("a/b c", ""), "a user")
	assert.EqualValues(t, held, most("carol", "a/b c"), "a user's client, in a folder of a user without limits")
	assert.EqualValues(t, held, most("dave", "any"), "the default of a user's clients")
	assert.EqualValues(t, held, most("frank", "a/b c"), "a client")
	assert.Greater(t, most("erin", "any"), int64(held))
	assert.False(t, q.held.Any(quota.Fetch), "what is no number holds nobody")

	q.changed(zkstate.ConfigChange{Type: zkstate.UserEntity, Name: zkstate.UserClientEntity(zkstate.DefaultEntity, zkstate.DefaultEntity)},
		zkstate.EntityConfig{"producer_byte_rate": "2000"})
	assert.EqualValues(t, 2*held, most("erin", "any"), "the default of all")
	assert.EqualValues(t, held, most("a/b c", ""))
	q.changed(zkstate.ConfigChange{Type: zkstate.UserEntity, Name: "%zz"}, limited)
	q.changed(zkstate.ConfigChange{Type: zkstate.UserEntity, Name: odd}, zkstate.EntityConfig{"SCRAM-SHA-256": "secret"})
	assert.Greater(t, most("a/b c", ""), int64(held), "a limit that was removed")
}
