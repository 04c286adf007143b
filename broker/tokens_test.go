package broker

import (
	"context"
	"encoding/base64"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"barnabas/broker/acl"
	"barnabas/broker/auth"
	"barnabas/broker/token"
	"barnabas/config"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

var aliceUser, bobUser, ritaUser = acl.Principal{Type: "User", Name: "alice"}, acl.Principal{Type: "User", Name: "bob"}, acl.Principal{Type: "User", Name: "rita"}

// tokenKeeper is the part of a broker that keeps tokens, with a session of its own.
func tokenKeeper(t *testing.T, srv zktest.Server, settings map[string]string) *tokens {
	t.Helper()
	set := map[string]string{"zookeeper.connect": "here", "delegation.token.secret.key": "secret"}
	for name, value := range settings {
		set[name] = value
	}
	v, err := config.New(set)
	require.NoError(t, err)
	kept := newTokens(zkClient(t, srv), v, quietLog())
	require.NotNil(t, kept)
	require.NoError(t, kept.load(within(t, time.Minute)))
	return kept
}

// following lets a broker follow tokens until the test ends.
func following(t *testing.T, kept *tokens) {
	ctx, cancel := context.WithCancel(context.Background())
	events := kept.zk.Subscribe()
	var done sync.WaitGroup
	done.Go(func() { kept.follow(ctx, events.C()) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
		events.Close()
	})
}

func becomes(t *testing.T, what func() bool) {
	t.Helper()
	require.Eventually(t, what, time.Minute, 5*time.Millisecond)
}

func aliceToken() token.Token {
	return token.Token{Owner: aliceUser, Requester: aliceUser, Renewers: []acl.Principal{bobUser}}
}

func TestWithoutASecretThereAreNoTokens(t *testing.T) {
	for _, settings := range []map[string]string{{}, {"delegation.token.secret.key": ""}, {"delegation.token.master.key": ""}, {"delegation.token.secret.key": "", "delegation.token.master.key": "old"}} {
		v, err := config.New(settings)
		require.NoError(t, err)
		assert.Nil(t, newTokens(nil, v, quietLog()), "%v", settings)
	}
	v, err := config.New(map[string]string{"delegation.token.master.key": "old"})
	require.NoError(t, err)
	assert.Equal(t, token.Secret("old"), newTokens(nil, v, quietLog()).secret)
	assert.Nil(t, (*tokens)(nil).lookup(config.ScramSHA256))
}

func TestATokenIsGoodOnEveryBrokerUntilItEnds(t *testing.T) {
	srv := zktest.Embedded(t)
	mine, other := tokenKeeper(t, srv, nil), tokenKeeper(t, srv, nil)
	following(t, other)
	made, err := mine.Issue(within(t, time.Minute), aliceToken(), -1)
	require.NoError(t, err)
	assert.Len(t, made.ID, 22)
	assert.Equal(t, []token.Token{made}, mine.All())
	becomes(t, func() bool { return len(other.All()) == 1 })
	assert.Equal(t, []token.Token{made}, other.All())

	for _, broker := range []*tokens{mine, other} {
		for mechanism, client := range map[string]func(scram.Auth) (auth.Identity, error){
			config.ScramSHA256: func(a scram.Auth) (auth.Identity, error) {
				return proven(t, a, auth.NewScram256(auth.Known{Token: broker.lookup(config.ScramSHA256)}, func() string { return "n" }))
			},
			config.ScramSHA512: func(a scram.Auth) (auth.Identity, error) {
				return proven(t, a, auth.NewScram512(auth.Known{Token: broker.lookup(config.ScramSHA512)}, func() string { return "n" }))
			},
		} {
			who, err := client(scram.Auth{User: made.ID, Pass: base64.StdEncoding.EncodeToString(mine.HMAC(made.ID)), IsToken: true})
			require.NoError(t, err, mechanism)
			assert.Equal(t, auth.Identity{User: "alice", ByToken: true, Expires: time.UnixMilli(made.Expires)}, who)
		}
	}

	expires, err := other.Renew(within(t, time.Minute), bobUser, other.HMAC(made.ID), 2*made.Latest)
	require.NoError(t, err)
	assert.Equal(t, made.Latest, expires)
	expires, err = mine.Expire(within(t, time.Minute), aliceUser, mine.HMAC(made.ID), 0)
	require.NoError(t, err, "though it was not told yet of the renewal")
	becomes(t, func() bool { all := other.All(); return len(all) == 1 && all[0].Expires == expires })

	_, err = other.Expire(within(t, time.Minute), ritaUser, other.HMAC(made.ID), -1)
	assert.ErrorIs(t, err, kerr.DelegationTokenOwnerMismatch)
	_, err = mine.Expire(within(t, time.Minute), bobUser, mine.HMAC(made.ID), -1)
	require.NoError(t, err)
	assert.Empty(t, mine.All())
	becomes(t, func() bool { return len(other.All()) == 0 })
	_, found := other.lookup(config.ScramSHA256)(made.ID)
	assert.False(t, found)
}

// proven lets a client authenticate.
func proven(t *testing.T, a scram.Auth, server auth.Mechanism) (last auth.Identity, err error) {
	t.Helper()
	client := a.AsSha256Mechanism()
	if server.Name() == config.ScramSHA512 {
		client = a.AsSha512Mechanism()
	}
	session, message, err := client.Authenticate(within(t, time.Minute), "broker:9092")
	require.NoError(t, err)
	for x, done := server.Begin(), false; !done; {
		var answer []byte
		if answer, last, err = x.Step(message); err != nil {
			return last, err
		}
		if done, message, err = session.Challenge(answer); err != nil {
			return last, err
		}
	}
	return last, nil
}

func TestWhoRenewsATokenThatWasEndedElsewhereDoesNotBringItBack(t *testing.T) {
	srv := zktest.Embedded(t)
	mine, other := tokenKeeper(t, srv, nil), tokenKeeper(t, srv, nil)
	made, err := mine.Issue(within(t, time.Minute), aliceToken(), -1)
	require.NoError(t, err)
	require.NoError(t, other.load(within(t, time.Minute)))
	_, err = mine.Expire(within(t, time.Minute), aliceUser, mine.HMAC(made.ID), -1)
	require.NoError(t, err)

	_, err = other.Renew(within(t, time.Minute), aliceUser, other.HMAC(made.ID), -1)
	assert.ErrorIs(t, err, kerr.DelegationTokenNotFound)
	_, err = mine.Renew(within(t, time.Minute), aliceUser, mine.HMAC(made.ID), -1)
	assert.ErrorIs(t, err, kerr.DelegationTokenNotFound)
	_, err = mine.zk.One(within(t, time.Minute), zkstate.Exists(zkstate.TokenPath(made.ID)))
	assert.ErrorIs(t, err, zkstate.ErrNoNode)
	assert.Empty(t, other.All())
}

func TestTokensAreReadAgainAfterARestartOfZooKeeper(t *testing.T) {
	srv := zktest.Embedded(t)
	mine, other := tokenKeeper(t, srv, nil), tokenKeeper(t, srv, nil)
	following(t, other)
	srv.Stop()
	srv.Start()
	made, err := mine.Issue(within(t, time.Minute), aliceToken(), -1)
	require.NoError(t, err)
	becomes(t, func() bool { return len(other.All()) == 1 })
	_, err = mine.Expire(within(t, time.Minute), aliceUser, mine.HMAC(made.ID), -1)
	require.NoError(t, err)
	becomes(t, func() bool { return len(other.All()) == 0 })
}

func TestTheControllerRemovesTokensThatAreOver(t *testing.T) {
	srv := zktest.Embedded(t)
	mine, other := tokenKeeper(t, srv, nil), tokenKeeper(t, srv, nil)
	short, err := mine.Issue(within(t, time.Minute), aliceToken(), 1)
	require.NoError(t, err)
	stays, err := mine.Issue(within(t, time.Minute), aliceToken(), -1)
	require.NoError(t, err)
	renewed, err := mine.Issue(within(t, time.Minute), aliceToken(), -1)
	require.NoError(t, err)
	_, err = mine.Expire(within(t, time.Minute), aliceUser, mine.HMAC(renewed.ID), 0)
	require.NoError(t, err)
	require.NoError(t, other.load(within(t, time.Minute)))
	becomes(t, func() bool { return short.Over(time.Now().UnixMilli()) })
	stored, err := mine.zk.Tokens(within(t, time.Minute), renewed.ID)
	require.NoError(t, err)
	require.NoError(t, mine.zk.SetToken(within(t, time.Minute), mine.node(renewed), stored[0].DataVersion))

	ctx, cancel := context.WithCancel(context.Background())
	var sweeping sync.WaitGroup
	sweeping.Go(func() { other.sweep(ctx, time.Hour, func() bool { return false }) })
	sweeping.Go(func() { mine.sweep(ctx, time.Hour, func() bool { return true }) })
	becomes(t, func() bool { return len(mine.All()) == 2 })
	cancel()
	sweeping.Wait()
	assert.Len(t, other.All(), 3, "it is not the controller")
	require.NoError(t, mine.load(within(t, time.Minute)))
	left := []string{mine.All()[0].ID, mine.All()[1].ID}
	assert.ElementsMatch(t, []string{stays.ID, renewed.ID}, left, "one was renewed by another broker")
}

// Kafka before 3.3 knows version 1 alone, in which the requester is the owner.
func TestATokenIsWrittenSoThatTheOldestBrokerReadsIt(t *testing.T) {
	srv := zktest.Embedded(t)
	for ibp, want := range map[string]int32{"2.8": zkstate.TokenVersion1, "3.2": zkstate.TokenVersion1, "3.3": zkstate.TokenVersion3, "3.9": zkstate.TokenVersion3} {
		kept := tokenKeeper(t, srv, map[string]string{"inter.broker.protocol.version": ibp})
		own, err := kept.Issue(within(t, time.Minute), aliceToken(), -1)
		require.NoError(t, err)
		asked := aliceToken()
		asked.Requester = ritaUser
		others, err := kept.Issue(within(t, time.Minute), asked, -1)
		require.NoError(t, err)
		stored, err := kept.zk.Tokens(within(t, time.Minute), own.ID, others.ID)
		require.NoError(t, err)
		assert.Equal(t, want, stored[0].Version, ibp)
		assert.EqualValues(t, zkstate.TokenVersion3, stored[1].Version, "nothing else names the requester")
		assert.Equal(t, "User:rita", stored[1].Requester)
	}
}

func TestANodeThatCannotBeReadLetsNobodyIn(t *testing.T) {
	srv := zktest.Embedded(t)
	kept := tokenKeeper(t, srv, nil)
	for name, data := range map[string]string{
		"broken":    `{"version":`,
		"newer":     `{"version":4,"tokenId":"newer","owner":"User%3Aalice","renewers":[],"issueTimestamp":1,"expiryTimestamp":2,"maxTimestamp":3}`,
		"nobody's":  `{"version":1,"tokenId":"nobody's","owner":"alice","renewers":[],"issueTimestamp":1,"expiryTimestamp":2,"maxTimestamp":3}`,
		"another's": `{"version":1,"tokenId":"a","owner":"User%3Aalice","renewers":[],"issueTimestamp":1,"expiryTimestamp":2,"maxTimestamp":3}`,
	} {
		_, err := kept.zk.One(within(t, time.Minute), zkstate.Create(zkstate.TokenPath(name), []byte(data)))
		require.NoError(t, err)
	}
	good, err := kept.Issue(within(t, time.Minute), aliceToken(), -1)
	require.NoError(t, err)
	kept = tokenKeeper(t, srv, nil)
	assert.Equal(t, []token.Token{good}, kept.All())
}
