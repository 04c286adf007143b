package api

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/acl"
	"barnabas/broker/token"
)

// What clients are told who ask for delegation tokens.

// tokensPlay asks with an authorizer, under which nobody but root has any right at first.
func tokensPlay(p *aclStage) {
	p.say("a client that is nobody, though it may do everything")
	p.everyTokenAPI("root", []byte("hmac"))

	p.say("alice makes tokens of her own, which bob may renew")
	var lasting, made *kmsg.CreateDelegationTokenResponse
	for version := range int16(4) {
		for _, lifetime := range []int64{-1, 0, 1_000_000, 1 << 40} {
			lasting, made = made, p.ask("alice", version, createTokenOf(lifetime, "", "User:bob")).(*kmsg.CreateDelegationTokenResponse)
		}
		p.ask("alice", version, createTokenOf(-1, "", "User:bob", "Group:admins"))
		p.describeTokens("alice", version)
		p.describeTokens("bob", version)
		p.describeTokens("carol", version)
	}

	p.say("who may renew and end them")
	for version := range int16(3) {
		for _, who := range []string{"carol", "bob", "alice"} {
			p.ask(who, version, renewTokenOf(made.HMAC, 1<<40))
			p.ask(who, version, renewTokenOf([]byte("no such"), -1))
			p.ask(who, version, renewTokenOf(nil, -1))
			p.ask(who, version, expireTokenOf(made.HMAC, 1<<40))
			p.ask(who, version, expireTokenOf([]byte("no such"), -1))
		}
		p.ask("carol", version, expireTokenOf(made.HMAC, -1))
	}
	p.ask("bob", 2, expireTokenOf(made.HMAC, -1))
	p.ask("bob", 2, expireTokenOf(made.HMAC, -1))
	p.ask("bob", 2, renewTokenOf(made.HMAC, -1))

	p.say("tokens for somebody else")
	p.ask("alice", 3, createTokenOf(1_000_000, "User:alice"))
	p.ask("alice", 3, createTokenOf(1_000_000, "User:bob"))
	p.ask("alice", 3, createTokenOf(1_000_000, "User:bob", "Group:admins"))
	p.ask("alice", 3, createTokenOf(1_000_000, "Group:alice"))
	p.allow("alice", "*", kmsg.ACLOperationCreateTokens, literal(kmsg.ACLResourceTypeUser, "User:bob"))
	p.ask("alice", 3, createTokenOf(1_000_000, "User:bob", "Group:admins"))
	forBob := p.ask("alice", 3, createTokenOf(1_000_000, "User:bob")).(*kmsg.CreateDelegationTokenResponse)
	p.describeTokens("bob", 3)
	p.ask("alice", 2, expireTokenOf(forBob.HMAC, -1))
	p.ask("bob", 2, expireTokenOf(forBob.HMAC, -1))

	p.say("who may see tokens of others")
	p.allow("carol", "*", kmsg.ACLOperationDescribe, literal(kmsg.ACLResourceTypeDelegationToken, lasting.TokenID))
	p.describeTokens("carol", 3)
	p.allow("carol", "*", kmsg.ACLOperationDescribe, literal(kmsg.ACLResourceTypeDelegationToken, "*"))
	p.describeTokens("carol", 3)
	forget := deleteACLsOf(anyACL) // whose answer names a token
	forget.SetVersion(3)
	p.on("root", forget)
	p.describeTokens("carol", 3)
	p.allow("carol", "*", kmsg.ACLOperationDescribeTokens, literal(kmsg.ACLResourceTypeUser, "User:alice"))
	p.describeTokens("carol", 3)
	p.describeTokens("carol", 2)
}

// everyTokenAPI asks each of the APIs at each version.
func (p *aclStage) everyTokenAPI(who string, hmac []byte) {
	for version := range int16(4) {
		p.ask(who, version, createTokenOf(-1, "", "User:bob"))
		p.describeTokens(who, version)
	}
	for version := range int16(3) {
		p.ask(who, version, renewTokenOf(hmac, -1))
		p.ask(who, version, expireTokenOf(hmac, -1))
	}
}

