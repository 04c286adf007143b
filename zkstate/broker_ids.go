package zkstate

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// The brokers that live: an ephemeral node each, whose czxid is the broker epoch of the protocol (KIP-380).

// BrokerIDsPath is the parent of the registrations.
const BrokerIDsPath = "/brokers/ids"

// BrokerIDPath is the node of one broker's registration.
func BrokerIDPath(id int32) string { return BrokerIDsPath + "/" + strconv.Itoa(int(id)) }

// Endpoint is one listener of a broker as others reach it.
type Endpoint struct {
	Listener string // the listener's name
	Protocol string // PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
	Host     string // without the brackets of IPv6
	Port     int32
}

// url is the connection string: NAME://host:port, brackets around IPv6.
func (e Endpoint) url() string {
	host := e.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return e.Listener + "://" + host + ":" + strconv.Itoa(int(e.Port))
}

// FeatureRange is what a broker supports of a feature (KIP-584).
type FeatureRange struct{ Min, Max int16 }

// Broker is the data of BrokerIDPath.
type Broker struct {
	ID          int32
	Version     int32 // 1 to 5; Kafka writes 4 before inter.broker.protocol.version 2.7, 5 since
	Endpoints   []Endpoint
	JMXPort     int32   // -1 when there is none
	Rack        *string // since version 3
	Features    map[string]FeatureRange
	TimestampMs int64
}

// legacy is the host and port for clients that know no endpoints: those of the first plaintext listener, if any.
func (b Broker) legacy() (host *string, port int32) {
	for i := range b.Endpoints {
		if b.Endpoints[i].Protocol == "PLAINTEXT" {
			return &b.Endpoints[i].Host, b.Endpoints[i].Port
		}
	}
	return nil, -1
}

// Encode writes the registration as the Kafka of that version does.
func (b Broker) Encode() []byte {
	var w jsonWriter
	w.open('{')
	if b.Version >= 5 {
		w.key("features")
		w.open('{')
		for _, name := range scalaOrder(keysOf(b.Features)) {
			w.key(name)
			w.open('{')
			w.key("min_version")
			w.int(int64(b.Features[name].Min))
			w.key("max_version")
			w.int(int64(b.Features[name].Max))
			w.close('}')
		}
		w.close('}')
	}
	if b.Version >= 4 {
		w.key("listener_security_protocol_map")
		w.open('{')
		var listeners []string
		protocols := map[string]string{}
		for _, e := range b.Endpoints {
			if _, ok := protocols[e.Listener]; !ok {
				listeners = append(listeners, e.Listener)
			}
			protocols[e.Listener] = e.Protocol
		}
		for _, l := range scalaOrder(listeners) {
			w.key(l)
			w.str(protocols[l])
		}
		w.close('}')
	}
	if b.Version >= 2 {
		w.key("endpoints")
		w.open('[')
		for _, e := range b.Endpoints {
			w.str(e.url())
		}
		w.close(']')
	}
	if b.Version >= 3 && b.Rack != nil {
		w.key("rack")
		w.str(*b.Rack)
	}
	host, port := b.legacy()
	w.key("jmx_port")
	w.int(int64(b.JMXPort))
	w.key("port")
	w.int(int64(port))
	w.key("host")
	if host != nil {
		w.str(*host)
	} else {
		w.null()
	}
	w.key("version")
	w.int(int64(b.Version))
	w.key("timestamp")
	w.str(strconv.FormatInt(b.TimestampMs, 10))
	w.close('}')
	return w.buf
}

var errVersion = errors.New("not a version that Kafka writes")

// DecodeBroker reads any version of the registration.
func DecodeBroker(id int32, data []byte) (Broker, error) {
	o := parseObject("broker registration", data)
	b := Broker{ID: id, Version: o.int32("version"), JMXPort: o.int32Or("jmx_port", -1),
		TimestampMs: o.numberOr("timestamp", -1)}
	switch {
	case o.err != nil:
	case b.Version < 1:
		o.fail("version", errVersion)
	case b.Version == 1:
		b.Endpoints = []Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: o.str("host"), Port: o.int32("port")}}
	default:
		b.Endpoints = decodeEndpoints(o)
	}
	if o.has("rack") {
		rack := o.str("rack")
		b.Rack = &rack
	}
	features := o.child("features")
	for name := range features.fields {
		if b.Features == nil {
			b.Features = map[string]FeatureRange{}
		}
		f := features.child(name)
		b.Features[name] = FeatureRange{Min: int16(f.int32Or("min_version", 0)), Max: int16(f.int32Or("max_version", 0))}
		if f.err != nil {
			o.fail("features", f.err)
		}
	}
	return b, o.wrapped()
}

func decodeEndpoints(o *jsonObject) []Endpoint {
	protocols := o.child("listener_security_protocol_map")
	var out []Endpoint
	for _, url := range o.strs("endpoints") {
		e, err := parseEndpoint(url)
		if err != nil {
			o.fail("endpoints", err)
			return nil
		}
		// Before version 4 the listener's name is the protocol's.
		if e.Protocol = e.Listener; protocols.has(e.Listener) {
			e.Protocol = protocols.str(e.Listener)
		}
		out = append(out, e)
	}
	if protocols.err != nil {
		o.fail("listener_security_protocol_map", protocols.err)
	}
	return out
}

func parseEndpoint(url string) (Endpoint, error) {
	name, hostPort, ok := strings.Cut(url, "://")
	if !ok {
		return Endpoint{}, fmt.Errorf("%q is no endpoint", url)
	}
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return Endpoint{}, fmt.Errorf("endpoint %q: %w", url, err)
	}
	n, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return Endpoint{}, fmt.Errorf("endpoint %q: %w", url, err)
	}
	return Endpoint{Listener: name, Host: host, Port: int32(n)}, nil
}
