package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bearing are the settings of a listener INSIDE with OAUTHBEARER.
func bearing(t *testing.T, more map[string]string) (*Values, error) {
	t.Helper()
	set := map[string]string{
		"listeners": "INSIDE://h:1", "listener.security.protocol.map": "INSIDE:SASL_SSL", "inter.broker.listener.name": "INSIDE",
		"sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
	}
	for name, value := range more {
		set[name] = value
	}
	return New(set)
}

func TestKafkasOwnHandlersOfTokensAreServedWhereKafkaLooksForThem(t *testing.T) {
	const server, login = "listener.name.inside.oauthbearer.sasl.server.callback.handler.class", "listener.name.inside.oauthbearer.sasl.login.callback.handler.class"
	v, err := bearing(t, nil)
	require.NoError(t, err)
	assert.False(t, v.SignedTokens("INSIDE") || v.IssuedTokens("INSIDE"))
	for _, older := range []string{"", "secured."} {
		v, err = bearing(t, map[string]string{server: bearerPackage + older + "OAuthBearerValidatorCallbackHandler", login: bearerPackage + older + "OAuthBearerLoginCallbackHandler"})
		require.NoError(t, err)
		assert.True(t, v.SignedTokens("INSIDE") && v.IssuedTokens("INSIDE"))
		assert.False(t, v.SignedTokens("OUTSIDE") || v.IssuedTokens("OUTSIDE"))
		assert.Empty(t, v.WithoutEffect())
	}
	_, err = bearing(t, map[string]string{server: bearerPackage + "internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"})
	require.NoError(t, err)
	_, err = bearing(t, map[string]string{"sasl.server.callback.handler.class": bearerPackage + "OAuthBearerValidatorCallbackHandler"})
	assert.ErrorContains(t, err, "listener.name.LISTENER.oauthbearer.sasl.server.callback.handler.class")
	for name, class := range map[string]string{
		server:                               "org.example.Handler",
		login:                                bearerPackage + "OAuthBearerValidatorCallbackHandler",
		"sasl.server.callback.handler.class": bearerPackage + "OAuthBearerValidatorCallbackHandler",
		"listener.name.inside.sasl.server.callback.handler.class":               bearerPackage + "OAuthBearerValidatorCallbackHandler",
		"listener.name.inside.scram-sha-256.sasl.server.callback.handler.class": bearerPackage + "OAuthBearerValidatorCallbackHandler",
		"listener.name.inside.oauthbearer.sasl.client.callback.handler.class":   bearerPackage + "OAuthBearerLoginCallbackHandler",
	} {
		_, err := bearing(t, map[string]string{name: class})
		assert.ErrorContains(t, err, name)
	}
}

func TestASettingMayHoldForOneMechanism(t *testing.T) {
	const name = "sasl.oauthbearer.expected.issuer"
	set := map[string]string{name: "all"}
	for _, c := range []struct{ key, value, want string }{{"", "", "all"}, {"listener.name.inside." + name, "listener", "listener"}, {"listener.name.inside.oauthbearer." + name, "mechanism", "mechanism"}} {
		if c.key != "" {
			set[c.key] = c.value
		}
		v, err := bearing(t, set)
		require.NoError(t, err)
		assert.Equal(t, c.want, v.ForMechanism("INSIDE", OAuthBearer, name))
		assert.Equal(t, "sub", v.ForMechanism("INSIDE", OAuthBearer, "sasl.oauthbearer.sub.claim.name"))
	}
}

func TestTokensWantOneEntryOfTheirLoginModule(t *testing.T) {
	bearer, plain := LoginModule{Class: OAuthBearerLoginModule, Options: map[string]string{"a": "b"}}, LoginModule{Class: PlainLoginModule}
	options, err := BearerOptions([]LoginModule{plain, bearer})
	require.NoError(t, err)
	assert.Equal(t, bearer.Options, options)
	for _, modules := range [][]LoginModule{nil, {plain}, {bearer, bearer}} {
		_, err := BearerOptions(modules)
		assert.ErrorContains(t, err, OAuthBearerLoginModule)
	}
}

func TestURLsForTokensMayBeRestricted(t *testing.T) {
	assert.Nil(t, AllowedTokenURLs("-Xmx1g"))
	assert.Equal(t, []string{"https://a/keys", "https://a/token"}, AllowedTokenURLs("-Xmx1g -Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://a/keys,https://a/token"))
}
