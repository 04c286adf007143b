package config

import (
	"errors"
	"strings"
)

// OAuthBearer is the mechanism of bearer tokens (KIP-255).
const OAuthBearer = "OAUTHBEARER"

// OAuthBearerLoginModule is its class.
const OAuthBearerLoginModule = bearerPackage + "OAuthBearerLoginModule"

const bearerPackage = "org.apache.kafka.common.security.oauthbearer."

// bearerClasses are Kafka's own classes that a key may name for OAUTHBEARER, under all names that they had: what they do is done here. The value tells
// apart what deals with signed tokens (KIP-768) from what deals with tokens that nobody signs, which is the default.
var bearerClasses = map[string]map[string]bool{
	"sasl.server.callback.handler.class": {
		"": false, bearerPackage + "internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler": false,
		bearerPackage + "OAuthBearerValidatorCallbackHandler": true, bearerPackage + "secured.OAuthBearerValidatorCallbackHandler": true,
	},
	"sasl.login.callback.handler.class": {
		"": false, bearerPackage + "internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler": false,
		bearerPackage + "OAuthBearerLoginCallbackHandler": true, bearerPackage + "secured.OAuthBearerLoginCallbackHandler": true,
	},
}

// servesClass tells whether a key, in the spelling of a file, names a class of Kafka's whose work is done here. Kafka looks for it behind listener and mechanism alone.
func servesClass(name string, k *Key, class string) bool {
	_, known := bearerClasses[k.Name][class]
	return known && strings.HasPrefix(name, listenerPrefix) && strings.HasSuffix(name, "."+strings.ToLower(OAuthBearer)+"."+k.Name)
}

func whyNotServed(k *Key, class string) string {
	if _, known := bearerClasses[k.Name][class]; known {
		return "it counts only behind a listener and its mechanism, as listener.name.LISTENER.oauthbearer." + k.Name
	}
	return "it is Java code, which this broker cannot run"
}

// SignedTokens tells whether a listener's bearer tokens have to be signed.
func (v *Values) SignedTokens(listener string) bool {
	return v.dealsWithSigned(listener, "sasl.server.callback.handler.class")
}

// IssuedTokens tells whether this broker's own bearer token towards a listener is issued to it; else it makes one that nobody signs.
func (v *Values) IssuedTokens(listener string) bool {
	return v.dealsWithSigned(listener, "sasl.login.callback.handler.class")
}

func (v *Values) dealsWithSigned(listener, name string) bool {
	class, _ := v.forMechanism(listener, OAuthBearer, name)
	return bearerClasses[name][class]
}

// IssuedTokens tells whether a client whose sasl.login.callback.handler.class is class has its token issued; served is false for a class of somebody else's.
func IssuedTokens(class string) (issued, served bool) {
	issued, served = bearerClasses["sasl.login.callback.handler.class"][class]
	return issued, served
}

var errBearerModule = errors.New("OAUTHBEARER wants one entry of " + OAuthBearerLoginModule)

// BearerOptions are those of the login module for OAUTHBEARER, of which there has to be one.
func BearerOptions(modules []LoginModule) (options map[string]string, err error) {
	for _, m := range modules {
		if m.Class != OAuthBearerLoginModule {
			continue
		}
		if options != nil {
			return nil, errBearerModule
		}
		options = m.Options
	}
	if options == nil {
		return nil, errBearerModule
	}
	return options, nil
}

// AllowedTokenURLs are the only ones that settings for bearer tokens may name, from the options of a Java program, as KAFKA_OPTS holds them; nil: any.
func AllowedTokenURLs(javaOptions string) []string {
	return SplitList(javaProperty(javaOptions, "org.apache.kafka.sasl.oauthbearer.allowed.urls"))
}
