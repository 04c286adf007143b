package broker

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/sasl"

	"barnabas/broker/auth"
	"barnabas/broker/netserver"
	"barnabas/broker/peer"
	"barnabas/broker/wire"
	"barnabas/config"
	"barnabas/kerberos"
	"barnabas/ssl"
)

// security is what encrypts the listeners and who may come in by them, and as whom this broker goes to others. What cannot be served as it is meant is refused before anything is opened.
type security struct {
	values      *config.Values
	logins      config.JAASFile
	credentials *credentials // nil: no listener needs them
	tokens      *tokens      // nil: there are none
	replays     kerberos.Replays
	log         *logrus.Entry

	listeners []netserver.Listener
	gate      *auth.Gate
	between   peer.Security
	control   peer.Security // towards the brokers' control plane: that of between, where there is none

	// What of it is taken from key stores, which may be altered while the broker runs: by listener, of those who come by it and of this broker towards others.
	encryption map[string]*atomic.Pointer[tls.Config]
	towards    map[string]*atomic.Pointer[outbound]

	keepers []func(context.Context) // each keeps something fresh until its context ends
}

func newSecurity(ctx context.Context, v *config.Values, credentials *credentials, tokens *tokens, log *logrus.Entry) (*security, error) {
	s := &security{values: v, tokens: tokens, log: log, encryption: map[string]*atomic.Pointer[tls.Config]{}, towards: map[string]*atomic.Pointer[outbound]{}}
	listeners, err := v.Listeners()
	if err != nil {
		return nil, err
	}
	if s.usesCredentials(listeners) {
		s.credentials = credentials
	}
	if s.logins, err = config.ReadJAASFile(config.LoginFile(os.Getenv("KAFKA_OPTS"))); err != nil {
		return nil, fmt.Errorf("the JAAS file that KAFKA_OPTS names: %w", err)
	}
	for _, l := range listeners {
		bound, err := s.listener(l)
		if err != nil {
			return nil, err
		}
		s.listeners = append(s.listeners, bound)
	}
	if s.gate, err = s.newGate(ctx, listeners); err != nil {
		return nil, err
	}
	if s.between, err = s.towardsBrokers(ctx, listeners, v.InterBrokerListener()); err != nil {
		return nil, err
	}
	s.control = s.between
	if name := v.ControlListener(); name != v.InterBrokerListener() {
		s.control, err = s.towardsBrokers(ctx, listeners, name)
	}
	return s, err
}

// outbound is the encryption of connections to an address, host:port.
type outbound func(addr string) *tls.Config

// settings are those of a listener.
func settings(v *config.Values, listener string) ssl.Settings {
	return func(name string) string { return v.ForListener(listener, name) }
}

// listener is what the server is told of a listener.
func (s *security) listener(l config.Listener) (netserver.Listener, error) {
	out := netserver.Listener{Name: l.Name, Host: l.Host, Port: l.Port, Protocol: l.Protocol}
	if !l.Encrypted() {
		return out, nil
	}
	encryption, err := ssl.Server(settings(s.values, l.Name), s.clientAuth(l))
	if err != nil {
		return out, fmt.Errorf("listener %s: %w", l.Name, err)
	}
	current := &atomic.Pointer[tls.Config]{}
	current.Store(encryption)
	s.encryption[l.Name] = current
	out.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return current.Load(), nil }}
	rules, err := ssl.ParseMapping(s.values.ForListener(l.Name, "ssl.principal.mapping.rules"))
	if err != nil {
		return out, fmt.Errorf("listener %s: %w", l.Name, err)
	}
	out.Identify = func(c *x509.Certificate) (wire.Principal, error) { return identify(c, rules) }
	return out, nil
}

// clientAuth is ssl.client.auth as it holds for a listener: where SASL tells who a client is, only if the listener itself says so (KIP-684).
func (s *security) clientAuth(l config.Listener) string {
	const name = "ssl.client.auth"
	if own, set := s.values.Lookup(config.OnListener(l.Name, name)); set || l.Authenticated() {
		return own
	}
	return s.values.String(name)
}

func identify(c *x509.Certificate, rules *ssl.Mapping) (wire.Principal, error) {
	name, err := ssl.DistinguishedName(c.RawSubject)
	if err == nil {
		name, err = rules.Name(name)
	}
	return wire.Principal{Type: wire.Anonymous.Type, Name: name}, err
}

// reload reads the key stores anew that v names: those of listeners may be altered while the broker runs (KIP-226), and a file may be another one than it was. Connections that are there
// stay as they are. What cannot be read changes nothing.
func (s *security) reload(v *config.Values) error {
	return s.read(v, func(name string, encryption *tls.Config) { s.encryption[name].Store(encryption) },
		func(name string, encryption outbound) { s.towards[name].Store(&encryption) })
}

// check tells whether all key stores that v names can be read.
func (s *security) check(v *config.Values) error {
	return s.read(v, func(string, *tls.Config) {}, func(string, outbound) {})
}

