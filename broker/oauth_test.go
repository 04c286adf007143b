package broker

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/sirupsen/logrus"
	logged "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/config"
)

const (
	bearerPackage = "org.apache.kafka.common.security.oauthbearer."
	inside        = "listener.name.inside."
)

// bearing is the security of a broker with OAUTHBEARER between brokers.
func bearing(t *testing.T, log *logrus.Logger, changes map[string]string) (*security, error) {
	t.Helper()
	set := map[string]string{
		"listeners": "INSIDE://127.0.0.1:0", "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT", "inter.broker.listener.name": "INSIDE",
		"sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
		inside + "oauthbearer.sasl.jaas.config": config.OAuthBearerLoginModule + ` required unsecuredLoginStringClaim_sub="broker";`,
	}
	for name, value := range changes {
		if set[name] = value; value == "" {
			delete(set, name)
		}
	}
	v, err := config.New(set)
	require.NoError(t, err)
	return newSecurity(t.Context(), v, nil, nil, logrus.NewEntry(log))
}

// comesIn is as whom a broker comes in by its own listener.
func comesIn(t *testing.T, s *security) (string, error) {
	t.Helper()
	_, first, err := s.between.SASL.Authenticate(t.Context(), "b1:9092")
	require.NoError(t, err)
	_, proven, err := s.gate.Offers("INSIDE")[0].Begin().Step(first)
	return proven.User, err
}

func TestTokensThatNobodySignsAreBelievedWithAWarning(t *testing.T) {
	log, hook := logged.NewNullLogger()
	s, err := bearing(t, log, nil)
	require.NoError(t, err)
	user, err := comesIn(t, s)
	require.NoError(t, err)
	assert.Equal(t, "broker", user)
	require.Len(t, hook.AllEntries(), 1)
	assert.Equal(t, logrus.WarnLevel, hook.LastEntry().Level)
	assert.Contains(t, hook.LastEntry().Message, "listener INSIDE believes OAUTHBEARER tokens that NOBODY HAS SIGNED")
}

func TestSignedTokensAreBelievedByTheSettingsOfTheListener(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1"}}})
	require.NoError(t, err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "1"))
	require.NoError(t, err)
	signed, err := signer.Sign(fmt.Appendf(nil, `{"sub":"x","client":"b1","iat":%d,"exp":%d,"aud":"kafka"}`, time.Now().Unix(), time.Now().Unix()+3600))
	require.NoError(t, err)
	token, err := signed.CompactSerialize()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "keys"), keys, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600))
	set := map[string]string{
		inside + "oauthbearer.sasl.jaas.config":                   config.OAuthBearerLoginModule + " required;",
		inside + "oauthbearer.sasl.server.callback.handler.class": bearerPackage + "OAuthBearerValidatorCallbackHandler",
		inside + "oauthbearer.sasl.login.callback.handler.class":  bearerPackage + "OAuthBearerLoginCallbackHandler",
		"sasl.oauthbearer.jwks.endpoint.url":                      "file://" + dir + "/keys",
		"sasl.oauthbearer.token.endpoint.url":                     "file://" + dir + "/token",
		inside + "oauthbearer.sasl.oauthbearer.expected.audience": "kafka",
		inside + "sasl.oauthbearer.sub.claim.name":                "client",
	}
	log, hook := logged.NewNullLogger()
	s, err := bearing(t, log, set)
	require.NoError(t, err)
	user, err := comesIn(t, s)
	require.NoError(t, err)
	assert.Equal(t, "b1", user)
	assert.Empty(t, hook.AllEntries())
	keepers := append(s.keepers, s.entrance("INSIDE").keepers...)
	assert.Len(t, keepers, 2)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, keep := range keepers {
		keep(ended)
	}

	set[inside+"oauthbearer.sasl.oauthbearer.expected.audience"] = "another"
	s, err = bearing(t, log, set)
	require.NoError(t, err)
	user, err = comesIn(t, s)
	require.NoError(t, err, "the client is told first")
	assert.Empty(t, user)
}

func TestABrokerThatCannotDealWithTokensDoesNotStart(t *testing.T) {
	t.Setenv("KAFKA_OPTS", "")
	const jaas, server, login = inside + "oauthbearer.sasl.jaas.config", inside + "oauthbearer.sasl.server.callback.handler.class", inside + "oauthbearer.sasl.login.callback.handler.class"
	for want, changes := range map[string]map[string]string{
		"listener INSIDE: OAUTHBEARER wants one entry of":                  {jaas: ""},
		"listener INSIDE: unsecuredValidatorAllowableClockSkewMs":          {jaas: config.OAuthBearerLoginModule + ` required unsecuredLoginStringClaim_sub="b" unsecuredValidatorAllowableClockSkewMs="x";`},
		"listener INSIDE: the login module has no option unsecuredLogin":   {jaas: config.OAuthBearerLoginModule + " required;"},
		"listener INSIDE: sasl.oauthbearer.jwks.endpoint.url is not set":   {server: bearerPackage + "OAuthBearerValidatorCallbackHandler"},
		"listener INSIDE: sasl.oauthbearer.token.endpoint.url is not set":  {login: bearerPackage + "OAuthBearerLoginCallbackHandler"},
		"listener INSIDE: sasl.oauthbearer.token.endpoint.url: open /none": {login: bearerPackage + "OAuthBearerLoginCallbackHandler", "sasl.oauthbearer.token.endpoint.url": "file:/none"},
	} {
		log, _ := logged.NewNullLogger()
		_, err := bearing(t, log, changes)
		assert.ErrorContains(t, err, want)
	}
	t.Setenv("KAFKA_OPTS", "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://issuer/keys")
	log, _ := logged.NewNullLogger()
	_, err := bearing(t, log, map[string]string{login: bearerPackage + "OAuthBearerLoginCallbackHandler", "sasl.oauthbearer.token.endpoint.url": "file:/none"})
	assert.ErrorContains(t, err, "allowed.urls")
}
