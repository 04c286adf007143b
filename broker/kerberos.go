package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"

	"barnabas/broker/auth"
	"barnabas/config"
	"barnabas/kerberos"
)

// acceptor is the mechanism GSSAPI of a listener.
func (s *security) acceptor(v *config.Values, listener string) (auth.Mechanism, error) {
	login, err := s.kerberosLogin(v, listener)
	if err != nil {
		return nil, err
	}
	if login.KeyTable == "" {
		return nil, errors.New("a broker proves itself by keys: the login module wants useKeyTab=true")
	}
	acceptor, err := kerberos.NewAcceptor(kerberos.Service{
		ConfigFile: kerberosFile(),
		Principal:  login.Principal,
		KeyTable:   login.KeyTable,
		Rules:      config.SplitList(v.ForListener(listener, "sasl.kerberos.principal.to.local.rules")),
		Replays:    &s.replays,
		Now:        time.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", config.GSSAPI, err)
	}
	return &auth.GSSAPI{Acceptor: acceptor}, nil
}

// initiator is the client's side of GSSAPI towards brokers. It logs in at once, as Kafka's brokers do: who is not known is not to find out when it is too late.
func (s *security) initiator(ctx context.Context, listener string) (sasl.Mechanism, error) {
	login, err := s.kerberosLogin(s.values, listener)
	if err != nil {
		return nil, err
	}
	tickets := kerberos.NewTickets(kerberos.Account{
		ConfigFile: kerberosFile(),
		Cache:      login.Cache,
		Principal:  login.Principal,
		KeyTable:   login.KeyTable,
		RenewAfter: s.values.Float("sasl.kerberos.ticket.renew.window.factor"),
		Now:        time.Now,
	})
	if err := tickets.Login(ctx); err != nil {
		return nil, fmt.Errorf("logging in to Kerberos: %w", err)
	}
	return auth.ClientGSSAPI(tickets, login.Service), nil
}

func (s *security) kerberosLogin(v *config.Values, listener string) (config.Kerberos, error) {
	modules, err := v.Logins(listener, config.GSSAPI, s.logins)
	if err != nil {
		return config.Kerberos{}, err
	}
	login, found, err := config.KerberosLogin(modules, v.ForListener(listener, "sasl.kerberos.service.name"))
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", config.GSSAPI, err)
	case !found:
		err = fmt.Errorf("%s has no login: %s, or a JAAS file that KAFKA_OPTS names, has to have an entry of Krb5LoginModule", config.GSSAPI, config.OnListener(listener, "gssapi.sasl.jaas.config"))
	}
	return login, err
}

func kerberosFile() string { return config.KerberosFile(os.Getenv("KAFKA_OPTS")) }
