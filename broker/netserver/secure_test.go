package netserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/vfs"
	"barnabas/broker/wire"
	"barnabas/ssl"
)

// stores are the settings of the key stores that keytool made for the tests of whole clusters.
func stores(side string) ssl.Settings {
	const made = "../../integration/security/testdata/"
	return func(name string) string {
		return map[string]string{
			"ssl.keystore.location": made + side + ".jks", "ssl.keystore.password": "sesame1", "ssl.truststore.location": made + "trust.jks",
			"ssl.endpoint.identification.algorithm": "https",
		}[name]
	}
}

func tlsConfig(t *testing.T, clientAuth string) Config {
	t.Helper()
	cfg := testConfig()
	server, err := ssl.Server(stores("broker"), clientAuth)
	require.NoError(t, err)
	cfg.Listeners[0].Protocol, cfg.Listeners[0].TLS = "SSL", server
	return cfg
}

// dialTLS makes a client with a certificate, unless change takes it away.
func dialTLS(t *testing.T, s *Server, change func(*tls.Config)) (*client, error) {
	t.Helper()
	encryption, err := ssl.Client(stores("client"))
	require.NoError(t, err)
	cfg := encryption(s.Addr("TEST").String())
	if change != nil {
		change(cfg)
	}
	socket, err := (&tls.Dialer{Config: cfg}).DialContext(t.Context(), "tcp", s.Addr("TEST").String())
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = socket.Close() })
	require.NoError(t, socket.SetDeadline(time.Now().Add(patience)))
	return &client{t: t, Conn: socket}, nil
}

func withoutCertificate(c *tls.Config) { c.Certificates = nil }

func TestAnEncryptedClientActsForWhomItsCertificateNames(t *testing.T) {
	cfg := tlsConfig(t, "requested")
	cfg.Listeners[0].Identify = func(c *x509.Certificate) (wire.Principal, error) {
		return wire.Principal{Type: "User", Name: c.Subject.CommonName}, nil
	}
	principals := make(chan wire.Principal, 2)
	s := start(t, cfg, handler{connected: func(c *wire.Conn) { principals <- c.Principal }})
	c, err := dialTLS(t, s, nil)
	require.NoError(t, err)
	c.send([]byte("hello"))
	require.Equal(t, "hello", string(c.receive()))
	require.Equal(t, "User:client", (<-principals).String())

	c, err = dialTLS(t, s, withoutCertificate)
	require.NoError(t, err)
	c.send([]byte("hello"))
	require.Equal(t, "hello", string(c.receive()))
	require.Equal(t, wire.Anonymous.String(), (<-principals).String())
}

func TestAClientWithoutTheCertificateThatIsRequiredIsNotHeard(t *testing.T) {
	s := start(t, tlsConfig(t, "required"), handler{connected: func(*wire.Conn) { t.Error("it was let in") }})
	c, err := dialTLS(t, s, withoutCertificate)
	if err == nil { // TLS 1.3 tells it at the first read
		_, err = c.Read(make([]byte, 1))
	}
	require.ErrorContains(t, err, "certificate required")
	eventually(t, "the connection is gone", func() bool { return s.Connections() == 0 })
}

func TestACertificateThatNoRuleKnowsIsRefused(t *testing.T) {
	cfg := tlsConfig(t, "required")
	cfg.Listeners[0].Identify = func(*x509.Certificate) (wire.Principal, error) { return wire.Principal{}, errors.New("nobody") }
	s := start(t, cfg, handler{connected: func(*wire.Conn) { t.Error("it was let in") }})
	c, err := dialTLS(t, s, nil)
	require.NoError(t, err)
	c.requireClosed()
}

func TestWhoDoesNotSpeakTLSOnAnEncryptedListenerIsTurnedAway(t *testing.T) {
	s := start(t, tlsConfig(t, "none"), handler{connected: func(*wire.Conn) { t.Error("it was let in") }})
	c := dial(t, s)
	c.send([]byte("hello"))
	_, err := io.Copy(io.Discard, c) // an alert, and the end
	require.NoError(t, err)
	eventually(t, "the connection is gone", func() bool { return s.Connections() == 0 })
}