// describeTokens asks for all tokens, for none, and for those of one or two.
func (p *aclStage) describeTokens(who string, version int16) {
	p.ask(who, version, describeTokensOf(nil))
	p.ask(who, version, describeTokensOf([]string{}))
	p.ask(who, version, describeTokensOf([]string{"carol"}))
	p.ask(who, version, describeTokensOf([]string{"carol", "bob"}))
}

// createTokenOf asks for a token, for somebody else when owner is not empty. Principals
// are Type:name.
func createTokenOf(lifetime int64, owner string, renewers ...string) *kmsg.CreateDelegationTokenRequest {
	req := kmsg.NewPtrCreateDelegationTokenRequest()
	req.MaxLifetimeMillis = lifetime
	if owner != "" {
		who, _ := acl.ParsePrincipal(owner)
		req.OwnerPrincipalType, req.OwnerPrincipalName = &who.Type, &who.Name
	}
	for _, r := range renewers {
		who, _ := acl.ParsePrincipal(r)
		req.Renewers = append(req.Renewers, kmsg.CreateDelegationTokenRequestRenewer{PrincipalType: who.Type, PrincipalName: who.Name})
	}
	return req
}

func renewTokenOf(hmac []byte, period int64) *kmsg.RenewDelegationTokenRequest {
	req := kmsg.NewPtrRenewDelegationTokenRequest()
	req.HMAC, req.RenewTimeMillis = hmac, period
	return req
}

func expireTokenOf(hmac []byte, period int64) *kmsg.ExpireDelegationTokenRequest {
	req := kmsg.NewPtrExpireDelegationTokenRequest()
	req.HMAC, req.ExpiryPeriodMillis = hmac, period
	return req
}

// describeTokensOf asks for the tokens of users; nil is those of all.
func describeTokensOf(users []string) *kmsg.DescribeDelegationTokenRequest {
	req := kmsg.NewPtrDescribeDelegationTokenRequest()
	if users != nil {
		req.Owners = []kmsg.DescribeDelegationTokenRequestOwner{}
	}
	for _, user := range users {
		req.Owners = append(req.Owners, kmsg.DescribeDelegationTokenRequestOwner{PrincipalType: "User", PrincipalName: user})
	}
	return req
}

// fakeTokens keeps tokens under the real rules, and in memory alone. One request at a
// time may be under way.
type fakeTokens struct {
	made  int
	known []token.Token
}

// kafkaRules are the defaults.
var kafkaRules = token.Rules{Lifetime: 7 * 24 * time.Hour.Milliseconds(), Renewal: 24 * time.Hour.Milliseconds()}

const fakeSecret = token.Secret("secret")

func (f *fakeTokens) Issue(_ context.Context, asked token.Token, lifetime int64) (token.Token, error) {
	f.made++
	asked.ID = fmt.Sprint("token-", f.made)
	made := kafkaRules.Issue(asked, lifetime, time.Now().UnixMilli())
	f.known = append(f.known, made)
	return made, nil
}

func (f *fakeTokens) find(hmac []byte) int {
	return slices.IndexFunc(f.known, func(t token.Token) bool { return bytes.Equal(fakeSecret.HMAC(t.ID), hmac) })
}

func (f *fakeTokens) Renew(_ context.Context, who acl.Principal, hmac []byte, period int64) (int64, error) {
	i := f.find(hmac)
	if i < 0 {
		return 0, kerr.DelegationTokenNotFound
	}
	next, err := kafkaRules.Renew(f.known[i], who, period, time.Now().UnixMilli())
	f.known[i] = next
	return next.Expires, err
}

func (f *fakeTokens) Expire(_ context.Context, who acl.Principal, hmac []byte, period int64) (int64, error) {
	i := f.find(hmac)
	if i < 0 {
		return 0, kerr.DelegationTokenNotFound
	}
	next, gone, err := kafkaRules.Expire(f.known[i], who, period, time.Now().UnixMilli())
	if f.known[i] = next; gone {
		f.known = slices.Delete(f.known, i, i+1)
	}
	return next.Expires, err
}

func (f *fakeTokens) All() []token.Token {
	return slices.SortedFunc(slices.Values(f.known), func(a, b token.Token) int { return cmp.Compare(a.ID, b.ID) })
}

func (f *fakeTokens) HMAC(id string) []byte { return fakeSecret.HMAC(id) }
