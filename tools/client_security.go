package tools

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"

	"barnabas/broker/auth"
	"barnabas/config"
	"barnabas/ssl"
)

// securityProtocols are the values of security.protocol.
var securityProtocols = []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}

// secure makes a client speak TLS and prove who it is, as security.protocol, the ssl.* and the sasl.* settings of a Java client say.
func secure(settings map[string]string) ([]kgo.Opt, error) {
	protocol := strings.ToUpper(settings["security.protocol"])
	if protocol == "" {
		protocol = "PLAINTEXT"
	}
	if !slices.Contains(securityProtocols, protocol) {
		return nil, &badArgument{fmt.Sprintf("Invalid value %s for configuration security.protocol: must be one of %s", settings["security.protocol"], strings.Join(securityProtocols, ", "))}
	}
	dial := (&net.Dialer{Timeout: dialTimeout}).DialContext
	if strings.HasSuffix(protocol, "SSL") {
		encryption, err := ssl.Client(func(name string) string {
			value, given := settings[name]
			if !given && name == "ssl.endpoint.identification.algorithm" {
				return "https"
			}
			return value
		})
		if err != nil {
			return nil, err
		}
		dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			return (&tls.Dialer{Config: encryption(addr)}).DialContext(ctx, network, addr)
		}
	}
	opts := []kgo.Opt{kgo.Dialer(dial)}
	if strings.HasPrefix(protocol, "SASL") {
		mechanism, err := login(settings)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(mechanism))
	}
	return opts, nil
}

// login is the client's side of sasl.mechanism, as the user that sasl.jaas.config names, or the section KafkaClient of the JAAS file in KAFKA_OPTS.
func login(settings map[string]string) (sasl.Mechanism, error) {
	name := settings["sasl.mechanism"]
	if name == "" {
		name = config.GSSAPI
	}
	if !slices.Contains(config.Mechanisms, name) {
		return nil, &badArgument{fmt.Sprintf("sasl.mechanism %s is not supported; %s are", name, strings.Join(config.Mechanisms, ", "))}
	}
	modules, err := loginModules(settings["sasl.jaas.config"])
	if err != nil {
		return nil, err
	}
	switch name {
	case config.GSSAPI:
		return kerberosLogin(settings, modules)
	case config.OAuthBearer:
		return bearerLogin(settings, modules)
	}
	account, found := config.Login(modules, name)
	if !found {
		return nil, &badArgument{fmt.Sprintf("neither sasl.jaas.config nor the section KafkaClient of a JAAS file that KAFKA_OPTS names says as which user to authenticate by %s", name)}
	}
	return auth.Client(name, account.User, account.Password, account.ByToken), nil
}

func loginModules(jaas string) ([]config.LoginModule, error) {
	if jaas != "" {
		m, err := config.ParseJAASConfig(jaas)
		return []config.LoginModule{m}, err
	}
	file, err := config.ReadJAASFile(config.LoginFile(os.Getenv("KAFKA_OPTS")))
	return file["KafkaClient"], err
}
