package api

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/wire"
)

// Nobody makes himself tokens out of one that he was given, and who is nobody owns none.
func TestWhoMayAskForTokensDependsOnHowTheClientProvedWhoItIs(t *testing.T) {
	alice := wire.Principal{Type: "User", Name: "alice"}
	for _, c := range []struct {
		conn *wire.Conn
		want int16
	}{
		{&wire.Conn{SecurityProtocol: "PLAINTEXT"}, kerr.DelegationTokenRequestNotAllowed.Code},
		{&wire.Conn{SecurityProtocol: "SSL"}, kerr.DelegationTokenRequestNotAllowed.Code},
		{&wire.Conn{SecurityProtocol: "SSL", Principal: wire.Anonymous}, kerr.DelegationTokenRequestNotAllowed.Code},
		{&wire.Conn{SecurityProtocol: "SSL", Principal: alice}, 0},
		{&wire.Conn{SecurityProtocol: "SASL_PLAINTEXT", Principal: alice}, 0},
		{&wire.Conn{SecurityProtocol: "SASL_SSL", Principal: alice, ByToken: true}, kerr.DelegationTokenRequestNotAllowed.Code},
	} {
		w := newWorld(t, 1, readCluster(t))
		w.d.deps.Tokens = &fakeTokens{}
		for _, req := range []kmsg.Request{createTokenOf(-1, ""), describeTokensOf(nil), renewTokenOf(nil, 1), expireTokenOf(nil, 1)} {
			conn := c.conn
			conn.Remote = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5}
			sink := &caught{t: t, done: make(chan outcome, 1)}
			w.d.Handle(wire.NewRequest(conn, frame(req), time.Now(), sink))
			o := await(t, sink.done)
			require.NoError(t, o.closed)
			var got int16
			switch resp := decodeAnswer(t, req.Key(), req.GetVersion(), o.response).(type) {
			case *kmsg.CreateDelegationTokenResponse:
				got = resp.ErrorCode
			case *kmsg.DescribeDelegationTokenResponse:
				got = resp.ErrorCode
			case *kmsg.RenewDelegationTokenResponse:
				if got = resp.ErrorCode; got == kerr.DelegationTokenNotFound.Code {
					got = 0 // it came so far
				}
			case *kmsg.ExpireDelegationTokenResponse:
				if got = resp.ErrorCode; got == kerr.DelegationTokenNotFound.Code {
					got = 0
				}
			}
			assert.Equal(t, c.want, got, "%s over %s as %s, by a token: %v", kmsg.NameForKey(req.Key()), conn.SecurityProtocol, conn.Principal, conn.ByToken)
		}
	}
}

func TestAnOwnerWithoutATypeIsNobodysToken(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	w.d.deps.Tokens = &fakeTokens{}
	req := createTokenOf(-1, "User:bob")
	req.Version, req.OwnerPrincipalType = 3, nil
	resp := w.ask(req).(*kmsg.CreateDelegationTokenResponse)
	assert.Equal(t, kerr.UnknownServerError.Code, resp.ErrorCode)
	assert.Empty(t, resp.TokenID)
}
