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
		Foreign { org.example.LoginModule required; };
		Keyless { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true; };
		Kerberos { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/etc/kafka.keytab" principal="kafka/h@X" serviceName="kafka"; };`), 0o600))
	named := "-Xmx1g -Djava.security.auth.login.config=" + file
	for options, want := range map[string]*Account{
		"":    nil,
		named: {User: "kafka", Password: "a secret"},
		named + " -Dzookeeper.sasl.clientconfig=Other":   {User: "other", Password: "x"},
		named + " -Dzookeeper.sasl.clientconfig=Missing": nil,
		named + " -Dzookeeper.sasl.client=false":         nil,
	} {
		account, ticket, err := ZooKeeperLogin(options)
		require.NoError(t, err, options)
		assert.Nil(t, ticket, options)
		assert.Equal(t, want, account, options)
	}
	for options, service := range map[string]string{"": "zookeeper", " -Dzookeeper.sasl.client.username=zk": "zk"} {
		account, ticket, err := ZooKeeperLogin(named + " -Dzookeeper.sasl.clientconfig=Kerberos" + options)
		require.NoError(t, err)
		assert.Nil(t, account)
		assert.Equal(t, &Kerberos{Principal: "kafka/h@X", KeyTable: "/etc/kafka.keytab", Service: service}, ticket)
	}
	for options, says := range map[string]string{
		named + " -Dzookeeper.sasl.clientconfig=Foreign":  "org.example.LoginModule",
		named + " -Dzookeeper.sasl.clientconfig=Keyless":  "useKeyTab wants keyTab and principal",
		named + " -Dzookeeper.sasl.clientconfig=Nameless": "no username",
		named + "x": "no such file",
	} {
		_, _, err := ZooKeeperLogin(options)
		require.ErrorContains(t, err, says)
		assert.NotContains(t, err.Error(), "a secret")
	}
}
