package tools

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const bearerPackage = "org.apache.kafka.common.security.oauthbearer."

func TestABearerTokenIsMadeOrIssuedAsTheSettingsSay(t *testing.T) {
	set := map[string]string{"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": bearerPackage + `OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice" unsecuredLoginExtension_x="y";`}
	m, err := login(set)
	require.NoError(t, err)
	assert.Equal(t, "OAUTHBEARER", m.Name())
	_, first, err := m.Authenticate(t.Context(), "b1:9092")
	require.NoError(t, err)
	assert.Regexp(t, "^n,,\x01auth=Bearer [^.]+\\.[^.]+\\.\x01x=y\x01\x01$", string(first))

	t.Setenv("KAFKA_OPTS", "")
	const handler, url = "sasl.login.callback.handler.class", "sasl.oauthbearer.token.endpoint.url"
	for want, changes := range map[string]map[string]string{
		"OAUTHBEARER wants one entry of":                {"sasl.jaas.config": ""},
		"has no option unsecuredLoginStringClaim_sub":   {"sasl.jaas.config": bearerPackage + "OAuthBearerLoginModule required;"},
		"org.example.Handler is Java code":              {handler: "org.example.Handler"},
		url + " is not set":                             {handler: bearerPackage + "secured.OAuthBearerLoginCallbackHandler"},
		"needs the options clientId and clientSecret":   {handler: bearerPackage + "OAuthBearerLoginCallbackHandler", url: "http://issuer/token"},
		"sasl.login.refresh.window.factor: \"x\" is no": {"sasl.login.refresh.window.factor": "x"},
	} {
		with := map[string]string{}
		for _, s := range []map[string]string{set, changes} {
			for name, value := range s {
				with[name] = value
			}
		}
		_, err := login(with)
		assert.ErrorContains(t, err, want)
	}
}
