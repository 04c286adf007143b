package config

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Listener is an address that a broker listens on or publishes.
type Listener struct {
	Name     string // upper case
	Host     string // empty: every interface
	Port     int
	Protocol string // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
}

// URI writes the listener as configuration files and znodes do.
func (l Listener) URI() string {
	return l.Name + "://" + net.JoinHostPort(l.Host, strconv.Itoa(l.Port))
}

var listenerURI = regexp.MustCompile(`^(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)$`)

// ParseListeners reads a list such as PLAINTEXT://:9092,INTERNAL://10.0.0.1:9093 with the protocols of listener.security.protocol.map.
// The errors name key.
func ParseListeners(key, list, protocolMap string) ([]Listener, error) {
	protocols := map[string]string{}
	for _, pair := range SplitList(protocolMap) {
		name, protocol, ok := strings.Cut(pair, ":")
		protocol = strings.ToUpper(strings.TrimSpace(protocol))
		if !ok || !slices.Contains([]string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}, protocol) {
			return nil, &InvalidError{Name: "listener.security.protocol.map", Value: protocolMap, Reason: fmt.Sprintf("%q is not of the form NAME:PROTOCOL", pair)}
		}
		protocols[strings.ToUpper(strings.TrimSpace(name))] = protocol
	}
	var listeners []Listener
	for _, uri := range SplitList(list) {
		m := listenerURI.FindStringSubmatch(uri)
		if m == nil {
			return nil, &InvalidError{Name: key, Value: list, Reason: fmt.Sprintf("%q is not of the form NAME://host:port", uri)}
		}
		port, err := strconv.Atoi(m[3])
		if err != nil || port < 0 || port > 65535 {
			return nil, &InvalidError{Name: key, Value: list, Reason: fmt.Sprintf("%q has no valid port", uri)}
		}
		l := Listener{Name: strings.ToUpper(m[1]), Host: m[2], Port: port}
		if l.Protocol = protocols[l.Name]; l.Protocol == "" {
			return nil, &InvalidError{Name: key, Value: list, Reason: fmt.Sprintf("listener %s has no protocol in listener.security.protocol.map", l.Name)}
		}
		for _, other := range listeners {
			if other.Name == l.Name {
				return nil, &InvalidError{Name: key, Value: list, Reason: "each listener must have a different name"}
			}
			if other.Port == l.Port && l.Port != 0 && key == "listeners" && other.Host == l.Host {
				return nil, &InvalidError{Name: key, Value: list, Reason: "each listener must have a different port"}
			}
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// Listeners returns the addresses to listen on.
func (v *Values) Listeners() ([]Listener, error) {
	list := v.String("listeners")
	if _, set := v.Lookup("listeners"); !set {
		host, port := v.String("host.name"), v.String("port")
		if port == "" {
			port = "9092"
		}
		list = "PLAINTEXT://" + host + ":" + port
	}
	return ParseListeners("listeners", list, v.String("listener.security.protocol.map"))
}

// AdvertisedListeners returns the addresses to publish; an empty host is left to the caller, who knows this machine's name.
func (v *Values) AdvertisedListeners() ([]Listener, error) {
	if list, set := v.Lookup("advertised.listeners"); set {
		return ParseListeners("advertised.listeners", list, v.String("listener.security.protocol.map"))
	}
	listeners, err := v.Listeners()
	if err != nil {
		return nil, err
	}
	if _, set := v.Lookup("listeners"); !set && len(listeners) == 1 {
		if host := v.String("advertised.host.name"); host != "" {
			listeners[0].Host = host
		}
		if port := v.Int("advertised.port"); port != 0 {
			listeners[0].Port = int(port)
		}
	}
	return listeners, nil
}

// ControlListener returns the name of the listener by which the controller and brokers talk to each other: control.plane.listener.name, or the
// one between brokers (KIP-291).
func (v *Values) ControlListener() string {
	if name := v.String("control.plane.listener.name"); name != "" {
		return strings.ToUpper(name)
	}
	return v.InterBrokerListener()
}

// InterBrokerListener returns the name of the listener through which brokers talk to each other.
func (v *Values) InterBrokerListener() string {
	if name := v.String("inter.broker.listener.name"); name != "" {
		return strings.ToUpper(name)
	}
	return v.String("security.inter.broker.protocol")
}
