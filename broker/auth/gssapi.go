package auth

import (
	"context"
	"errors"
	"net"

	"github.com/twmb/franz-go/pkg/sasl"

	"barnabas/kerberos"
)

// GSSAPI is the mechanism GSSAPI (RFC 4752): the client shows a ticket of Kerberos.
type GSSAPI struct {
	Acceptor *kerberos.Acceptor
}

const gssapi = "GSSAPI"

// Name implements Mechanism.
func (g *GSSAPI) Name() string { return gssapi }

// Begin implements Mechanism.
func (g *GSSAPI) Begin() Exchange { return gssapiExchange{g.Acceptor.Begin()} }

type gssapiExchange struct{ acceptance *kerberos.Acceptance }

// Step implements Exchange.
func (x gssapiExchange) Step(client []byte) (answer []byte, proven Identity, err error) {
	answer, user, err := x.acceptance.Step(client)
	if transient := kerberos.Transient(""); errors.As(err, &transient) {
		err = Transient{err}
	}
	return answer, Identity{User: user}, err
}

// ClientGSSAPI is the client's side of GSSAPI: it goes to the service of that name on the broker's host, such as kafka.
func ClientGSSAPI(tickets *kerberos.Tickets, service string) sasl.Mechanism {
	return gssapiClient{tickets, service}
}

type gssapiClient struct {
	tickets *kerberos.Tickets
	service string
}

// Name implements sasl.Mechanism.
func (c gssapiClient) Name() string { return gssapi }

// Authenticate implements sasl.Mechanism.
func (c gssapiClient) Authenticate(ctx context.Context, addr string) (sasl.Session, []byte, error) {
	ticket, err := c.tickets.For(ctx, c.service, kerberos.ServiceHost(ctx, addr, net.DefaultResolver))
	if err != nil {
		return nil, nil, err
	}
	x, token, err := kerberos.Initiate(ticket)
	if err != nil {
		return nil, nil, err
	}
	return gssapiSession{x}, token, nil
}

type gssapiSession struct{ initiation *kerberos.Initiation }

// Challenge implements sasl.Session. The service's answer to the last message is empty.
func (s gssapiSession) Challenge(challenge []byte) (done bool, answer []byte, err error) {
	return s.initiation.Step(challenge)
}
