package sasl

import (
	"context"
	"net"
	"time"

	"barnabas/kerberos"
)

// Login is as whom a client authenticates.
type Login interface {
	// Login authenticates over a connection to a server, host:port, whose session was confirmed, before anything else is asked. ask sends a token and returns the server's.
	Login(server string, ask func(token []byte) ([]byte, error)) error
	// String names who it is.
	String() string
}

// Kerberos is a client that proves itself by a ticket (GSSAPI, RFC 4752).
type Kerberos struct {
	Tickets *kerberos.Tickets
	Service string // what servers are called: the first part of their principals
	Who     string
}

func (k Kerberos) String() string { return k.Who }

// ticketTime is how long a ticket is waited for.
const ticketTime = 10 * time.Second

// Login implements Login.
func (k Kerberos) Login(server string, ask func(token []byte) ([]byte, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), ticketTime)
	defer cancel()
	ticket, err := k.Tickets.For(ctx, k.Service, kerberos.ServiceHost(ctx, server, net.DefaultResolver))
	if err != nil {
		return err
	}
	x, token, err := kerberos.Initiate(ticket)
	if err != nil {
		return err
	}
	for done := false; ; {
		challenge, err := ask(token)
		if err != nil || done { // the answer to the last token says nothing
			return err
		}
		if done, token, err = x.Step(challenge); err != nil {
			return err
		}
	}
}
