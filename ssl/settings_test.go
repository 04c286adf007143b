package ssl

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func of(set map[string]string) Settings { return func(name string) string { return set[name] } }

func textOf(t *testing.T, file string) string {
	text, err := os.ReadFile(made + file)
	require.NoError(t, err)
	return string(text)
}

// with gives the settings of a broker with some of them changed; "" takes one away.
func with(changes map[string]string) Settings {
	set := map[string]string{"ssl.keystore.location": made + "broker.jks", "ssl.keystore.password": "sesame1", "ssl.truststore.location": made + "trust.jks"}
	for name, value := range changes {
		set[name] = value
	}
	return of(set)
}

func TestWhatCannotBeServedIsRefusedByName(t *testing.T) {
	for want, changes := range map[string]map[string]string{
		"ssl.keystore.location: a listener with TLS needs a key store":            {"ssl.keystore.location": ""},
		"ssl.keystore.location: open ":                                            {"ssl.keystore.location": "none.jks"},
		"ssl.keystore.location: " + made + "ca.pem: not a key store":              {"ssl.keystore.location": made + "ca.pem"},
		"ssl.keystore.password: is missing":                                       {"ssl.keystore.password": ""},
		"ssl.keystore.password: does not go with PEM":                             {"ssl.keystore.type": "PEM"},
		"ssl.keystore.location: holds no private key":                             {"ssl.keystore.type": "PEM", "ssl.keystore.location": made + "ca.pem", "ssl.keystore.password": ""},
		"ssl.keystore.type: a private key can be given by itself":                 {"ssl.keystore.key": "x"},
		"ssl.keystore.key and ssl.keystore.certificate.chain":                     {"ssl.keystore.type": "PEM", "ssl.keystore.key": "x"},
		"ssl.truststore.location: " + made + "trust.jks: wrong password":          {"ssl.truststore.password": "simsim"},
		"ssl.truststore.type: certificates can be given by themselves":            {"ssl.truststore.certificates": "x"},
		"ssl.enabled.protocols: SSLv3 is not served":                              {"ssl.enabled.protocols": "TLSv1.2,SSLv3"},
		"ssl.enabled.protocols: leaves out a version between TLSv1.1 and TLSv1.3": {"ssl.enabled.protocols": "TLSv1.3,TLSv1.1"},
		"ssl.cipher.suites: TLS_DHE_RSA_WITH_AES_256_GCM_SHA384 is not served":    {"ssl.cipher.suites": "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384"},
		"ssl.provider: BCFIPS is Java code":                                       {"ssl.provider": "BCFIPS"},
		`ssl.client.auth: "maybe" is none of none, requested, required`:           {"auth": "maybe"},
		"ssl.keystore.location: key stores of type BCFKS are not served":          {"ssl.keystore.type": "BCFKS"},
	} {
		s := with(changes)
		_, err := Server(s, s("auth"))
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "sesame1")
	}
	_, err := Client(with(map[string]string{"ssl.endpoint.identification.algorithm": "LDAPS"}))
	assert.ErrorContains(t, err, "ssl.endpoint.identification.algorithm")
}

func TestProtocolsAndCipherSuitesAreThoseThatAreNamed(t *testing.T) {
	c, err := Server(with(map[string]string{"ssl.enabled.protocols": "TLSv1.2", "ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"}), "Required")
	require.NoError(t, err)
	assert.EqualValues(t, tls.VersionTLS12, c.MinVersion)
	assert.EqualValues(t, tls.VersionTLS12, c.MaxVersion)
	assert.Equal(t, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256}, c.CipherSuites)
	assert.Equal(t, tls.RequireAndVerifyClientCert, c.ClientAuth)
	c, err = Server(with(nil), "")
	require.NoError(t, err)
	assert.EqualValues(t, tls.VersionTLS12, c.MinVersion)
	assert.EqualValues(t, tls.VersionTLS13, c.MaxVersion)
	assert.Nil(t, c.CipherSuites)
	assert.Equal(t, tls.NoClientCert, c.ClientAuth)
}

