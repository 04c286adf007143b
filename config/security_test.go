package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const plainModule = `org.apache.kafka.common.security.plain.PlainLoginModule required
  username="admin" password='a"b' // a comment
  user_admin="a\"b" user_bob = "c;d{}" /* another */ user_eve=word;`

func TestJAASConfigurationsAreRead(t *testing.T) {
	m, err := ParseJAASConfig(plainModule)
	require.NoError(t, err)
	assert.Equal(t, LoginModule{PlainLoginModule, map[string]string{"username": "admin", "password": `a"b`, "user_admin": `a"b`, "user_bob": "c;d{}", "user_eve": "word"}}, m)

	f, err := ParseJAASFile("inside.KafkaServer {\n" + plainModule + "\n};\nKafkaServer { " + ScramLoginModule + " required username=u; " + plainModule + " };\nClient {};")
	require.NoError(t, err)
	assert.Len(t, f["inside.KafkaServer"], 1)
	assert.Len(t, f["KafkaServer"], 2)
	assert.Equal(t, "u", f["KafkaServer"][0].Options["username"])
}

func TestFaultyJAASTextsAreNotQuoted(t *testing.T) {
	for _, text := range []string{"", "a.B", "a.B required", "a.B never x=secret;", "a.B required x=secret", `a.B required x="secret;`, "a.B required x secret;", "a.B required; a.C required;", "/* secret", "a.B required =;"} {
		_, err := ParseJAASConfig(text)
		require.Error(t, err, text)
		assert.NotContains(t, err.Error(), "secret")
	}
	for _, text := range []string{"K", "K {", "K { a.B required x=secret; }", "K { a.B };", "{ };"} {
		_, err := ParseJAASFile(text)
		require.Error(t, err, text)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func FuzzJAAS(f *testing.F) {
	f.Add(plainModule)
	f.Add("K { " + plainModule + " };")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = ParseJAASConfig(text)
		_, _ = ParseJAASFile(text)
	})
}

func TestTheJAASFileIsWhereJavaLooksForIt(t *testing.T) {
	assert.Equal(t, "/etc/kafka/jaas.conf", LoginFile(`-Xmx1g -Djava.security.auth.login.config=/etc/kafka/jaas.conf -Dx=y`))
	assert.Equal(t, "/etc/kafka/jaas.conf", LoginFile(`"-Djava.security.auth.login.config=file:/etc/kafka/jaas.conf"`))
	assert.Empty(t, LoginFile("-Xmx1g"))
	name := filepath.Join(t.TempDir(), "jaas.conf")
	require.NoError(t, os.WriteFile(name, []byte("KafkaServer { "+plainModule+" };"), 0o600))
	f, err := ReadJAASFile(name)
	require.NoError(t, err)
	assert.Len(t, f["KafkaServer"], 1)
}

func secured(t *testing.T, more map[string]string) *Values {
	set := map[string]string{
		"listeners": "INSIDE://h:1,OUTSIDE://h:2", "listener.security.protocol.map": "INSIDE:SASL_SSL,OUTSIDE:SSL", "inter.broker.listener.name": "INSIDE",
		"sasl.enabled.mechanisms": "PLAIN", "sasl.mechanism.inter.broker.protocol": "PLAIN",
	}
	for name, value := range more {
		set[name] = value
	}
	v, err := New(set)
	require.NoError(t, err)
	return v
}

func TestAListenersOwnSettingsCountBeforeThoseOfAll(t *testing.T) {
	v := secured(t, map[string]string{
		"ssl.keystore.location": "all", "listener.name.outside.ssl.keystore.location": "own", "connections.max.reauth.ms": "1",
		"listener.name.inside.connections.max.reauth.ms": "2", "listener.name.inside.plain.connections.max.reauth.ms": "3",
	})
	assert.Equal(t, "own", v.ForListener("OUTSIDE", "ssl.keystore.location"))
	assert.Equal(t, "all", v.ForListener("INSIDE", "ssl.keystore.location"))
	assert.EqualValues(t, 3, v.MaxReauth("INSIDE", Plain))
	assert.EqualValues(t, 2, v.MaxReauth("INSIDE", ScramSHA256))
	assert.EqualValues(t, 1, v.MaxReauth("OUTSIDE", Plain))
}

func TestLoginsComeFromTheSettingThatNamesTheMechanismOrFromTheFile(t *testing.T) {
	file := JAASFile{"inside.KafkaServer": {{Class: "inside"}}, "KafkaServer": {{Class: "all"}}}
	v := secured(t, map[string]string{"listener.name.inside.plain.sasl.jaas.config": plainModule, "sasl.jaas.config": "counts for nothing"})
	for _, c := range []struct{ listener, mechanism, class string }{{"INSIDE", Plain, PlainLoginModule}, {"INSIDE", ScramSHA512, "inside"}, {"OUTSIDE", Plain, "all"}} {
		modules, err := v.Logins(c.listener, c.mechanism, file)
		require.NoError(t, err)
		require.Len(t, modules, 1)
		assert.Equal(t, c.class, modules[0].Class)
	}
}
