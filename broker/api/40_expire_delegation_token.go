package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/acl"
)

// ExpireDelegationToken, key 40, versions 0 to 2 (KIP-48), to any broker. A negative
// period ends the token at once.
//
//	2  flexible
func (d *Dispatcher) expireDelegationToken(c *call, req *kmsg.ExpireDelegationTokenRequest) {
	d.moveTokenEnd(c, func(ctx context.Context, who acl.Principal) (int64, error) {
		return d.deps.Tokens.Expire(ctx, who, req.HMAC, req.ExpiryPeriodMillis)
	}, func(expires int64, code int16) kmsg.Response {
		resp := kmsg.NewPtrExpireDelegationTokenResponse()
		resp.ExpiryTimestamp, resp.ErrorCode = expires, code
		return resp
	})
}
