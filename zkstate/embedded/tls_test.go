package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/ssl"
	"barnabas/zkstate/embedded/proto"
)

const tlsLines = "dataDir=/x\nclientPort=0\nsecureClientPort=0\nssl.keyStore.location=../../ssl/testdata/key.jks\nssl.keyStore.password=sesame\n" +
	"ssl.trustStore.location=../../ssl/testdata/trust.jks\nssl.trustStore.password=sesame\n"

// hello opens a session over an encrypted connection and gives the answer's size.
func hello(addr string, cfg *tls.Config) (int, error) {
	conn, err := tls.Dial("tcp", addr, cfg)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := conn.Write(proto.Seal(proto.AppendConnect(proto.Frame(), proto.ConnectRequest{TimeoutMs: 5000, Password: make([]byte, 16)}))); err != nil {
		return 0, err
	}
	return conn.Read(make([]byte, 100))
}

func TestTheSecurePortAsksForACertificateItTrusts(t *testing.T) {
	cfg, err := parse(t, tlsLines)
	require.NoError(t, err)
	cfg.Log, cfg.DataDir, cfg.Addr, cfg.SecureAddr = testConfig(t).Log, t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	srv, err := Start(cfg)
	require.NoError(t, err)
	defer srv.Close()

	store, err := ssl.Load("JKS", "../../ssl/testdata/key.jks", "sesame", "")
	require.NoError(t, err)
	cert := store.Keys[0].Chain[0]
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	// The certificate names its host in the old way, which Go does not take; that it is the one expected is what matters here.
	client := &tls.Config{InsecureSkipVerify: true, RootCAs: pool}
	_, err = hello(srv.SecureAddr(), client)
	require.Error(t, err, "no certificate")
	client.Certificates = []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: store.Keys[0].Private}}
	n, err := hello(srv.SecureAddr(), client)
	require.NoError(t, err)
	require.Equal(t, 4+4+4+8+4+16, n)
}

func TestKeystoresMayBePEM(t *testing.T) {
	_, err := tlsKeys{"ssl.keyStore.location": "../../ssl/testdata/cert.pem"}.config()
	require.ErrorContains(t, err, "no private key")
	_, err = tlsKeys{"ssl.keyStore.location": "../../ssl/testdata/key.jks", "ssl.keyStore.password": "simsim"}.config()
	require.ErrorContains(t, err, "password")
	cfg, err := tlsKeys{"ssl.keyStore.location": "../../ssl/testdata/key.jks", "ssl.keyStore.password": "sesame", "ssl.trustStore.location": "../../ssl/testdata/cert.pem"}.config()
	require.NoError(t, err)
	require.Equal(t, tls.RequireAndVerifyClientCert, cfg.ClientAuth)
}
