package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/acl"
	"barnabas/broker/token"
	"barnabas/broker/wire"
)

// CreateDelegationToken, key 38, versions 0 to 3 (KIP-48), to any broker.
//
//	2  flexible
//	3  a token for somebody else (KIP-373)
func (d *Dispatcher) createDelegationToken(c *call, req *kmsg.CreateDelegationTokenRequest) {
	asked := token.Token{Requester: principalOf(c.Conn)}
	asked.Owner = asked.Requester
	if name := req.OwnerPrincipalName; name != nil && *name != "" {
		if req.OwnerPrincipalType == nil { // Kafka stumbles over it
			anonymous := acl.Principal(wire.Anonymous)
			c.answer(createdToken(token.Token{Owner: anonymous, Requester: anonymous}, nil, kerr.UnknownServerError))
			return
		}
		asked.Owner = acl.Principal{Type: *req.OwnerPrincipalType, Name: *name}
	}
	for _, r := range req.Renewers {
		asked.Renewers = append(asked.Renewers, acl.Principal{Type: r.PrincipalType, Name: r.PrincipalName})
	}
	if err := d.mayCreateToken(c, asked); err != nil {
		c.answer(createdToken(asked, nil, err))
		return
	}
	lifetime := req.MaxLifetimeMillis
	d.work(c, func(ctx context.Context) {
		made, err := d.deps.Tokens.Issue(ctx, asked, lifetime)
		d.faults("creating a delegation token", err)
		if err != nil {
			c.answer(createdToken(asked, nil, err))
			return
		}
		c.answer(createdToken(made, d.deps.Tokens.HMAC(made.ID), nil))
	})
}

// mayCreateToken tells why the client may not have that token.
func (d *Dispatcher) mayCreateToken(c *call, t token.Token) error {
	if err := tokensRefused(c.Conn); err != nil {
		return err
	}
	if t.Owner != t.Requester && !d.may(c, kmsg.ACLOperationCreateTokens, kmsg.ACLResourceTypeUser, t.Owner.String()) {
		return kerr.DelegationTokenAuthorizationFailed
	}
	for _, r := range t.Renewers {
		if r.Type != wire.Anonymous.Type {
			return kerr.InvalidPrincipalType
		}
	}
	if d.deps.Tokens == nil {
		return kerr.DelegationTokenAuthDisabled
	}
	return nil
}

// createdToken answers with a token, or with an error for one that was asked for.
func createdToken(t token.Token, hmac []byte, err error) *kmsg.CreateDelegationTokenResponse {
	resp := kmsg.NewPtrCreateDelegationTokenResponse()
	resp.ErrorCode, _ = code(err)
	resp.PrincipalType, resp.PrincipalName = t.Owner.Type, t.Owner.Name
	resp.TokenRequesterPrincipalType, resp.TokenRequesterPrincipalName = t.Requester.Type, t.Requester.Name
	resp.IssueTimestamp, resp.ExpiryTimestamp, resp.MaxTimestamp = noTime, noTime, noTime
	resp.HMAC = []byte{}
	if err == nil {
		resp.IssueTimestamp, resp.ExpiryTimestamp, resp.MaxTimestamp = t.Issued, t.Expires, t.Latest
		resp.TokenID, resp.HMAC = t.ID, hmac
	}
	return resp
}
