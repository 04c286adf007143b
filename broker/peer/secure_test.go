package peer

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/auth"
	"barnabas/broker/wire"
	"barnabas/ssl"
)

// stores are the settings of the key stores that keytool made for the tests of whole clusters.
func stores(name string) string {
	const made = "../../integration/security/testdata/"
	return map[string]string{
		"ssl.keystore.location": made + "broker.jks", "ssl.keystore.password": "sesame1", "ssl.truststore.location": made + "trust.jks",
		"ssl.endpoint.identification.algorithm": "https",
	}[name]
}

// startSecure is a broker that speaks TLS and takes "broker" with its password; sessions last as long as it says.
func startSecure(t *testing.T, lifetime time.Duration) *fakeBroker {
	t.Helper()
	server, err := ssl.Server(stores, "required")
	require.NoError(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	require.NoError(t, err)
	var known sync.Map // principals by connection
	plain := auth.Offer{Mechanism: &auth.Plain{Passwords: map[string]string{"broker": "secret"}}}
	return startOn(t, listener, func(socket net.Conn, h wire.Header, req kmsg.Request) []byte {
		switch r := req.(type) {
		case *kmsg.SASLHandshakeRequest:
			resp := kmsg.NewPtrSASLHandshakeResponse()
			if r.Mechanism != plain.Name() {
				resp.ErrorCode = kerr.UnsupportedSaslMechanism.Code
			}
			return wire.AppendResponse(nil, h, resp)
		case *kmsg.SASLAuthenticateRequest:
			resp := kmsg.NewPtrSASLAuthenticateResponse()
			resp.SessionLifetimeMillis = lifetime.Milliseconds()
			if _, proven, err := plain.Begin().Step(r.SASLAuthBytes); err != nil {
				resp.ErrorCode, resp.ErrorMessage = kerr.SaslAuthenticationFailed.Code, kmsg.StringPtr(err.Error())
			} else {
				known.Store(socket, proven.User)
			}
			return wire.AppendResponse(nil, h, resp)
		}
		if user, _ := known.Load(socket); user != "broker" {
			t.Error("a request came before the client had proven who it is")
		}
		return metadata(socket, h, req)
	})
}

func securedBy(t *testing.T, mechanism, password string) func(*Config) {
	t.Helper()
	encryption, err := ssl.Client(stores)
	require.NoError(t, err)
	return func(c *Config) {
		c.Security = Security{TLS: encryption, SASL: auth.Client(mechanism, "broker", password, false)}
	}
}

// asker is a Peer or a Line.
type asker interface {
	Do(context.Context, kmsg.Request) (kmsg.Response, error)
}

// askers makes one of each.
func askers(t *testing.T, addr string, change func(*Config)) map[string]asker {
	return map[string]asker{"peer": newPeer(t, addr, change), "line": newLine(t, addr, change)}
}

func TestABrokerProvesWhoItIsBeforeItAsks(t *testing.T) {
	b := startSecure(t, 0)
	for name, a := range askers(t, b.addr(), securedBy(t, "PLAIN", "secret")) {
		before := b.accepted.Load()
		for range 5 {
			_, err := a.Do(t.Context(), metadataRequest(9))
			require.NoError(t, err, name)
		}
		require.EqualValues(t, 1, b.accepted.Load()-before, name)
	}
}

func TestABrokerThatIsNotTakenForWhoItIsSaysWhy(t *testing.T) {
	b := startSecure(t, 0)
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{securedBy(t, "PLAIN", "guess"), "Authentication failed: Invalid username or password"},
		{securedBy(t, "SCRAM-SHA-256", "secret"), "UNSUPPORTED_SASL_MECHANISM"},
		{func(c *Config) {
			c.Security.TLS = func(string) *tls.Config { return &tls.Config{ServerName: "127.0.0.1", RootCAs: nil} }
		}, "TLS handshake"},
	} {
		for name, a := range askers(t, b.addr(), c.change) {
			_, err := a.Do(t.Context(), metadataRequest(9))
			require.ErrorContains(t, err, c.want, name)
			require.ErrorIs(t, err, ErrNotSent, name)
			require.NotContains(t, err.Error(), "guess")
		}
	}
}

func TestASilentServerDoesNotHoldUpTheExchange(t *testing.T) {
	b := startBroker(t, func(net.Conn, wire.Header, kmsg.Request) []byte { return nil })
	for name, a := range askers(t, b.addr(), func(c *Config) {
		c.Security.SASL = auth.Client("PLAIN", "broker", "secret", false)
		c.Timeout = 50 * time.Millisecond
	}) {
		_, err := a.Do(t.Context(), metadataRequest(9))
		require.Error(t, err, name)
	}
}

// The server here would let a session go on; a broker leaves it before its end by itself, and fails nothing that is under way.
func TestAConnectionIsLeftBeforeItsSessionEnds(t *testing.T) {
	b := startSecure(t, 100*time.Millisecond)
	line := newLine(t, b.addr(), securedBy(t, "PLAIN", "secret"))
	for deadline := time.Now().Add(patience); b.accepted.Load() < 3; {
		_, err := line.Do(t.Context(), metadataRequest(9))
		require.NoError(t, err)
		require.True(t, time.Now().Before(deadline))
	}
	before := b.accepted.Load()
	peer := newPeer(t, b.addr(), securedBy(t, "PLAIN", "secret"))
	var failed atomic.Pointer[error]
	var waiting sync.WaitGroup
	for deadline := time.Now().Add(patience); b.accepted.Load() < before+3; {
		for range 3 {
			waiting.Add(1)
			peer.Send(t.Context(), metadataRequest(9), func(_ kmsg.Response, err error) {
				if err != nil {
					failed.Store(&err)
				}
				waiting.Done()
			})
		}
		waiting.Wait()
		require.Nil(t, failed.Load())
		require.True(t, time.Now().Before(deadline))
	}
}
