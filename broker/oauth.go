package broker

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"

	"barnabas/broker/auth"
	"barnabas/config"
	"barnabas/oauth"
)

// bearerConfig is what a listener's settings say of bearer tokens.
func (s *security) bearerConfig(v *config.Values, listener string) (oauth.Config, error) {
	modules, err := v.Logins(listener, config.OAuthBearer, s.logins)
	if err != nil {
		return oauth.Config{}, err
	}
	options, err := config.BearerOptions(modules)
	if err != nil {
		return oauth.Config{}, fmt.Errorf("%w in %s, or in a JAAS file that KAFKA_OPTS names", err, config.OnListener(listener, strings.ToLower(config.OAuthBearer)+".sasl.jaas.config"))
	}
	return oauth.Config{
		Setting:     func(name string) string { return v.ForMechanism(listener, config.OAuthBearer, name) },
		Options:     options,
		AllowedURLs: config.AllowedTokenURLs(os.Getenv("KAFKA_OPTS")),
	}, nil
}

// bearers is the server's side of OAUTHBEARER, and what keeps the keys fresh that tokens are signed with.
func (s *security) bearers(ctx context.Context, v *config.Values, listener string) (auth.Mechanism, keeper, error) {
	c, err := s.bearerConfig(v, listener)
	if err != nil {
		return nil, nil, err
	}
	if !v.SignedTokens(listener) {
		tokens, err := oauth.NewUnsecured(c)
		if err != nil {
			return nil, nil, err
		}
		s.log.Warnf("listener %s believes OAUTHBEARER tokens that NOBODY HAS SIGNED: whoever reaches it can be anybody. This is the default of Apache Kafka, for development only; "+
			"signatures are checked with %s=org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler and sasl.oauthbearer.jwks.endpoint.url",
			listener, config.OnListener(listener, strings.ToLower(config.OAuthBearer)+".sasl.server.callback.handler.class"))
		return &auth.OAuthBearer{Tokens: tokens, Now: time.Now}, nil, nil
	}
	keys, err := oauth.ReadKeys(ctx, c, s.log)
	if err != nil {
		return nil, nil, err
	}
	tokens, err := oauth.NewSigned(c, keys)
	return &auth.OAuthBearer{Tokens: tokens, Now: time.Now}, keys.Keep, err
}

// bearer is the client's side of OAUTHBEARER. A first token has to be had at the start, as with Kafka.
func (s *security) bearer(ctx context.Context, listener string) (sasl.Mechanism, error) {
	c, err := s.bearerConfig(s.values, listener)
	if err != nil {
		return nil, err
	}
	newLogin := oauth.NewUnsecuredLogin
	if s.values.IssuedTokens(listener) {
		newLogin = oauth.NewLogin
	}
	login, err := newLogin(c, s.log)
	if err != nil {
		return nil, err
	}
	if _, err := login.Token(ctx); err != nil {
		return nil, err
	}
	s.keepers = append(s.keepers, login.Keep)
	return auth.BearerClient(login), nil
}
