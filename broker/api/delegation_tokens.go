package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/acl"
	"barnabas/broker/wire"
)

// Delegation tokens (KIP-48, KIP-373) are asked for at any broker; whatever
// inter.broker.protocol.version says, none of these APIs goes to the controller in
// ZooKeeper mode.

// noTime is what an answer with an error has for a time.
const noTime = -1

// tokensRefused tells why nothing about tokens is answered on this connection: whoever
// holds a token could make himself others, and a client that is nobody owns none.
func tokensRefused(conn *wire.Conn) error {
	nobody := conn.SecurityProtocol == "PLAINTEXT" || conn.SecurityProtocol == "SSL" && principalOf(conn) == acl.Principal(wire.Anonymous)
	if conn.ByToken || nobody {
		return kerr.DelegationTokenRequestNotAllowed
	}
	return nil
}

// moveTokenEnd answers RenewDelegationToken and ExpireDelegationToken, which differ in
// what they ask of the tokens.
func (d *Dispatcher) moveTokenEnd(c *call, change func(context.Context, acl.Principal) (int64, error), answer func(expires int64, code int16) kmsg.Response) {
	err := tokensRefused(c.Conn)
	if err == nil && d.deps.Tokens == nil {
		err = kerr.DelegationTokenAuthDisabled
	}
	if err != nil {
		refusal, _ := code(err)
		c.answer(answer(noTime, refusal))
		return
	}
	who := principalOf(c.Conn)
	d.work(c, func(ctx context.Context) {
		expires, err := change(ctx, who)
		if err != nil {
			expires = noTime
		}
		d.faults("changing a delegation token", err)
		result, _ := code(err)
		c.answer(answer(expires, result))
	})
}
