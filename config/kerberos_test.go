package config

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func krb5(options ...string) LoginModule {
	m := LoginModule{Class: krb5LoginModule, Options: map[string]string{}}
	for i := 0; i < len(options); i += 2 {
		m.Options[options[i]] = options[i+1]
	}
	return m
}

func TestALoginToKerberosIsByKeysOrByTickets(t *testing.T) {
	t.Setenv("KRB5CCNAME", "FILE:/run/tickets")
	keys := []string{"useKeyTab", "TRUE", "keyTab", "FILE:/etc/k", "principal", "kafka/h"}
	for _, c := range []struct {
		module     LoginModule
		configured string
		want       Kerberos
	}{
		{krb5(keys...), "kafka", Kerberos{Principal: "kafka/h", KeyTable: "/etc/k", Service: "kafka"}},
		{krb5(append(keys, "serviceName", "k")...), "", Kerberos{Principal: "kafka/h", KeyTable: "/etc/k", Service: "k"}},
		{krb5(append(keys, "serviceName", "k", "useTicketCache", "true")...), "k", Kerberos{Principal: "kafka/h", KeyTable: "/etc/k", Cache: "/run/tickets", Service: "k"}},
		{krb5("useTicketCache", "true", "ticketCache", "/home/a/t", "useKeyTab", "false", "keyTab", "/etc/k"), "kafka", Kerberos{Cache: "/home/a/t", Service: "kafka"}},
	} {
		k, found, err := KerberosLogin([]LoginModule{{Class: PlainLoginModule}, c.module}, c.configured)
		require.NoError(t, err)
		assert.True(t, found)
		assert.Equal(t, c.want, k)
	}
	t.Setenv("KRB5CCNAME", "")
	k, _, err := KerberosLogin([]LoginModule{krb5("useTicketCache", "true")}, "kafka")
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid()), k.Cache)
	_, found, err := KerberosLogin([]LoginModule{{Class: PlainLoginModule}}, "kafka")
	assert.NoError(t, err)
	assert.False(t, found)
}

func TestALoginToKerberosThatLacksSomethingIsRefused(t *testing.T) {
	for says, m := range map[string]LoginModule{
		"neither useKeyTab=true nor useTicketCache=true": krb5("principal", "a"),
		"useKeyTab wants keyTab":                         krb5("useKeyTab", "true", "keyTab", "/etc/k"),
		"and principal":                                  krb5("useKeyTab", "true", "principal", "a"),
		"is other, and":                                  krb5("useTicketCache", "true", "serviceName", "other"),
	} {
		_, found, err := KerberosLogin([]LoginModule{m}, "kafka")
		assert.True(t, found)
		assert.ErrorContains(t, err, says)
	}
	_, _, err := KerberosLogin([]LoginModule{krb5("useTicketCache", "true")}, "")
	assert.ErrorContains(t, err, "what brokers are called")
}

func TestTheKerberosFileIsWhereJavaAndOthersLookForIt(t *testing.T) {
	t.Setenv("KRB5_CONFIG", "/opt/krb5.conf:/opt/more")
	assert.Equal(t, "/etc/kafka/krb5.conf", KerberosFile("-Xmx1g -Djava.security.krb5.conf=/etc/kafka/krb5.conf"))
	assert.Equal(t, "/opt/krb5.conf", KerberosFile("-Xmx1g"))
	t.Setenv("KRB5_CONFIG", "")
	assert.Equal(t, "/etc/krb5.conf", KerberosFile(""))
}
