package netserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// goodbyeLimit bounds how long the end of an encrypted stream may take to be told to a client that reads no more.
const goodbyeLimit = time.Second

// secure makes the TLS handshake, where the listener wants one, on the connection's own goroutine: a client that is slow at it
// holds up nobody, and is idle by the same clock as any other.
func (c *conn) secure() error {
	secure, encrypted := c.socket.(*tls.Conn)
	if !encrypted {
		return nil
	}
	if err := secure.Handshake(); err != nil {
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return errStopping
		case errors.Is(err, io.EOF): // a probe that connects and goes
			return err
		}
		return &protocolError{fmt.Errorf("TLS handshake: %w", err)}
	}
	c.touch()
	certificates := secure.ConnectionState().PeerCertificates
	if len(certificates) == 0 || c.via.Identify == nil {
		return nil
	}
	principal, err := c.via.Identify(certificates[0])
	if err != nil {
		return &protocolError{err}
	}
	c.wire.Principal = principal
	return nil
}

// sayGoodbye tells a TLS client that the stream ends here on purpose, or it would take it for cut. Only whoever may write calls it.
func (c *conn) sayGoodbye() {
	if secure, encrypted := c.socket.(*tls.Conn); encrypted {
		_ = c.raw.SetWriteDeadline(time.Now().Add(goodbyeLimit))
		_ = secure.CloseWrite() // the connection ends in any case
	}
}
