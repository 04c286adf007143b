package broker

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"barnabas/broker/auth"
	"barnabas/broker/netserver"
	"barnabas/broker/wire"
	"barnabas/config"
	"barnabas/ssl"
)

// entrance is a listener as it is kept: where it is, what encrypts it, and how who comes by it proves who it is.
type entrance struct {
	netserver.Listener
	encryption *atomic.Pointer[tls.Config] // nil: none. From key stores that may be altered while the broker runs
	offers     []auth.Offer
	keepers    []keeper
	close      context.CancelFunc // ends the keepers of one that was opened while the broker ran
}

// newEntrance makes a listener from what v says of it. Nothing is opened.
func (s *security) newEntrance(ctx context.Context, v *config.Values, l config.Listener) (*entrance, error) {
	e := &entrance{Listener: netserver.Listener{Name: l.Name, Host: l.Host, Port: l.Port, Protocol: l.Protocol}, close: func() {}}
	var err error
	if l.Encrypted() {
		err = e.encrypt(v, l)
	}
	if err == nil && l.Authenticated() {
		err = e.offer(ctx, s, v)
	}
	if err != nil {
		return nil, fmt.Errorf("listener %s: %w", l.Name, err)
	}
	return e, nil
}

// among tells whether a list has a listener of this name.
func (e *entrance) among(listeners []config.Listener) bool {
	return slices.ContainsFunc(listeners, func(l config.Listener) bool { return l.Name == e.Name })
}

// settings are those of a listener.
func settings(v *config.Values, listener string) ssl.Settings {
	return func(name string) string { return v.ForListener(listener, name) }
}

func (e *entrance) encrypt(v *config.Values, l config.Listener) error {
	encryption, err := ssl.Server(settings(v, l.Name), clientAuth(v, l))
	if err != nil {
		return err
	}
	rules, err := ssl.ParseMapping(v.ForListener(l.Name, "ssl.principal.mapping.rules"))
	if err != nil {
		return err
	}
	e.encryption = &atomic.Pointer[tls.Config]{}
	e.encryption.Store(encryption)
	e.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return e.encryption.Load(), nil }}
	e.Identify = func(c *x509.Certificate) (wire.Principal, error) { return identify(c, rules) }
	return nil
}

// clientAuth is ssl.client.auth as it holds for a listener: where SASL tells who a client is, only if the listener itself says so (KIP-684).
func clientAuth(v *config.Values, l config.Listener) string {
	const name = "ssl.client.auth"
	if own, set := v.Lookup(config.OnListener(l.Name, name)); set || l.Authenticated() {
		return own
	}
	return v.String(name)
}

func identify(c *x509.Certificate, rules *ssl.Mapping) (wire.Principal, error) {
	name, err := ssl.DistinguishedName(c.RawSubject)
	if err == nil {
		name, err = rules.Name(name)
	}
	return wire.Principal{Type: wire.Anonymous.Type, Name: name}, err
}

// offer makes the mechanisms that a listener with SASL offers.
func (e *entrance) offer(ctx context.Context, s *security, v *config.Values) error {
	for _, name := range config.SplitList(v.ForListener(e.Name, "sasl.enabled.mechanisms")) {
		m, keep, err := s.mechanism(ctx, v, e.Name, name)
		if err != nil {
			return err
		}
		if keep != nil {
			e.keepers = append(e.keepers, keep)
		}
		e.offers = append(e.offers, auth.Offer{Mechanism: m, Lifetime: time.Duration(v.MaxReauth(e.Name, name)) * time.Millisecond})
	}
	return nil
}

// mechanism makes one that a listener offers, and what keeps it fresh, if it wants that.
func (s *security) mechanism(ctx context.Context, v *config.Values, listener, name string) (auth.Mechanism, keeper, error) {
	switch name {
	case config.GSSAPI:
		m, err := s.acceptor(v, listener)
		return m, nil, err
	case config.ScramSHA256:
		return auth.NewScram256(s.known(name), rand.Text), nil, nil
	case config.ScramSHA512:
		return auth.NewScram512(s.known(name), rand.Text), nil, nil
	case config.OAuthBearer:
		return s.bearers(ctx, v, listener)
	}
	m, err := s.plain(v, listener, name)
	return m, nil, err
}

func (s *security) known(mechanism string) auth.Known {
	return auth.Known{User: s.credentials.lookup(mechanism), Token: s.tokens.lookup(mechanism)}
}

// plain is PLAIN, whose users stand in the listener's JAAS configuration.
func (s *security) plain(v *config.Values, listener, name string) (auth.Mechanism, error) {
	modules, err := v.Logins(listener, name, s.logins)
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

// open are the listeners that are open, or about to be.
func (s *security) open() []*entrance {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.mu.entrances)
}

// entrance finds a listener by its name; nil: there is none.
func (s *security) entrance(name string) *entrance {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range s.mu.entrances {
		if e.Name == name {
			return e
		}
	}
	return nil
}

func (s *security) add(e *entrance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.entrances = append(s.mu.entrances, e)
}

func (s *security) remove(e *entrance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.entrances = slices.DeleteFunc(s.mu.entrances, func(o *entrance) bool { return o == e })
}

// offers are the mechanisms of a listener.
func (s *security) offers(listener string) []auth.Offer {
	if e := s.entrance(listener); e != nil {
		return e.offers
	}
	return nil
}

// usesCredentials tells whether a listener offers SCRAM, whose credentials stand in ZooKeeper.
func (s *security) usesCredentials() bool {
	return slices.ContainsFunc(s.open(), func(e *entrance) bool {
		return slices.ContainsFunc(e.offers, func(o auth.Offer) bool { return strings.HasPrefix(o.Mechanism.Name(), "SCRAM-") })
	})
}
