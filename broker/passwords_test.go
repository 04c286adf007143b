package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/config"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

const outsidePassword = "listener.name.outside.ssl.keystore.password"

func TestPasswordsAreReadAndEncryptedAnewWhenTheSecretChanges(t *testing.T) {
	zk := zkClient(t, zktest.Embedded(t))
	ctx := within(t, time.Minute)
	require.NoError(t, zk.MakePersistentPaths(ctx))
	live := func(secret, old string) *liveConfig {
		set := map[string]string{"password.encoder.secret": secret, "password.encoder.iterations": "1024", "password.encoder.old.secret": old}
		v, err := config.New(set)
		require.NoError(t, err)
		l := newLiveConfig(zk, v, "1", quietLog())
		require.NoError(t, l.reencrypt(ctx))
		require.NoError(t, l.load(ctx))
		return l
	}
	first := live("one", "")
	text, err := first.passwords.Encode("sesame1")
	require.NoError(t, err)
	require.NoError(t, zk.SetEntityConfig(ctx, zkstate.BrokerEntity, "1", zkstate.EntityConfig{outsidePassword: text, "log.cleaner.threads": "2"}))
	stored := func() string {
		c, _, err := zk.EntityConfig(ctx, zkstate.BrokerEntity, "1")
		require.NoError(t, err)
		assert.Equal(t, "2", c["log.cleaner.threads"])
		return c[outsidePassword]
	}
	assert.Equal(t, "sesame1", live("one", "").values().String(outsidePassword))
	assert.Equal(t, text, stored(), "nothing is written without need")

	without := live("two", "").values()
	assert.Empty(t, without.String(outsidePassword), "another secret opens nothing")
	assert.EqualValues(t, 2, without.Int("log.cleaner.threads"), "the rest holds")

	assert.Equal(t, "sesame1", live("two", "one").values().String(outsidePassword))
	renewed := stored()
	assert.NotEqual(t, text, renewed)
	assert.Equal(t, "sesame1", live("two", "one").values().String(outsidePassword), "the old secret may still be there at the next start")
	assert.Equal(t, renewed, stored())
	assert.Empty(t, live("one", "").values().String(outsidePassword))
}

func TestDynamicSettingsThatTheBrokerCannotLiveWithAreRefused(t *testing.T) {
	s, err := secured(t, nil)
	require.NoError(t, err)
	l := newLiveConfig(nil, s.values, "1", quietLog())
	b := &Broker{values: s.values, live: l, security: s}
	right := map[string]string{"listener.name.outside.ssl.keystore.location": madeStores + "client.jks", outsidePassword: "sesame1"}
	require.NoError(t, b.judge(false, right))
	wrong := map[string]string{outsidePassword: "no such word"}
	err = b.judge(false, wrong)
	require.ErrorContains(t, err, "listener OUTSIDE")
	assert.NotContains(t, err.Error(), "no such word")
	assert.Error(t, b.judge(true, map[string]string{"max.connections.per.ip": "0"}), "what contradicts itself")

	l.mu.own = wrong
	l.layerLocked()
	assert.NoError(t, b.judge(false, map[string]string{outsidePassword: "no such word", "log.cleaner.threads": "2"}), "what is wrong already is no reason to refuse another change")
}
