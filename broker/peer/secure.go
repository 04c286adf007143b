package peer

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
)

// Security is how connections to other brokers are encrypted, and as whom they are made.
type Security struct {
	// TLS gives the configuration for the broker at an address; nil: nothing is encrypted. It is asked for each connection.
	TLS func(addr string) *tls.Config
	// SASL is the mechanism by which this broker proves who it is; nil: it does not.
	SASL sasl.Mechanism
}

// Versions of the two APIs of SASL: those that every broker since 2.5 knows.
const (
	handshakeVersion    = 1
	authenticateVersion = 2
)

// secured is a connection that is ready for requests. It is good until the other side ends the session; zero: for ever.
type secured struct {
	net.Conn
	until time.Time
}

func (c secured) over(now time.Time) bool { return !c.until.IsZero() && now.After(c.until) }

// secure encrypts a new connection and proves who this broker is. After an error the connection is closed.
func (cfg *Config) secure(ctx context.Context, socket net.Conn) (secured, error) {
	ready, err := cfg.tryToSecure(ctx, socket)
	if err != nil {
		return secured{}, errors.Join(err, socket.Close())
	}
	return ready, nil
}

func (cfg *Config) tryToSecure(ctx context.Context, socket net.Conn) (secured, error) {
	c := secured{Conn: socket}
	if cfg.Security.TLS != nil {
		encrypted := tls.Client(socket, cfg.Security.TLS(cfg.Addr))
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return c, fmt.Errorf("TLS handshake: %w", err)
		}
		c.Conn = encrypted
	}
	if cfg.Security.SASL == nil {
		return c, nil
	}
	giveUp := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	lifetime, err := cfg.authenticate(ctx, c.Conn)
	if !giveUp() && err == nil {
		err = ctx.Err() // the deadline of the past may be in force
	}
	if err != nil {
		return c, fmt.Errorf("authenticating: %w", err)
	}
	if lifetime > 0 {
		// Leave in time: the other side closes the connection at the first request after the end.
		c.until = time.Now().Add(lifetime * 85 / 100)
	}
	return c, nil
}

// authenticate goes through the exchange, and tells how long the session lasts; 0: as long as the connection.
func (cfg *Config) authenticate(ctx context.Context, socket net.Conn) (time.Duration, error) {
	x := saslExchange{cfg: cfg, socket: socket, in: bufio.NewReader(socket), format: kmsg.NewRequestFormatter(kmsg.FormatterClientID(cfg.ClientID))}
	mechanism := cfg.Security.SASL
	hello := kmsg.NewPtrSASLHandshakeRequest()
	hello.Version, hello.Mechanism = handshakeVersion, mechanism.Name()
	answer, err := x.ask(hello)
	if err != nil {
		return 0, err
	}
	if err := kerr.ErrorForCode(answer.(*kmsg.SASLHandshakeResponse).ErrorCode); err != nil {
		return 0, fmt.Errorf("mechanism %s: %w", mechanism.Name(), err)
	}
	session, token, err := mechanism.Authenticate(ctx, cfg.Addr)
	if err != nil {
		return 0, err
	}
	for done := false; ; {
		req := kmsg.NewPtrSASLAuthenticateRequest()
		req.Version, req.SASLAuthBytes = authenticateVersion, token
		if answer, err = x.ask(req); err != nil {
			return 0, err
		}
		resp := answer.(*kmsg.SASLAuthenticateResponse)
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			if resp.ErrorMessage != nil {
				err = fmt.Errorf("%w: %s", err, *resp.ErrorMessage)
			}
			return 0, err
		}
		if !done {
			if done, token, err = session.Challenge(resp.SASLAuthBytes); err != nil {
				return 0, err
			}
			if !done || len(token) > 0 { // a last word of ours is answered, too
				continue
			}
		}
		return time.Duration(resp.SessionLifetimeMillis) * time.Millisecond, nil
	}
}

// saslExchange asks one thing after the other on a connection that nobody else uses yet.
type saslExchange struct {
	cfg         *Config
	socket      net.Conn
	in          *bufio.Reader
	format      *kmsg.RequestFormatter
	correlation int32
}

// maxSaslAnswer bounds what a broker may say that is not known yet.
const maxSaslAnswer = 1 << 20

func (x *saslExchange) ask(req kmsg.Request) (kmsg.Response, error) {
	x.correlation++
	if _, err := x.socket.Write(x.format.AppendRequest(nil, req, x.correlation)); err != nil {
		return nil, err
	}
	size, correlation, err := x.cfg.readHead(x.in)
	switch {
	case err != nil:
		return nil, x.cfg.whyNoAnswer(err)
	case correlation != x.correlation:
		return nil, unasked(correlation)
	case size > maxSaslAnswer:
		return nil, fmt.Errorf("answer of %d bytes to %s", size, kmsg.NameForKey(req.Key()))
	}
	return readBody(x.in, req, make([]byte, size))
}