func TestKeysAndCertificatesMayStandInTheSettings(t *testing.T) {
	c, err := Server(of(map[string]string{
		"ssl.keystore.type": "PEM", "ssl.keystore.key": textOf(t, "broker-key.pem"), "ssl.keystore.certificate.chain": textOf(t, "broker.pem"),
		"ssl.truststore.type": "PEM", "ssl.truststore.certificates": textOf(t, "ca.pem"),
	}), "required")
	require.NoError(t, err)
	assert.Len(t, c.Certificates, 1)
	assert.NotNil(t, c.ClientCAs)
}

// shake lets a client shake hands with a server that has a certificate.
func shake(t *testing.T, client *tls.Config, server tls.Certificate) error {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	deadline := time.Now().Add(10 * time.Second)
	require.NoError(t, errors.Join(a.SetDeadline(deadline), b.SetDeadline(deadline)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Server(b, &tls.Config{Certificates: []tls.Certificate{server}}).Handshake() // what the client makes of it is the question
		_ = b.Close()
	}()
	err := tls.Client(a, client).Handshake()
	_ = a.Close()
	<-done
	return err
}

// selfSigned makes a certificate, and a client's settings that trust it.
func selfSigned(t *testing.T, template x509.Certificate) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template.SerialNumber, template.NotAfter = big.NewInt(1), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestAClientTakesABrokerOnlyForTheOneItIs(t *testing.T) {
	s, err := Load("JKS", made+"broker.jks", "sesame1", "")
	require.NoError(t, err)
	broker := s.Keys[0].Certificate()
	named, err := Client(with(map[string]string{"ssl.endpoint.identification.algorithm": "HTTPS"}))
	require.NoError(t, err)
	for addr, fits := range map[string]bool{"127.0.0.1:9092": true, "localhost:9092": true, "localhost": true, "127.0.0.2:9092": false, "kafka.example.com:9092": false} {
		err := shake(t, named(addr), broker)
		assert.Equal(t, fits, err == nil, "%s: %v", addr, err)
	}
	anyName, err := Client(with(nil))
	require.NoError(t, err)
	assert.NoError(t, shake(t, anyName("kafka.example.com:9092"), broker))

	stranger, _ := selfSigned(t, x509.Certificate{DNSNames: []string{"kafka.example.com"}})
	assert.ErrorContains(t, shake(t, anyName("kafka.example.com:9092"), stranger), "unknown authority")
}

// keytool makes certificates without alternative names unless it is told any, and Java takes their common name.
func TestTheCommonNameCountsWhereThereIsNoOtherName(t *testing.T) {
	for _, c := range []struct {
		template x509.Certificate
		host     string
		fits     bool
	}{
		{x509.Certificate{Subject: pkix.Name{CommonName: "kafka.example.com"}}, "kafka.example.com", true},
		{x509.Certificate{Subject: pkix.Name{CommonName: "*.example.com"}}, "kafka.example.com", true},
		{x509.Certificate{Subject: pkix.Name{CommonName: "other.example.com"}}, "kafka.example.com", false},
		{x509.Certificate{Subject: pkix.Name{CommonName: "10.0.0.1"}}, "10.0.0.1", false},
		{x509.Certificate{Subject: pkix.Name{CommonName: "kafka.example.com"}, DNSNames: []string{"other.example.com"}}, "kafka.example.com", false},
	} {
		cert, pool := selfSigned(t, c.template)
		leaf, err := x509.ParseCertificate(cert.Certificate[0])
		require.NoError(t, err)
		err = verify([]*x509.Certificate{leaf}, pool, &c.host)
		assert.Equal(t, c.fits, err == nil, "%v for %s: %v", c.template.Subject, c.host, err)
	}
}
