package zkaccess

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/zkstate/sasl"
)

func TestTheFileSaysWhetherAndHow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tls.properties")
	read := func(prefix, text string) (on bool, err error) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		access, err := Read(file, prefix, "")
		return access.TLS != nil, err
	}
	for text, want := range map[string]bool{
		"":                                    false,
		"zookeeper.ssl.truststore.location=x": false,
		"zookeeper.ssl.client.enable=true\nbroker.id=1\nanything=else":                         true,
		"authorizer.zookeeper.ssl.client.enable=false\nzookeeper.ssl.client.enable=true":       true,
		"zookeeper.ssl.client.enable=true\nzookeeper.clientCnxnSocket=ClientCnxnSocketNetty\n": true,
	} {
		on, err := read("", text)
		require.NoError(t, err, text)
		assert.Equal(t, want, on, text)
	}
	on, err := read("authorizer.", "authorizer.zookeeper.ssl.client.enable=true")
	require.NoError(t, err)
	assert.True(t, on)
	_, err = read("", "zookeeper.ssl.client.enable=true\nzookeeper.ssl.ocsp.enable=true")
	require.ErrorContains(t, err, "zookeeper.ssl.ocsp.enable: ")

	_, err = Read(filepath.Join(t.TempDir(), "none"), "", "")
	require.ErrorContains(t, err, "zk-tls-config-file: ")
	access, err := Read("", "", "")
	require.NoError(t, err)
	assert.Equal(t, Access{}, access)
	assert.False(t, access.Known())
}

func TestTheJAASFileSaysWhoComes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jaas.conf")
	require.NoError(t, os.WriteFile(file, []byte(`Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="x"; };`), 0o600))
	access, err := Read("", "", "-Djava.security.auth.login.config="+file)
	require.NoError(t, err)
	assert.Equal(t, Access{Account: sasl.Account{User: "kafka", Password: "x"}}, access)
	assert.True(t, access.Known())
}
