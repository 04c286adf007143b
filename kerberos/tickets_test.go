package kerberos

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/kdc"
	"barnabas/integration/lane"
)

// life is that of the tickets that the test's realm gives.
const life = 10 * time.Hour

func TestTicketsAreKeptAndRenewedInTime(t *testing.T) {
	server := kdc.Start(t)
	keys := server.Add(t, "kafka/localhost", "alice")
	now := time.Now()
	tickets := NewTickets(Account{ConfigFile: server.Config, Principal: "alice", KeyTable: keys, Now: func() time.Time { return now }})
	get := func() (Ticket, error) { return tickets.For(lane.Patience(t), "kafka", "localhost") }
	first, err := get()
	require.NoError(t, err)
	assert.InDelta(t, life, first.end.Sub(first.start), float64(time.Minute))
	now = now.Add(life / 2)
	same, err := get()
	require.NoError(t, err)
	assert.Equal(t, first.key, same.key)
	now = now.Add(life * 2 / 5)
	renewed, err := get()
	require.NoError(t, err)
	assert.NotEqual(t, first.key, renewed.key)

	server.Stop()
	now = renewed.start.Add(life * 9 / 10)
	held, err := get()
	require.NoError(t, err, "one that is good for a while yet will do")
	assert.Equal(t, renewed.key, held.key)
	assert.Equal(t, now.Add(renewPause), tickets.held[Name{Primary: "kafka", Instance: "localhost"}].renew, "nobody waits for it again so soon")
	now = renewed.end
	_, err = get()
	assert.ErrorContains(t, err, "a ticket for kafka/localhost: alice@"+kdc.Realm)
}

func TestATicketOpensTheServiceThatItIsFor(t *testing.T) {
	server := kdc.Start(t)
	keys := server.Add(t, "kafka/localhost", "alice")
	acceptor, err := NewAcceptor(Service{ConfigFile: server.Config, Principal: "kafka/localhost", KeyTable: keys, Rules: []string{"DEFAULT"}, Replays: &Replays{}, Now: time.Now})
	require.NoError(t, err)
	cache := server.Cache(t, keys, "alice", "1h")
	for name, account := range map[string]Account{
		"keys": {Principal: "alice", KeyTable: keys}, "a cache": {Cache: cache}, "one's own cache": {Cache: cache, Principal: "alice"},
		"keys, as there is no cache": {Cache: cache + "x", Principal: "alice", KeyTable: keys}, "keys, as the cache is another's": {Cache: cache, Principal: "kafka/localhost", KeyTable: keys},
	} {
		account.ConfigFile, account.Now = server.Config, time.Now
		tickets := NewTickets(account)
		require.NoError(t, tickets.Login(t.Context()), name)
		ticket, err := tickets.For(lane.Patience(t), "kafka", "localhost")
		require.NoError(t, err, name)
		x, token, err := Initiate(ticket)
		require.NoError(t, err, name)
		known, clientErr, err := meet(x, token, acceptor.Begin())
		require.NoError(t, clientErr, name)
		require.NoError(t, err, name)
		if account.Principal != "kafka/localhost" {
			assert.Equal(t, "alice", known, name)
		} else {
			assert.Equal(t, "kafka", known, name)
		}
	}
	for says, account := range map[string]Account{
		"has tickets of alice@" + kdc.Realm: {Cache: cache, Principal: "bob"},
		server.Config:                       {Cache: server.Config},
		"no such file":                      {Cache: cache + "x"},
	} {
		account.ConfigFile, account.Now = server.Config, time.Now
		assert.ErrorContains(t, NewTickets(account).Login(t.Context()), says)
	}
}

func TestKeysMayBeOfEachModernType(t *testing.T) {
	server := kdc.Start(t)
	keys := server.Add(t, "kafka/localhost", "alice")
	text, err := os.ReadFile(server.Config)
	require.NoError(t, err)
	for name, keyType := range keyTypes {
		conf := write(t, "krb5.conf", fmt.Sprintf("%s\n[libdefaults]\n default_tkt_enctypes = %[2]s\n default_tgs_enctypes = %[2]s\n", text, name))
		acceptor, err := NewAcceptor(Service{ConfigFile: conf, Principal: "kafka/localhost", KeyTable: keys, Rules: []string{"DEFAULT"}, Replays: &Replays{}, Now: time.Now})
		require.NoError(t, err)
		ticket, err := NewTickets(Account{ConfigFile: conf, Principal: "alice", KeyTable: keys, Now: time.Now}).For(lane.Patience(t), "kafka", "localhost")
		require.NoError(t, err, name)
		assert.Equal(t, keyType, ticket.key.KeyType, name)
		x, token, err := Initiate(ticket)
		require.NoError(t, err, name)
		known, clientErr, err := meet(x, token, acceptor.Begin())
		require.NoError(t, clientErr, name)
		require.NoError(t, err, name)
		assert.Equal(t, "alice", known, name)
	}
}

// The owner of a cache may go, and leave nothing of himself to who has keys.
func TestACacheThatGoesAwayIsFollowedByKeys(t *testing.T) {
	server := kdc.Start(t)
	keys := server.Add(t, "kafka/localhost", "alice")
	cache := server.Cache(t, keys, "alice", "1h")
	tickets := NewTickets(Account{ConfigFile: server.Config, Cache: cache, KeyTable: keys, Principal: "alice", Now: time.Now})
	require.NoError(t, tickets.Login(t.Context()))
	require.NoError(t, os.Remove(cache))
	tickets.account.Principal = "kafka/localhost"
	ticket, err := tickets.For(lane.Patience(t), "kafka", "localhost")
	require.NoError(t, err)
	assert.Equal(t, []string{"kafka", "localhost"}, ticket.client.NameString)
}

func TestWaitingForATicketEndsWithTheCaller(t *testing.T) {
	tickets := NewTickets(Account{ConfigFile: os.DevNull, Now: time.Now})
	require.NoError(t, tickets.lock(t.Context())) // somebody else asks
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := tickets.For(ctx, "kafka", "localhost")
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, tickets.Login(ctx), context.Canceled)
}
