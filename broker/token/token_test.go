package token

import (
	"encoding/base64"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/acl"
	"barnabas/integration/purecore"
)

func TestDecidingIsPure(t *testing.T) { purecore.Check(t, ".", "token.go") }

func user(name string) acl.Principal { return acl.Principal{Type: "User", Name: name} }

var (
	rules = Rules{Lifetime: 1000, Renewal: 100}
	blank = Token{ID: "t", Owner: user("alice"), Requester: user("rita"), Renewers: []acl.Principal{user("bob")}}
)

func TestATokenLivesNoLongerThanTheRulesAllow(t *testing.T) {
	for lifetime, want := range map[int64][2]int64{-1: {600, 1500}, 0: {600, 1500}, 50: {550, 550}, 300: {600, 800}, 2000: {600, 1500}, math.MaxInt64: {600, 1500}} {
		issued := rules.Issue(blank, lifetime, 500)
		assert.EqualValues(t, 500, issued.Issued)
		assert.Equal(t, want, [2]int64{issued.Expires, issued.Latest}, "asked for %d", lifetime)
		assert.Equal(t, blank.Owner, issued.Owner)
	}
	endless := Rules{Lifetime: math.MaxInt64, Renewal: math.MaxInt64}.Issue(blank, -1, 500)
	assert.Equal(t, []int64{math.MaxInt64, math.MaxInt64}, []int64{endless.Expires, endless.Latest})
}

func TestOwnerAndRenewersMoveTheEndOfAToken(t *testing.T) {
	issued := rules.Issue(blank, -1, 500)
	for _, who := range []string{"alice", "bob"} {
		for period, want := range map[int64]int64{-1: 690, 0: 590, 10: 600, 5000: 1500, math.MaxInt64: 1500} {
			renewed, err := rules.Renew(issued, user(who), period, 590)
			require.NoError(t, err)
			assert.Equal(t, want, renewed.Expires, "renewed for %d", period)
			if period < 0 {
				continue
			}
			ended, gone, err := rules.Expire(issued, user(who), period, 590)
			require.NoError(t, err)
			assert.False(t, gone)
			assert.Equal(t, want, ended.Expires)
		}
	}
	assert.EqualValues(t, 600, issued.Expires, "what it was made from is not changed")
}

func TestNobodyElseMovesTheEndOfAToken(t *testing.T) {
	issued := rules.Issue(blank, -1, 500)
	for _, who := range []acl.Principal{user("rita"), user("eve"), {Type: "Group", Name: "alice"}} {
		_, err := rules.Renew(issued, who, 1, 510)
		assert.Equal(t, kerr.DelegationTokenOwnerMismatch, err)
		for _, period := range []int64{-1, 1} {
			_, gone, err := rules.Expire(issued, who, period, 510)
			assert.Equal(t, kerr.DelegationTokenOwnerMismatch, err)
			assert.False(t, gone)
		}
	}
}

func TestATokenThatIsOverCanOnlyBeRemoved(t *testing.T) {
	issued := rules.Issue(blank, 200, 500)
	assert.False(t, issued.Over(600))
	assert.True(t, issued.Over(601))
	_, err := rules.Renew(issued, user("alice"), 10, 601)
	assert.Equal(t, kerr.DelegationTokenExpired, err)
	_, _, err = rules.Expire(issued, user("alice"), 10, 601)
	assert.Equal(t, kerr.DelegationTokenExpired, err)
	ended, gone, err := rules.Expire(issued, user("alice"), -1, 601)
	require.NoError(t, err)
	assert.True(t, gone)
	assert.EqualValues(t, 601, ended.Expires, "the answer tells now")
}

func TestATokenConcernsThoseItNames(t *testing.T) {
	for name, want := range map[string]bool{"alice": true, "rita": true, "bob": true, "eve": false} {
		assert.Equal(t, want, blank.Concerns(user(name)), name)
	}
}

// The pair was made by Kafka 2.8.2 with the secret secret-for-tests; 3.9.1 makes the same.
func TestTheHMACIsKafkas(t *testing.T) {
	assert.Equal(t, "dIZ7TxcyNVx/MY/qYQsbtSy0byPkm23KAHtwITGtRdRPYKLCXm+KcZpzP/8srlg1xBJaEh1gv8rmWgizJVAcmw==",
		base64.StdEncoding.EncodeToString(Secret("secret-for-tests").HMAC("Kkltlx6OT_-WqbpHSyN_1g")))
}
