package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// SaslAuthenticate, key 36, versions 0 to 2; see SaslHandshake.
func (d *Dispatcher) saslAuthenticate(c *call, _ *kmsg.SASLAuthenticateRequest) {
	resp := kmsg.NewPtrSASLAuthenticateResponse()
	resp.ErrorCode = kerr.IllegalSaslState.Code
	resp.ErrorMessage = kmsg.StringPtr("SaslAuthenticate request received after successful authentication")
	c.answer(resp)
}
