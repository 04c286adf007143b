package tools

import (
	"fmt"
	"io"
	"os"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/sasl"

	"barnabas/broker/auth"
	"barnabas/config"
	"barnabas/oauth"
)

// bearerLogin is the client's side of OAUTHBEARER: with a token that is issued, or one that nobody signs. What goes wrong is told by whoever asks for the token.
func bearerLogin(settings map[string]string, modules []config.LoginModule) (sasl.Mechanism, error) {
	const handler = "sasl.login.callback.handler.class"
	options, err := config.BearerOptions(modules)
	if err != nil {
		return nil, &badArgument{fmt.Sprintf("%s in sasl.jaas.config, or in the section KafkaClient of a JAAS file that KAFKA_OPTS names", err)}
	}
	issued, served := config.IssuedTokens(settings[handler])
	if !served {
		return nil, &badArgument{fmt.Sprintf("%s %s is Java code, which is not supported", handler, settings[handler])}
	}
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	newLogin := oauth.NewUnsecuredLogin
	if issued {
		newLogin = oauth.NewLogin
	}
	login, err := newLogin(oauth.Config{
		Setting:     func(name string) string { return settings[name] },
		Options:     options,
		AllowedURLs: config.AllowedTokenURLs(os.Getenv("KAFKA_OPTS")),
	}, logrus.NewEntry(silent))
	if err != nil {
		return nil, &badArgument{err.Error()}
	}
	return auth.BearerClient(login), nil
}