func TestFilesAndBytesComeOutOfAnEncryptedConnectionAsTheyWentIn(t *testing.T) {
	file, content := testFile(t, 1<<20)
	s := start(t, tlsConfig(t, "none"), handler{handle: func(r *wire.Request) {
		head := framed(make([]byte, 0))
		head.Parts[0].Bytes = []byte{0, 16, 0, 6} // 1 MiB and 6 bytes
		r.Reply(wire.Response{Parts: []wire.Part{
			{Bytes: head.Parts[0].Bytes}, {Bytes: []byte("abc"), Range: vfs.NewRange(file, 0, 100, nil)}, {Range: vfs.NewRange(file, 100, 700_000, nil)},
			{Bytes: []byte("def")}, {Range: vfs.NewRange(file, 700_100, 1<<20-700_100, nil)},
		}})
	}})
	c, err := dialTLS(t, s, withoutCertificate)
	require.NoError(t, err)
	want := append(append(append([]byte("abc"), content[:700_100]...), "def"...), content[700_100:]...)
	for range 3 {
		c.send(nil)
		require.True(t, bytes.Equal(want, c.receive()))
	}
}

func TestAServerThatStopsEndsEncryptedStreamsInOrder(t *testing.T) {
	parked := make(chan *wire.Request, 1)
	s := start(t, tlsConfig(t, "none"), handler{handle: func(r *wire.Request) { parked <- r }})
	c, err := dialTLS(t, s, withoutCertificate)
	require.NoError(t, err)
	c.send([]byte("hello"))
	r := <-parked
	closed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		closed <- s.Close(ctx)
	}()
	<-s.stopped
	echo(r)
	require.Equal(t, "hello", string(c.receive()))
	_, err = c.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err, "the end is told, and not cut")
	require.NoError(t, <-closed)
}

func TestTheLastAnswerGoesOutBeforeTheEnd(t *testing.T) {
	last := func(r *wire.Request) { r.ReplyLast(framed(r.Frame), errors.New("that was all")) }
	for name, dialed := range map[string]func(*testing.T) *client{
		"plaintext": func(t *testing.T) *client { return dial(t, start(t, testConfig(), handler{handle: last})) },
		"encrypted": func(t *testing.T) *client {
			c, err := dialTLS(t, start(t, tlsConfig(t, "none"), handler{handle: last}), withoutCertificate)
			require.NoError(t, err)
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := dialed(t)
			c.send([]byte("hello"))
			require.Equal(t, "hello", string(c.receive()))
			_, err := c.Read(make([]byte, 1))
			require.Equal(t, io.EOF, err)
		})
	}
}

func TestARequestThatEndsAnEncryptedConnectionSaysGoodbye(t *testing.T) {
	s := start(t, tlsConfig(t, "none"), handler{handle: func(r *wire.Request) { r.ReplyLast(framed(r.Frame), errors.New("that was all")) }})
	socket := dial(t, s).Conn
	var stream bytes.Buffer
	c := &client{t: t, Conn: tls.Client(recorded{io.TeeReader(socket, &stream), socket}, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})}
	c.send([]byte("hello"))
	_, err := io.Copy(io.Discard, c)
	require.NoError(t, err)
	var last byte
	for rest := stream.Bytes(); len(rest) >= 5; rest = rest[5+int(binary.BigEndian.Uint16(rest[3:])):] {
		last = rest[0] // the type of a record (RFC 5246, 6.2.1)
	}
	require.EqualValues(t, 21, last, "the stream ends with an alert")
}

// recorded is a connection that is read by way of another reader.
type recorded struct {
	io.Reader
	net.Conn
}

func (r recorded) Read(p []byte) (int, error) { return r.Reader.Read(p) }

func TestAConnectionMayHaveALimitOfItsOwn(t *testing.T) {
	s := start(t, testConfig(), handler{connected: func(c *wire.Conn) { c.FrameLimit = 10 }, handle: func(r *wire.Request) {
		if string(r.Frame) == "open" {
			r.Conn.FrameLimit = 0
		}
		echo(r)
	}})
	c := dial(t, s)
	c.send([]byte("open"))
	require.Equal(t, "open", string(c.receive()))
	c.send(make([]byte, 1000))
	require.Len(t, c.receive(), 1000)
	c = dial(t, s)
	c.send(make([]byte, 11))
	c.requireClosed()
}

func TestProtocolAndEncryptionGoTogether(t *testing.T) {
	for protocol, encrypted := range map[string]bool{"SSL": false, "SASL_SSL": false, "PLAINTEXT": true, "SASL_PLAINTEXT": true} {
		cfg := testConfig()
		cfg.Listeners[0].Protocol = protocol
		if encrypted {
			cfg.Listeners[0].TLS = &tls.Config{}
		}
		_, err := Listen(cfg)
		require.ErrorContains(t, err, protocol)
	}
}
