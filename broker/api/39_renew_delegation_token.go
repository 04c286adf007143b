package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/acl"
)

// RenewDelegationToken, key 39, versions 0 to 2 (KIP-48), to any broker. A negative
// period is that of delegation.token.expiry.time.ms.
//
//	2  flexible
func (d *Dispatcher) renewDelegationToken(c *call, req *kmsg.RenewDelegationTokenRequest) {
	d.moveTokenEnd(c, func(ctx context.Context, who acl.Principal) (int64, error) {
		return d.deps.Tokens.Renew(ctx, who, req.HMAC, req.RenewTimeMillis)
	}, func(expires int64, code int16) kmsg.Response {
		resp := kmsg.NewPtrRenewDelegationTokenResponse()
		resp.ExpiryTimestamp, resp.ErrorCode = expires, code
		return resp
	})
}