// read reads the key stores that v names, and hands over those that can be read.
func (s *security) read(v *config.Values, inbound func(listener string, encryption *tls.Config), towards func(listener string, encryption outbound)) error {
	var failed []error
	for name, current := range s.encryption {
		encryption, err := ssl.Server(settings(v, name), "")
		if err != nil {
			failed = append(failed, fmt.Errorf("listener %s: %w", name, err))
			continue
		}
		encryption.ClientAuth = current.Load().ClientAuth
		inbound(name, encryption)
	}
	for name := range s.towards {
		if encryption, err := ssl.Client(settings(v, name)); err != nil {
			failed = append(failed, fmt.Errorf("towards other brokers by listener %s: %w", name, err))
		} else {
			towards(name, encryption)
		}
	}
	return errors.Join(failed...)
}

// newGate makes what stands before the handlers of requests.
func (s *security) newGate(ctx context.Context, listeners []config.Listener) (*auth.Gate, error) {
	g := &auth.Gate{
		Offers:       map[string][]auth.Offer{},
		MaxFrame:     int32(s.values.Int("sasl.server.max.receive.size")),
		FailureDelay: s.values.Millis("connection.failed.authentication.delay.ms"),
	}
	for _, l := range listeners {
		if !l.Authenticated() {
			continue
		}
		for _, name := range config.SplitList(s.values.ForListener(l.Name, "sasl.enabled.mechanisms")) {
			m, err := s.mechanism(ctx, l.Name, name)
			if err != nil {
				return nil, fmt.Errorf("listener %s: %w", l.Name, err)
			}
			g.Offers[l.Name] = append(g.Offers[l.Name], auth.Offer{Mechanism: m, Lifetime: time.Duration(s.values.MaxReauth(l.Name, name)) * time.Millisecond})
		}
	}
	return g, nil
}

// usesCredentials tells whether a listener offers SCRAM, whose credentials stand in ZooKeeper.
func (s *security) usesCredentials(listeners []config.Listener) bool {
	return slices.ContainsFunc(listeners, func(l config.Listener) bool {
		return l.Authenticated() && strings.Contains(s.values.ForListener(l.Name, "sasl.enabled.mechanisms"), "SCRAM-")
	})
}

func (s *security) mechanism(ctx context.Context, listener, name string) (auth.Mechanism, error) {
	switch name {
	case config.GSSAPI:
		return s.acceptor(listener)
	case config.ScramSHA256:
		return auth.NewScram256(s.known(name), rand.Text), nil
	case config.ScramSHA512:
		return auth.NewScram512(s.known(name), rand.Text), nil
	case config.OAuthBearer:
		return s.bearers(ctx, listener)
	}
	modules, err := s.values.Logins(listener, name, s.logins)
	if err != nil {
		return nil, err
	}
	users := map[string]string{}
	found := false
	for _, m := range modules {
		if m.Class != config.PlainLoginModule {
			continue
		}
		found = true
		for option, value := range m.Options {
			if user, ok := strings.CutPrefix(option, "user_"); ok {
				users[user] = value
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("%s has no users: %s, or a JAAS file that KAFKA_OPTS names, has to have an entry of %s",
			name, config.OnListener(listener, strings.ToLower(name)+".sasl.jaas.config"), config.PlainLoginModule)
	}
	return &auth.Plain{Passwords: users}, nil
}

func (s *security) known(mechanism string) auth.Known {
	return auth.Known{User: s.credentials.lookup(mechanism), Token: s.tokens.lookup(mechanism)}
}

// towardsBrokers is how this broker goes to others by a listener of theirs.
func (s *security) towardsBrokers(ctx context.Context, listeners []config.Listener, name string) (out peer.Security, err error) {
	at := slices.IndexFunc(listeners, func(l config.Listener) bool { return l.Name == name })
	if at < 0 {
		return out, fmt.Errorf("the listener between brokers, %s, is not among listeners", name)
	}
	l := listeners[at]
	if l.Encrypted() {
		encryption, err := ssl.Client(settings(s.values, name))
		if err != nil {
			return out, fmt.Errorf("listener %s: %w", name, err)
		}
		current := &atomic.Pointer[outbound]{}
		current.Store((*outbound)(&encryption))
		s.towards[name] = current
		out.TLS = func(addr string) *tls.Config { return (*current.Load())(addr) }
	}
	if l.Authenticated() {
		if out.SASL, err = s.login(ctx, name, s.values.ForListener(name, "sasl.mechanism.inter.broker.protocol")); err != nil {
			return out, fmt.Errorf("listener %s: %w", name, err)
		}
	}
	return out, nil
}

// login is the client's side of a mechanism, as the user that JAAS names.
func (s *security) login(ctx context.Context, listener, mechanism string) (sasl.Mechanism, error) {
	switch mechanism {
	case config.GSSAPI:
		return s.initiator(ctx, listener)
	case config.OAuthBearer:
		return s.bearer(ctx, listener)
	}
	modules, err := s.values.Logins(listener, mechanism, s.logins)
	if err != nil {
		return nil, err
	}
	account, found := config.Login(modules, mechanism)
	if !found {
		return nil, fmt.Errorf("brokers authenticate to each other by %s, and neither %s nor a JAAS file that KAFKA_OPTS names says as which user",
			mechanism, config.OnListener(listener, strings.ToLower(mechanism)+".sasl.jaas.config"))
	}
	return auth.Client(mechanism, account.User, account.Password, account.ByToken), nil
}
