package admin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	. "barnabas/admin"
	"barnabas/config"
	"barnabas/config/secret"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

const (
	storePassword = "listener.name.outside.ssl.keystore.password"
	keyPassword   = "listener.name.outside.ssl.key.password"
)

var encoder = secret.Encoder{Secret: "s3cret", Cipher: "AES/CBC/PKCS5Padding", KeyBits: 128, Iterations: 1024}

// keeper is an admin that may keep passwords, and what it asked the broker to judge last.
func keeper(t *testing.T, passwords *secret.Encoder) (a *Admin, zk *zkstate.Client, judged *map[string]string) {
	t.Helper()
	_, zk = newAdmin(t, zktest.Embedded(t).Addr(), nil)
	values, err := config.New(nil)
	require.NoError(t, err)
	judged = new(map[string]string)
	return New(Config{BrokerID: 1, Table: NewConfigTable(values), Passwords: passwords, Log: logrus.NewEntry(logrus.New()), Judge: func(defaults bool, set map[string]string) error {
		assert.False(t, defaults)
		*judged = set
		if set[storePassword] == "wrong" {
			return errors.New("the key store cannot be opened")
		}
		return nil
	}}, zk), zk, judged
}

func stored(t *testing.T, zk *zkstate.Client) zkstate.EntityConfig {
	t.Helper()
	c, _, err := zk.EntityConfig(t.Context(), zkstate.BrokerEntity, "1")
	require.NoError(t, err)
	return c
}

var itself = Resource{Type: ResourceBroker, Name: "1"}

func editBroker(t *testing.T, a *Admin, ops ...ConfigOp) error {
	t.Helper()
	return a.IncrementalAlterConfigs(t.Context(), []IncrementalSpec{{Resource: itself, Ops: ops}}, false)[0].Err
}

func setTo(name, value string) ConfigOp { return ConfigOp{Name: name, Op: OpSet, Value: &value} }

func TestPasswordsAreKeptEncrypted(t *testing.T) {
	a, zk, judged := keeper(t, &encoder)
	require.NoError(t, editBroker(t, a, setTo(storePassword, "sesame1"), setTo("log.cleaner.threads", "2")))
	first := stored(t, zk)
	assert.NotContains(t, first[storePassword], "sesame1")
	plain, err := encoder.Decode(first[storePassword])
	require.NoError(t, err)
	assert.Equal(t, "sesame1", plain)
	assert.Equal(t, map[string]string{storePassword: "sesame1", "log.cleaner.threads": "2"}, *judged, "the broker judges what it will read")

	require.NoError(t, editBroker(t, a, setTo(keyPassword, "sesame2"), setTo("log.cleaner.threads", "3")))
	second := stored(t, zk)
	assert.Equal(t, first[storePassword], second[storePassword], "what did not change is left as it is")
	assert.Equal(t, map[string]string{storePassword: "sesame1", keyPassword: "sesame2", "log.cleaner.threads": "3"}, *judged)

	err = editBroker(t, a, setTo(storePassword, "wrong"))
	require.ErrorIs(t, err, kerr.InvalidRequest)
	assert.ErrorContains(t, err, "the key store cannot be opened")
	assert.Equal(t, second, stored(t, zk))

	for _, d := range a.DescribeConfigs(t.Context(), []DescribeSpec{{Resource: itself}}, DescribeOptions{Synonyms: true})[0].Configs {
		if IsPassword(d.Name) {
			assert.True(t, d.Sensitive, d.Name)
			assert.Nil(t, d.Value, d.Name)
			for _, s := range d.Synonyms {
				assert.Nil(t, s.Value, d.Name)
			}
		}
	}
}

func TestPasswordsThatCannotBeReadAreLeftAlone(t *testing.T) {
	a, zk, judged := keeper(t, nil)
	require.NoError(t, zk.SetEntityConfig(t.Context(), zkstate.BrokerEntity, "1", zkstate.EntityConfig{storePassword: "what another secret made of it"}))
	require.NoError(t, editBroker(t, a, setTo("log.cleaner.threads", "2")))
	assert.Equal(t, zkstate.EntityConfig{storePassword: "what another secret made of it", "log.cleaner.threads": "2"}, stored(t, zk))
	assert.Equal(t, map[string]string{"log.cleaner.threads": "2"}, *judged)

	err := editBroker(t, a, setTo(keyPassword, "sesame2"))
	require.ErrorIs(t, err, kerr.InvalidConfig)
	assert.ErrorContains(t, err, "Password encoder secret not configured")
	require.NoError(t, editBroker(t, a, ConfigOp{Name: storePassword, Op: OpDelete}))
	assert.NotContains(t, stored(t, zk), storePassword)
}

func TestWhatIsAPassword(t *testing.T) {
	for name, is := range map[string]bool{
		storePassword: true, keyPassword: true, "listener.name.a.ssl.truststore.password": true, "listener.name.a.ssl.keystore.key": true,
		"listener.name.a.scram-sha-256.sasl.jaas.config": true, "listener.name.a.ssl.keystore.location": false,
		"password.encoder.secret": false, "zookeeper.ssl.keystore.password": false, "my.password": false,
	} {
		assert.Equal(t, is, IsPassword(name), name)
	}
}

func TestAPasswordThatCannotBeReadIsToldWithoutItsText(t *testing.T) {
	text, err := encoder.Encode("sesame1")
	require.NoError(t, err)
	other := encoder
	other.Secret = "another"
	plain, unreadable := Decrypted(map[string]string{storePassword: text, "log.cleaner.threads": "2"}, &other)
	assert.Equal(t, map[string]string{"log.cleaner.threads": "2"}, plain)
	require.Len(t, unreadable, 1)
	assert.False(t, strings.Contains(unreadable[storePassword].Error(), text))
}
