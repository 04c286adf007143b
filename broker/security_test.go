package broker

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/admin"
	"barnabas/broker/auth"
	"barnabas/broker/netserver"
	"barnabas/config"
	"barnabas/ssl"
	"barnabas/zkstate"
)

const (
	madeStores = "../integration/security/testdata/"
	plainUsers = config.PlainLoginModule + ` required username="broker" password="broker-secret" user_broker="broker-secret" user_alice="alice-secret";`
)

// secured is the security of a broker with SASL_SSL between brokers and SSL for clients; changes of "" take settings away.
func secured(t *testing.T, changes map[string]string) (*security, error) {
	t.Helper()
	set := map[string]string{
		"listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0", "listener.security.protocol.map": "INSIDE:SASL_SSL,OUTSIDE:SSL", "inter.broker.listener.name": "INSIDE",
		"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512", "sasl.mechanism.inter.broker.protocol": "PLAIN", "connections.max.reauth.ms": "5000",
		"listener.name.inside.plain.sasl.jaas.config": plainUsers,
		"ssl.keystore.location":                       madeStores + "broker.jks", "ssl.keystore.password": "sesame1",
		"ssl.truststore.location": madeStores + "trust.jks", "ssl.truststore.password": "sesame1", "ssl.client.auth": "required",
	}
	for name, value := range changes {
		if set[name] = value; value == "" {
			delete(set, name)
		}
	}
	v, err := config.New(set)
	require.NoError(t, err)
	return newSecurity(t.Context(), v, newCredentials(nil, quiet()), nil, quiet())
}

func TestListenersOfferWhatTheirSettingsSay(t *testing.T) {
	s, err := secured(t, nil)
	require.NoError(t, err)
	inside, outside := s.open()[0].Listener, s.open()[1].Listener
	assert.Equal(t, tls.NoClientCert, inForce(t, inside).ClientAuth, "SASL tells who a client is")
	assert.Equal(t, tls.RequireAndVerifyClientCert, inForce(t, outside).ClientAuth)
	require.Len(t, s.gate.Offers("INSIDE"), 2)
	assert.Empty(t, s.gate.Offers("OUTSIDE"))
	assert.Equal(t, 5*time.Second, s.gate.Offers("INSIDE")[1].Lifetime)
	_, proven, err := s.gate.Offers("INSIDE")[0].Begin().Step([]byte("\x00alice\x00alice-secret"))
	require.NoError(t, err)
	assert.Equal(t, auth.Identity{User: "alice"}, proven)
	assert.True(t, s.usesCredentials())
	assert.Equal(t, "PLAIN", s.between.SASL.Name())
	assert.Equal(t, "b1", s.between.TLS("b1:9092").ServerName)

	s, err = secured(t, map[string]string{"listener.name.inside.ssl.client.auth": "requested", "sasl.enabled.mechanisms": "PLAIN"})
	require.NoError(t, err)
	assert.Equal(t, tls.VerifyClientCertIfGiven, inForce(t, s.open()[0].Listener).ClientAuth, "unless the listener itself asks for a certificate")
	assert.False(t, s.usesCredentials())
}

func TestTheControlPlaneIsSecuredByItsOwnListener(t *testing.T) {
	s, err := secured(t, nil)
	require.NoError(t, err)
	assert.Equal(t, "PLAIN", s.control.SASL.Name(), "that between brokers, where it has none")

	s, err = secured(t, map[string]string{"control.plane.listener.name": "OUTSIDE"})
	require.NoError(t, err)
	assert.Nil(t, s.control.SASL)
	assert.NotNil(t, s.control.TLS)
	assert.Equal(t, "PLAIN", s.between.SASL.Name())
	require.NoError(t, s.reload(s.values))
}

// inForce is what a client would be met with now.
func inForce(t *testing.T, l netserver.Listener) *tls.Config {
	t.Helper()
	c, err := l.TLS.GetConfigForClient(nil)
	require.NoError(t, err)
	return c
}

func TestAListenerThatGoesNeedsNoKeyStore(t *testing.T) {
	s, err := secured(t, nil)
	require.NoError(t, err)
	dynamic := zkstate.EntityConfig{"listener.name.outside.ssl.keystore.location": "/nowhere"}
	stays, err := layered(s.values, nil, dynamic)
	require.NoError(t, err)
	require.Error(t, s.check(stays))
	dynamic["listeners"] = "INSIDE://127.0.0.1:0"
	goes, err := layered(s.values, nil, dynamic)
	require.NoError(t, err)
	require.NoError(t, s.check(goes))
}

