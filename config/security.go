package config

import (
	"fmt"
	"slices"
	"strings"
)

// The mechanisms of SASL that are served.
const (
	GSSAPI      = "GSSAPI"
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
)

// Mechanisms lists them.
var Mechanisms = []string{GSSAPI, Plain, ScramSHA256, ScramSHA512, OAuthBearer}

// Encrypted and Authenticated tell what a listener's protocol asks for.
func (l Listener) Encrypted() bool     { return strings.HasSuffix(l.Protocol, "SSL") }
func (l Listener) Authenticated() bool { return strings.HasPrefix(l.Protocol, "SASL_") }

// OnListener is a key as it is written for one listener alone.
func OnListener(listener, name string) string {
	return listenerPrefix + strings.ToLower(listener) + "." + name
}

// ForListener returns the value of a key that holds for a listener: its own, else that of all.
func (v *Values) ForListener(listener, name string) string {
	if own, set := v.set[OnListener(listener, name)]; set {
		return own
	}
	return v.String(name)
}

// ForMechanism returns the value of a key that holds for a mechanism on a listener: its own, else that of the listener, else that of all.
func (v *Values) ForMechanism(listener, mechanism, name string) string {
	if own, set := v.forMechanism(listener, mechanism, name); set {
		return own
	}
	return v.ForListener(listener, name)
}

// forMechanism returns the value of a key that holds for a mechanism on a listener.
func (v *Values) forMechanism(listener, mechanism, name string) (string, bool) {
	value, set := v.set[OnListener(listener, strings.ToLower(mechanism)+"."+name)]
	return value, set
}

// MaxReauth returns connections.max.reauth.ms for a mechanism on a listener, in milliseconds.
func (v *Values) MaxReauth(listener, mechanism string) int64 {
	for _, name := range []string{OnListener(listener, strings.ToLower(mechanism)+".connections.max.reauth.ms"), OnListener(listener, "connections.max.reauth.ms")} {
		if _, set := v.set[name]; set {
			return v.Int(name)
		}
	}
	return v.Int("connections.max.reauth.ms")
}

// Logins returns the login modules for a mechanism on a listener: those of its own sasl.jaas.config, else those of the file's section
// for the listener, else those of its section KafkaServer. A sasl.jaas.config that does not name listener and mechanism counts for
// nothing, as in Kafka.
func (v *Values) Logins(listener, mechanism string, file JAASFile) ([]LoginModule, error) {
	const name = "sasl.jaas.config"
	if text, set := v.forMechanism(listener, mechanism, name); set {
		m, err := ParseJAASConfig(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", OnListener(listener, strings.ToLower(mechanism)+"."+name), err)
		}
		return []LoginModule{m}, nil
	}
	for _, section := range []string{strings.ToLower(listener) + ".KafkaServer", "KafkaServer"} {
		if modules := file[section]; len(modules) > 0 {
			return modules, nil
		}
	}
	return nil, nil
}

// foreign are keys that name Java code which would decide who somebody is.
var foreign = []string{
	"principal.builder.class", "ssl.engine.factory.class", "sasl.server.callback.handler.class", "sasl.client.callback.handler.class",
	"sasl.login.class", "sasl.login.callback.handler.class",
}

// checkSecurity refuses what would be served otherwise than it is meant.
func (v *Values) checkSecurity(listeners []Listener) error {
	invalid := func(name, value, reason string) error { return &InvalidError{Name: name, Value: value, Reason: reason} }
	for _, name := range v.Names() {
		k := LookupBroker(name)
		if k != nil && slices.Contains(foreign, k.Name) && v.set[name] != "" && (k.Default == nil || *k.Default != v.set[name]) && !servesClass(name, k, v.set[name]) {
			return invalid(name, v.set[name], whyNotServed(k, v.set[name]))
		}
	}
	for _, l := range listeners {
		if !l.Authenticated() {
			continue
		}
		enabled := SplitList(v.ForListener(l.Name, "sasl.enabled.mechanisms"))
		if len(enabled) == 0 {
			return invalid("sasl.enabled.mechanisms", "", fmt.Sprintf("listener %s wants SASL and has no mechanism", l.Name))
		}
		for _, m := range enabled {
			if !slices.Contains(Mechanisms, m) {
				return invalid("sasl.enabled.mechanisms", strings.Join(enabled, ","), fmt.Sprintf("%s on listener %s is not served by this version; %s are", m, l.Name, strings.Join(Mechanisms, ", ")))
			}
		}
		if between := v.ForListener(l.Name, "sasl.mechanism.inter.broker.protocol"); l.Name == v.InterBrokerListener() && !slices.Contains(enabled, between) {
			return invalid("sasl.mechanism.inter.broker.protocol", between, "must be among sasl.enabled.mechanisms of the listener between brokers")
		}
	}
	return nil
}
