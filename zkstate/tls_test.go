package zkstate_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "barnabas/zkstate"
)

// certificate makes a self-signed certificate for 127.0.0.1, and the roots that trust it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

func trusting(roots *x509.CertPool) func(string) *tls.Config {
	return func(addr string) *tls.Config {
		host, _, _ := net.SplitHostPort(addr)
		return &tls.Config{RootCAs: roots, ServerName: host}
	}
}

// terminate takes TLS off in front of a server.
func terminate(t *testing.T, cert tls.Certificate, target string) string {
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	require.NoError(t, err)
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			copyTo := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				_ = to.Close()
				_ = from.Close()
			}
			wg.Go(func() { copyTo(in, out) })
			wg.Go(func() { copyTo(out, in) })
		}
	})
	return l.Addr().String()
}

func aSessionMayBeEncryptedAndTheServerIsAuthenticated(t *testing.T, addr string) {
	cert, roots := certificate(t)
	secure := terminate(t, cert, addr)
	c := connect(t, secure, func(c *Config) { c.TLS = trusting(roots) })
	_, err := c.One(within(t, time.Minute), Create("/x", nil))
	require.NoError(t, err)

	_, err = Connect(Config{Servers: secure, ConnectTimeout: 10 * time.Second, TLS: trusting(x509.NewCertPool()), Log: quiet()})
	require.ErrorContains(t, err, "no ZooKeeper session within 10s", "a server that nobody vouches for")
	require.ErrorAs(t, err, new(*tls.CertificateVerificationError), "it is said why")
}