func TestKeyStoresMayBeAlteredWhileTheBrokerRuns(t *testing.T) {
	s, err := secured(t, nil)
	require.NoError(t, err)
	shown := func(i int) []byte { return inForce(t, s.open()[i].Listener).Certificates[0].Certificate[0] }
	inside, outside := shown(0), shown(1)
	file := filepath.Join(t.TempDir(), "own.jks")
	copyFile := func(name string) {
		text, err := os.ReadFile(madeStores + name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
	copyFile("client.jks")
	altered, err := layered(s.values, nil, zkstate.EntityConfig{"listener.name.outside.ssl.keystore.location": file})
	require.NoError(t, err)
	require.NoError(t, s.reload(altered))
	assert.Equal(t, inside, shown(0))
	assert.NotEqual(t, outside, shown(1))
	assert.Equal(t, tls.RequireAndVerifyClientCert, inForce(t, s.open()[1].Listener).ClientAuth)

	copyFile("broker.jks")
	require.NoError(t, s.reload(altered))
	assert.Equal(t, outside, shown(1), "the file is read again")

	require.NoError(t, os.WriteFile(file, []byte("no key store"), 0o600))
	assert.ErrorContains(t, s.reload(altered), "listener OUTSIDE: ssl.keystore.location")
	assert.Equal(t, outside, shown(1))
}

func TestUsersMayStandInTheFileThatKafkaOptsName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jaas.conf")
	require.NoError(t, os.WriteFile(file, []byte("KafkaServer { "+plainUsers+" };"), 0o600))
	t.Setenv("KAFKA_OPTS", "-Dx=y -Djava.security.auth.login.config="+file)
	s, err := secured(t, map[string]string{"listener.name.inside.plain.sasl.jaas.config": ""})
	require.NoError(t, err)
	assert.NotNil(t, s.between.SASL)
}

func TestAStartThatWouldServeLessThanIsMeantIsRefused(t *testing.T) {
	t.Setenv("KAFKA_OPTS", "")
	for want, changes := range map[string]map[string]string{
		"listener INSIDE: PLAIN has no users: listener.name.inside.plain.sasl.jaas.config":             {"listener.name.inside.plain.sasl.jaas.config": ""},
		"listener INSIDE: PLAIN has no users":                                                          {"listener.name.inside.plain.sasl.jaas.config": "org.example.Module required user_alice=alice-secret;"},
		"listener INSIDE: listener.name.inside.plain.sasl.jaas.config: JAAS":                           {"listener.name.inside.plain.sasl.jaas.config": "nonsense alice-secret"},
		"brokers authenticate to each other by SCRAM-SHA-512, and neither listener.name.inside.scram-": {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"},
		"listener OUTSIDE: ssl.keystore.location: open":                                                {"listener.name.outside.ssl.keystore.location": "none.jks"},
		"listener OUTSIDE: ssl.principal.mapping.rules":                                                {"listener.name.outside.ssl.principal.mapping.rules": "RULE:x"},
	} {
		_, err := secured(t, changes)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "alice-secret")
	}
}

func TestPrincipalsAreNamedByTheRulesOfTheListener(t *testing.T) {
	store, err := ssl.Load("JKS", madeStores+"client.jks", "sesame1", "")
	require.NoError(t, err)
	for rules, want := range map[string]string{"": `User:CN=client,OU=Tests,O=Barnabas\, the broker,C=AQ`, "RULE:^CN=(.*?),.*$/$1/U": "User:CLIENT"} {
		s, err := secured(t, map[string]string{"listener.name.outside.ssl.principal.mapping.rules": rules})
		require.NoError(t, err)
		p, err := s.open()[1].Identify(store.Keys[0].Chain[0])
		require.NoError(t, err)
		assert.Equal(t, want, p.String())
	}
}

func TestCredentialsFollowTheSettingsOfUsers(t *testing.T) {
	c := newCredentials(nil, quiet())
	text := admin.NewScramCredential(admin.ScramSHA256, []byte("salt"), []byte("salted"), 4096).String()
	c.changed("a%40b", zkstate.EntityConfig{"SCRAM-SHA-256": text, "producer_byte_rate": "1"})
	found, known := c.lookup("SCRAM-SHA-256")("a@b")
	assert.True(t, known)
	assert.Equal(t, 4096, found.Iterations)
	_, known = c.lookup("SCRAM-SHA-512")("a@b")
	assert.False(t, known)
	c.changed("a%40b", zkstate.EntityConfig{"SCRAM-SHA-256": "nonsense"})
	_, known = c.lookup("SCRAM-SHA-256")("a@b")
	assert.False(t, known)
	c.changed("a%40b", zkstate.EntityConfig{"SCRAM-SHA-256": text})
	c.changed("a%40b", zkstate.EntityConfig{})
	_, known = c.lookup("SCRAM-SHA-256")("a@b")
	assert.False(t, known)
}
