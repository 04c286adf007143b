package zkstate_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "barnabas/zkstate"
)

// A session that nobody but its key's holder could end within these tests.
const longSession = time.Minute

// killedWith makes a client with a registration, kills it as kill -9 does, and tells the key of its session.
func killedWith(t *testing.T, addr, path string) SessionKey {
	p := newProxy(t, addr)
	killed, ctx := connect(t, p.addr(), func(c *Config) { c.SessionTimeout = longSession }), within(t, time.Minute)
	require.NoError(t, killed.MakePersistentPaths(ctx))
	stat, err := killed.RegisterEphemeral(ctx, path, []byte("old"))
	require.NoError(t, err)
	key, ok := killed.SessionKey(stat.EphemeralOwner)
	require.True(t, ok)
	_, ok = killed.SessionKey(key.ID + 1)
	require.False(t, ok, "the key of a session that is not its own")
	p.refuse()
	return key
}

func theSessionOfADeadProcessIsEndedAtOnceByWhoHasItsKey(t *testing.T, addr string) {
	key := killedWith(t, addr, BrokerIDPath(1))
	c, ctx := connect(t, addr, nil), within(t, time.Minute)
	_, err := c.One(ctx, Exists(BrokerIDPath(1)))
	require.NoError(t, err)

	ended, err := c.EndSession(ctx, key)
	require.NoError(t, err)
	assert.True(t, ended)
	begun := time.Now()
	require.NoError(t, c.AwaitUnheld(ctx, BrokerIDPath(1)))
	assert.Less(t, time.Since(begun), longSession/2)

	ended, err = c.EndSession(ctx, key)
	require.NoError(t, err)
	assert.False(t, ended, "it is over")
}

// Nobody else speaks for the session here: its own client would, and its new connection would close those of others.
func aSessionIsNotEndedWithoutItsPassword(t *testing.T, addr string) {
	right := killedWith(t, addr, BrokerIDPath(1))
	c, ctx := connect(t, addr, nil), within(t, time.Minute)
	for _, password := range [][]byte{make([]byte, len(right.Password)), right.Password[1:], nil} {
		ended, err := c.EndSession(ctx, SessionKey{ID: right.ID, Password: password})
		require.NoError(t, err)
		assert.False(t, ended)
	}
	r, err := c.One(ctx, Exists(BrokerIDPath(1)))
	require.NoError(t, err)
	assert.Equal(t, right.ID, r.Stat.EphemeralOwner)
}

func aSessionIsEndedThroughAnyServerThatAnswers(t *testing.T, addr string) {
	key := killedWith(t, addr, BrokerIDPath(1))
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	require.NoError(t, err)
	defer silent.Close()
	here := newProxy(t, addr)
	c := connect(t, here.addr()+","+silent.Addr().String()+","+addr, func(c *Config) { c.SessionTimeout = 10 * time.Second })
	here.mute() // whichever server the client is at
	// A server that swallowed the answer may have ended the session all the same, so it does not matter who did.
	_, err = c.EndSession(within(t, time.Minute), key)
	require.NoError(t, err)
	here.cut()
	here.heal()
	begun := time.Now()
	require.NoError(t, c.AwaitUnheld(within(t, time.Minute), BrokerIDPath(1)))
	assert.Less(t, time.Since(begun), longSession/2)
}
