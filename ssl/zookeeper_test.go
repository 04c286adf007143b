package ssl

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func zooKeeperOf(settings map[string]string) (func(addr string) *tls.Config, error) {
	defaults := map[string]string{"zookeeper.ssl.protocol": "TLSv1.2", "zookeeper.ssl.endpoint.identification.algorithm": "HTTPS", "zookeeper.ssl.client.enable": "false"}
	return ZooKeeper(func(name string) string {
		if value, set := settings[name]; set {
			return value
		}
		return defaults[name]
	})
}

func TestZooKeeperIsSpokenToInPlaintextUnlessTheSettingsSayOtherwise(t *testing.T) {
	for _, settings := range []map[string]string{
		{},
		{"zookeeper.ssl.client.enable": "FALSE", "zookeeper.ssl.keystore.location": "/is/not/there"},
		{"zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNIO", "zookeeper.ssl.ocsp.enable": "true"},
		{"zookeeper.clientCnxnSocket": "ClientCnxnSocketNetty"},
	} {
		configs, err := zooKeeperOf(settings)
		require.NoError(t, err)
		assert.Nil(t, configs, "%v", settings)
	}
	for _, settings := range []map[string]string{
		{"zookeeper.ssl.client.enable": "true"},
		{"zookeeper.ssl.client.enable": "TRUE", "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty"},
	} {
		configs, err := zooKeeperOf(settings)
		require.NoError(t, err)
		require.NotNil(t, configs, "%v", settings)
		c := configs("zk.example:2281")
		assert.Equal(t, "zk.example", c.ServerName)
		assert.Equal(t, []uint16{tls.VersionTLS12, tls.VersionTLS12}, []uint16{c.MinVersion, c.MaxVersion}, "only the one of zookeeper.ssl.protocol is on")
	}
}

func TestSettingsOfZooKeeperThatCannotBeServedAreNamed(t *testing.T) {
	for name, value := range map[string]string{
		"zookeeper.clientCnxnSocket":                      "com.example.Socket",
		"zookeeper.ssl.crl.enable":                        "true",
		"zookeeper.ssl.ocsp.enable":                       "true",
		"zookeeper.ssl.enabled.protocols":                 "SSLv3",
		"zookeeper.ssl.cipher.suites":                     "TLS_NONE",
		"zookeeper.ssl.endpoint.identification.algorithm": "LDAPS",
		"zookeeper.ssl.keystore.location":                 "/is/not/there.pem",
		"zookeeper.ssl.truststore.location":               "/is/not/there.pem",
	} {
		_, err := zooKeeperOf(map[string]string{"zookeeper.ssl.client.enable": "true", name: value})
		require.Error(t, err)
		assert.Regexp(t, "^"+name+": ", err.Error())
	}
	_, err := zooKeeperOf(map[string]string{"zookeeper.ssl.client.enable": "true", "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNIO"})
	assert.ErrorContains(t, err, "zookeeper.clientCnxnSocket: ", "one that cannot encrypt")
	_, err = zooKeeperOf(map[string]string{"zookeeper.clientCnxnSocket": "com.example.Socket"})
	assert.ErrorContains(t, err, "zookeeper.clientCnxnSocket: ", "in plaintext, too")
}

func TestStoresTowardsZooKeeperMayBeOfAnyKind(t *testing.T) {
	for name, settings := range map[string]map[string]string{
		"JKS by default": {"zookeeper.ssl.keystore.location": "testdata/key.jks", "zookeeper.ssl.keystore.password": "sesame",
			"zookeeper.ssl.truststore.location": "testdata/trust.jks", "zookeeper.ssl.truststore.password": "sesame"},
		"PKCS12 by the name": {"zookeeper.ssl.keystore.location": "testdata/together.p12", "zookeeper.ssl.keystore.password": "sesame1"},
		"PEM by the name":    {"zookeeper.ssl.truststore.location": "testdata/cert.pem", "zookeeper.ssl.truststore.password": "counts for nothing"},
		"TLS 1.3 by name":    {"zookeeper.ssl.enabled.protocols": "TLSv1.2,TLSv1.3"},
	} {
		settings["zookeeper.ssl.client.enable"] = "true"
		configs, err := zooKeeperOf(settings)
		require.NoError(t, err, name)
		c := configs("h:1")
		assert.Equal(t, settings["zookeeper.ssl.keystore.location"] != "", len(c.Certificates) > 0, name)
		assert.Equal(t, settings["zookeeper.ssl.truststore.location"] != "", c.RootCAs != nil, name)
		if name == "TLS 1.3 by name" {
			assert.Equal(t, uint16(tls.VersionTLS13), c.MaxVersion)
		}
	}
}
