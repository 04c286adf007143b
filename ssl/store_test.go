package ssl

import (
	"crypto/ecdsa"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// made are the key stores that keytool and openssl made for the tests of whole clusters.
const made = "../integration/security/testdata/"

func TestKeyStoresOfEachKindHoldTheSameKey(t *testing.T) {
	var private *ecdsa.PrivateKey
	for _, c := range []struct{ kind, file, password, keyPassword string }{
		{"JKS", "broker.jks", "sesame1", ""}, {"jks", "broker.jks", "sesame1", "sesame1"}, {"PKCS12", "broker.p12", "sesame1", ""},
		{"PKCS12", "broker.jks", "sesame1", ""}, {"JKS", "broker.p12", "sesame1", "sesame1"}, {"PEM", "broker.pem", "", "sesame1"},
	} {
		s, err := Load(c.kind, made+c.file, c.password, c.keyPassword)
		require.NoError(t, err, c)
		require.Len(t, s.Keys, 1)
		require.True(t, s.Keys[0].complete(), c)
		require.Len(t, s.Keys[0].Chain, 2, "the broker's and the authority's")
		found, ok := s.Keys[0].Private.(*ecdsa.PrivateKey)
		require.True(t, ok)
		if private == nil {
			private = found
		}
		assert.True(t, private.Equal(found), c)
	}
	for _, c := range []struct{ kind, file, password string }{{"JKS", "trust.jks", "sesame1"}, {"JKS", "trust.jks", ""}, {"PKCS12", "trust.p12", "sesame1"}, {"PEM", "ca.pem", ""}} {
		s, err := Load(c.kind, made+c.file, c.password, "")
		require.NoError(t, err, c)
		require.Len(t, s.Trusted, 1)
		assert.Equal(t, "ca", s.Trusted[0].Subject.CommonName)
	}
}

func TestKeysInPEMMayBeEncryptedInTheOldWayAndTheNew(t *testing.T) {
	for _, file := range []string{"broker.pem", "client.pem"} {
		s, err := Load("PEM", made+file, "", "sesame1")
		require.NoError(t, err, file)
		assert.True(t, s.Keys[0].complete())
		_, err = Load("PEM", made+file, "", "simsim")
		assert.ErrorIs(t, err, ErrPassword, file)
	}
}

func TestAKeyStoreThatCannotBeReadIsNamed(t *testing.T) {
	for _, c := range []struct {
		kind, file, password, keyPassword string
		want                              string
	}{
		{"JKS", "broker.jks", "simsim", "", "wrong password"}, {"JKS", "broker.jks", "sesame1", "simsim", "wrong password"}, {"PKCS12", "broker.p12", "simsim", "", "wrong password"},
		{"PKCS12", "broker.p12", "sesame1", "simsim", "another password"}, {"PKCS12", "make.sh", "sesame1", "", "not a key store"}, {"PEM", "make.sh", "", "", "no certificate"},
		{"BCFKS", "broker.jks", "sesame1", "", "type BCFKS"}, {"JKS", "none.jks", "x", "", "no such file"},
	} {
		_, err := Load(c.kind, made+c.file, c.password, c.keyPassword)
		assert.ErrorContains(t, err, c.want, c)
	}
}

func FuzzPEM(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "x")
	f.Fuzz(func(t *testing.T, text []byte, password string) { _, _ = parsePEM(text, text, password) })
}

func FuzzDecryptKey(f *testing.F) {
	f.Add([]byte{0x30, 0x00}, "x")
	f.Fuzz(func(t *testing.T, der []byte, password string) { _, _ = decryptKey(der, password) })
}

// together.p12 was made by keytool in the steps that Kafka's documentation has: a key, the authority as trusted, and then the key's certificate.
func TestAKeyAndWhomItTrustsMayBeInOneFile(t *testing.T) {
	s, err := Load("PKCS12", "testdata/together.p12", "sesame1", "")
	require.NoError(t, err)
	require.True(t, s.Keys[0].complete())
	require.Len(t, s.Keys[0].Chain, 2)
	assert.Equal(t, "server", s.Keys[0].Chain[0].Subject.CommonName)
	assert.Equal(t, "ca", s.Keys[0].Chain[1].Subject.CommonName)
	require.Len(t, s.Trusted, 1)
	assert.Equal(t, "ca", s.Trusted[0].Subject.CommonName)
}
