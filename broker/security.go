package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/sasl"

	"barnabas/broker/auth"
	"barnabas/broker/peer"
	"barnabas/config"
	"barnabas/kerberos"
	"barnabas/ssl"
)

// security is what encrypts the listeners and who may come in by them, and as whom this broker goes to others. What cannot be served as it is meant is refused before anything is opened.
type security struct {
	values      *config.Values
	logins      config.JAASFile
	credentials *credentials
	tokens      *tokens // nil: there are none
	replays     kerberos.Replays
	log         *logrus.Entry

	gate    *auth.Gate
	between peer.Security
	control peer.Security // towards the brokers' control plane: that of between, where there is none

	mu struct {
		sync.RWMutex
		entrances []*entrance // that are open, or about to be
	}
	towards map[string]*atomic.Pointer[outbound] // by listener: the encryption of this broker's own connections, from key stores that may be altered while it runs
	keepers []keeper
}

// keeper keeps something fresh until its context ends.
type keeper func(context.Context)

func newSecurity(ctx context.Context, v *config.Values, credentials *credentials, tokens *tokens, log *logrus.Entry) (*security, error) {
	s := &security{values: v, credentials: credentials, tokens: tokens, log: log, towards: map[string]*atomic.Pointer[outbound]{}}
	listeners, err := v.Listeners()
	if err != nil {
		return nil, err
	}
	if s.logins, err = config.ReadJAASFile(config.LoginFile(os.Getenv("KAFKA_OPTS"))); err != nil {
		return nil, fmt.Errorf("the JAAS file that KAFKA_OPTS names: %w", err)
	}
	for _, l := range listeners {
		e, err := s.newEntrance(ctx, v, l)
		if err != nil {
			return nil, err
		}
		s.add(e)
	}
	s.gate = &auth.Gate{
		Offers:       s.offers,
		MaxFrame:     int32(v.Int("sasl.server.max.receive.size")),
		FailureDelay: v.Millis("connection.failed.authentication.delay.ms"),
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

// reload reads the key stores anew that v names: those of listeners may be altered while the broker runs (KIP-226), and a file may be another one than it was. Connections that are there
// stay as they are. What cannot be read changes nothing.
func (s *security) reload(v *config.Values) error {
	return s.read(v, func(e *entrance, encryption *tls.Config) { e.encryption.Store(encryption) },
		func(name string, encryption outbound) { s.towards[name].Store(&encryption) })
}

// check tells whether all key stores that v names can be read.
func (s *security) check(v *config.Values) error {
	return s.read(v, func(*entrance, *tls.Config) {}, func(string, outbound) {})
}

// read reads the key stores that v names for its listeners, and hands over those that can be read.
func (s *security) read(v *config.Values, inbound func(e *entrance, encryption *tls.Config), towards func(listener string, encryption outbound)) error {
	listeners, err := v.Listeners()
	if err != nil {
		return err
	}
	var failed []error
	for _, e := range s.open() {
		if e.encryption == nil || !e.among(listeners) {
			continue
		}
		encryption, err := ssl.Server(settings(v, e.Name), "")
		if err != nil {
			failed = append(failed, fmt.Errorf("listener %s: %w", e.Name, err))
			continue
		}
		encryption.ClientAuth = e.encryption.Load().ClientAuth
		inbound(e, encryption)
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
