package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/acl"
	"barnabas/broker/token"
)

// DescribeDelegationToken, key 41, versions 0 to 3 (KIP-48), to any broker: the tokens
// that concern one of the principals named, or all when null names them, as far as the
// client may see them.
//
//	2  flexible
//	3  who asked for each token; tokens of users of whom the client may describe them (KIP-373)
func (d *Dispatcher) describeDelegationToken(c *call, req *kmsg.DescribeDelegationTokenRequest) {
	resp := kmsg.NewPtrDescribeDelegationTokenResponse()
	resp.TokenDetails = []kmsg.DescribeDelegationTokenResponseTokenDetail{}
	err := tokensRefused(c.Conn)
	if err == nil && d.deps.Tokens == nil {
		err = kerr.DelegationTokenAuthDisabled
	}
	if err != nil {
		resp.ErrorCode, _ = code(err)
		c.answer(resp)
		return
	}
	asked := make([]acl.Principal, len(req.Owners))
	for i, o := range req.Owners {
		asked[i] = acl.Principal{Type: o.PrincipalType, Name: o.PrincipalName}
	}
	for _, t := range d.deps.Tokens.All() {
		if (req.Owners == nil || slices.ContainsFunc(asked, t.Concerns)) && d.maySeeToken(c, t) {
			resp.TokenDetails = append(resp.TokenDetails, describedToken(t, d.deps.Tokens.HMAC(t.ID)))
		}
	}
	c.answer(resp)
}

func (d *Dispatcher) maySeeToken(c *call, t token.Token) bool {
	return t.Concerns(principalOf(c.Conn)) ||
		d.sees(c, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeDelegationToken, t.ID) ||
		d.sees(c, kmsg.ACLOperationDescribeTokens, kmsg.ACLResourceTypeUser, t.Owner.String())
}

func describedToken(t token.Token, hmac []byte) kmsg.DescribeDelegationTokenResponseTokenDetail {
	row := kmsg.NewDescribeDelegationTokenResponseTokenDetail()
	row.TokenID, row.HMAC = t.ID, hmac
	row.PrincipalType, row.PrincipalName = t.Owner.Type, t.Owner.Name
	row.TokenRequesterPrincipalType, row.TokenRequesterPrincipalName = t.Requester.Type, t.Requester.Name
	row.IssueTimestamp, row.ExpiryTimestamp, row.MaxTimestamp = t.Issued, t.Expires, t.Latest
	row.Renewers = []kmsg.DescribeDelegationTokenResponseTokenDetailRenewer{}
	for _, r := range t.Renewers {
		row.Renewers = append(row.Renewers, kmsg.DescribeDelegationTokenResponseTokenDetailRenewer{PrincipalType: r.Type, PrincipalName: r.Name})
	}
	return row
}
