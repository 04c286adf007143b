package config

import (
	"fmt"
	"slices"
	"strconv"
)

// checkTogether holds the rules that no single key's row can state. Each error names a key.
func (v *Values) checkTogether() error {
	invalid := func(name, reason string) error {
		return &InvalidError{Name: name, Value: v.String(name), Reason: reason}
	}
	if v.String("process.roles") != "" {
		return invalid("process.roles", "this broker runs in ZooKeeper mode, where it must be empty")
	}
	if id, reserved := v.Int("broker.id"), v.Int("reserved.broker.max.id"); v.Bool("broker.id.generation.enable") {
		if id < -1 || id > reserved {
			return invalid("broker.id", fmt.Sprintf("must be -1, or at least 0 and at most reserved.broker.max.id (%d)", reserved))
		}
	} else if id < 0 {
		return invalid("broker.id", "must be at least 0 when broker.id.generation.enable is false")
	}
	if v.Int("node.id") != v.Int("broker.id") {
		return invalid("node.id", fmt.Sprintf("must be the same as broker.id (%d)", v.Int("broker.id")))
	}
	if v.ProtocolVersion("inter.broker.protocol.version") < V2_4IV1 {
		return invalid("inter.broker.protocol.version", "Barnabas speaks 2.4 and later between brokers")
	}
	if v.ProtocolVersion("inter.broker.protocol.version") > V3_9IV0 {
		return invalid("inter.broker.protocol.version", "3.9 is the last version with ZooKeeper")
	}
	for _, name := range []string{"log.retention.ms", "log.retention.minutes", "log.retention.hours"} {
		if value, set := v.set[name]; set && value != "" {
			if n, _ := strconv.ParseInt(value, 10, 64); n == 0 || n < -1 {
				return invalid(name, "must be -1 (no limit) or positive")
			}
		}
	}
	if q := v.Int("queued.max.request.bytes"); q > 0 && q < v.Int("socket.request.max.bytes") {
		return invalid("queued.max.request.bytes", "must be at least socket.request.max.bytes")
	}
	if v.Int("replica.fetch.wait.max.ms") > v.Int("replica.lag.time.max.ms") {
		return invalid("replica.fetch.wait.max.ms", "must not exceed replica.lag.time.max.ms, or idle followers would leave the ISR")
	}
	if v.Int("replica.socket.timeout.ms") < v.Int("replica.fetch.wait.max.ms") {
		return invalid("replica.socket.timeout.ms", "must be at least replica.fetch.wait.max.ms")
	}
	if err := v.checkConnections(); err != nil {
		return err
	}
	if err := v.checkPasswords(); err != nil {
		return err
	}
	if err := v.checkAuthorizer(); err != nil {
		return err
	}
	return v.checkListeners()
}

func (v *Values) checkListeners() error {
	listeners, err := v.Listeners()
	if err != nil {
		return err
	}
	advertised, err := v.AdvertisedListeners()
	if err != nil {
		return err
	}
	invalid := func(name, reason string) error {
		return &InvalidError{Name: name, Value: v.String(name), Reason: reason}
	}
	if _, both := v.Lookup("security.inter.broker.protocol"); both && v.String("inter.broker.listener.name") != "" {
		return invalid("inter.broker.listener.name", "only one of inter.broker.listener.name and security.inter.broker.protocol may be set")
	}
	if err := v.checkSecurity(listeners); err != nil {
		return err
	}
	for _, l := range advertised {
		if l.Host == "0.0.0.0" {
			return invalid("advertised.listeners", "0.0.0.0 is not an address that clients can connect to; give advertised.listeners a routable one")
		}
		if !slices.ContainsFunc(listeners, func(o Listener) bool { return o.Name == l.Name }) {
			return invalid("advertised.listeners", fmt.Sprintf("listener %s is not among listeners", l.Name))
		}
	}
	if v.String("control.plane.listener.name") != "" {
		name := v.ControlListener()
		switch {
		case !slices.ContainsFunc(advertised, func(l Listener) bool { return l.Name == name }):
			return invalid("control.plane.listener.name", "it is not among advertised.listeners")
		case name == v.InterBrokerListener():
			return invalid("control.plane.listener.name", "it is the listener between brokers already: leave it out, or give the control plane a listener of its own")
		}
	}
	if name := v.InterBrokerListener(); !slices.ContainsFunc(advertised, func(l Listener) bool { return l.Name == name }) {
		return invalid("inter.broker.listener.name", fmt.Sprintf("the listener between brokers, %s, is not among advertised.listeners", name))
	}
	return nil
}
