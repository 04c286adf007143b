package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// SaslHandshake, key 17, versions 0 and 1.
//
// What gets here comes at a time when nobody has to prove anything: on a listener without SASL, or after the exchange. The
// exchange itself is kept by broker/auth.
func (d *Dispatcher) saslHandshake(c *call, _ *kmsg.SASLHandshakeRequest) {
	resp := kmsg.NewPtrSASLHandshakeResponse()
	resp.ErrorCode = kerr.IllegalSaslState.Code
	c.answer(resp)
}
