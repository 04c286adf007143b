package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestZooKeeperIsToldWhoComes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jaas.conf")
	require.NoError(t, os.WriteFile(file, []byte(`
		KafkaServer { org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b"; };
		Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="a secret"; };
		Other { org.apache.zookeeper.server.auth.DigestLoginModule required username="other" password="x"; };
		Nameless { org.apache.zookeeper.server.auth.DigestLoginModule required password="x"; };
		Kerberos { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true; };`), 0o600))
	named := "-Xmx1g -Djava.security.auth.login.config=" + file
	for options, want := range map[string]*Account{
		"":    nil,
		named: {User: "kafka", Password: "a secret"},
		named + " -Dzookeeper.sasl.clientconfig=Other":   {User: "other", Password: "x"},
		named + " -Dzookeeper.sasl.clientconfig=Missing": nil,
		named + " -Dzookeeper.sasl.client=false":         nil,
	} {
		account, err := ZooKeeperLogin(options)
		require.NoError(t, err, options)
		assert.Equal(t, want, account, options)
	}
	for options, says := range map[string]string{
		named + " -Dzookeeper.sasl.clientconfig=Kerberos": "com.sun.security.auth.module.Krb5LoginModule",
		named + " -Dzookeeper.sasl.clientconfig=Nameless": "no username",
		named + "x": "no such file",
	} {
		_, err := ZooKeeperLogin(options)
		require.ErrorContains(t, err, says)
		assert.NotContains(t, err.Error(), "a secret")
	}
}
