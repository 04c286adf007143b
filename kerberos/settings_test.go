package kerberos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSettingsMayBeSpreadOverFiles(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"realm.conf": "[realms]\n EXAMPLE.COM = {\n  kdc = kdc.example.com\n }\n", "domains": "[domain_realm]\n .example.com = EXAMPLE.COM\n",
		".hidden.conf": "[libdefaults]\n default_realm = HIDDEN\n", "saved.conf~": "[libdefaults]\n default_realm = SAVED\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	file := write(t, "krb5.conf", fmt.Sprintf("includedir %s\nincludedir %s/not-there\n# a comment\n[libdefaults]\n\tdefault_realm = EXAMPLE.COM\n\tclockskew = 60\n\tdefault_ccache_name = KEYRING:persistent:%%{uid}\n[logging]\n kdc = FILE:/dev/null\n", folder, folder))
	conf, err := settings(file)
	require.NoError(t, err)
	assert.Equal(t, "EXAMPLE.COM", conf.LibDefaults.DefaultRealm)
	assert.Equal(t, time.Minute, conf.LibDefaults.Clockskew)
	assert.Equal(t, "EXAMPLE.COM", conf.ResolveRealm("broker1.example.com"))
	require.Len(t, conf.Realms, 1)
	assert.Equal(t, []string{"kdc.example.com:88"}, conf.Realms[0].KDC)
}

func TestSettingsThatCannotBeReadAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "krb5.conf")
	_, err := settings(file)
	assert.ErrorIs(t, err, os.ErrNotExist)
	for _, text := range []string{"include " + file + "\n", "include /not/there\n", "[libdefaults]\n default_realm\n", "[libdefaults]\n clockskew = soon\n", "[realms]\n X = {\n  auth_to_local_names = {\n   a = b\n  }\n }\n}\n"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := settings(file)
		assert.Error(t, err, text)
	}
}

func TestKeysThatAreNotThereAreNamed(t *testing.T) {
	conf := write(t, "krb5.conf", "[libdefaults]\n default_realm = "+realm+"\n")
	keys := writeKeys(t, keyTableOf(t, keyTypes["aes256-cts-hmac-sha1-96"], kafka, "secret"))
	for says, s := range map[string]Service{
		"no such file":       {ConfigFile: conf, Principal: kafka.String(), KeyTable: keys + "x"},
		"is no key table":    {ConfigFile: conf, Principal: kafka.String(), KeyTable: conf},
		"has no key of":      {ConfigFile: conf, Principal: "kafka/broker2.example.com", KeyTable: keys},
		"malformed Kerberos": {ConfigFile: conf, Principal: "kafka/a/b", KeyTable: keys},
		"krb5.conf":          {ConfigFile: conf + "x", Principal: kafka.String(), KeyTable: keys},
	} {
		_, err := NewAcceptor(s)
		assert.ErrorContains(t, err, says)
	}
	_, err := NewAcceptor(Service{ConfigFile: conf, Principal: kafka.local(), KeyTable: keys})
	assert.NoError(t, err, "of the default realm")
}

type names struct{ addrs, hosts map[string][]string }

func (n names) LookupAddr(_ context.Context, addr string) ([]string, error) {
	return n.find(n.addrs, addr)
}
func (n names) LookupHost(_ context.Context, host string) ([]string, error) {
	return n.find(n.hosts, host)
}
func (names) find(in map[string][]string, key string) ([]string, error) {
	if found := in[key]; found != nil {
		return found, nil
	}
	return nil, errors.New("unknown")
}

func TestServicesAreLookedForOnTheHostThatJavaWouldName(t *testing.T) {
	n := names{
		addrs: map[string][]string{"10.0.0.1": {"Broker1.Example.com."}, "127.0.0.1": {"localhost"}, "10.0.0.2": {"other.example.com.", "broker2.example.com."}},
		hosts: map[string][]string{"broker2": {"10.0.0.2"}, "broker1": {"10.0.0.9"}, "alias.example.com": {"10.0.0.1"}},
	}
	for addr, want := range map[string]string{
		"10.0.0.1:9092": "broker1.example.com", "127.0.0.1:9092": "localhost", "10.0.0.3:9092": "10.0.0.3", "[::1]:9092": "::1",
		"Broker2:9092": "broker2.example.com", "broker1:9092": "broker1", "unknown:9092": "unknown", "ALIAS.example.com:9092": "alias.example.com", "bare": "bare",
	} {
		assert.Equal(t, want, ServiceHost(t.Context(), addr, n), addr)
	}
}
