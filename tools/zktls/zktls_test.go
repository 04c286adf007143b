package zktls

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheFileSaysWhetherAndHow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tls.properties")
	read := func(prefix, text string) (on bool, err error) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		secure, err := Read(file, prefix)
		return secure != nil, err
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

	_, err = Read(filepath.Join(t.TempDir(), "none"), "")
	require.ErrorContains(t, err, "zk-tls-config-file: ")
	secure, err := Read("", "")
	require.NoError(t, err)
	assert.Nil(t, secure)
}
