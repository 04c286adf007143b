package field

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// patience is longer than anything takes that will still come, also on a busy machine.
const patience = 2 * time.Minute

// conn speaks Kafka's protocol on one connection, at exactly the versions that requests carry, and takes only answers that are exactly what their version says.
type conn struct {
	t      testing.TB
	socket net.Conn
	next   int32
}

func dial(t testing.TB, addr string) *conn {
	t.Helper()
	socket, err := net.DialTimeout("tcp", addr, patience)
	require.NoError(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	return &conn{t: t, socket: socket}
}

// send writes a request and returns its correlation id.
func (c *conn) send(req kmsg.Request) int32 {
	c.t.Helper()
	c.next++
	c.write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("field")).AppendRequest(nil, req, c.next))
	return c.next
}

func (c *conn) write(frame []byte) {
	c.t.Helper()
	_, err := c.socket.Write(frame)
	require.NoError(c.t, err)
}

// frame reads one answer without its length.
func (c *conn) frame() ([]byte, error) {
	_ = c.socket.SetReadDeadline(time.Now().Add(patience))
	var size [4]byte
	if _, err := io.ReadFull(c.socket, size[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c.socket, body)
	return body, err
}

// answer reads the answer to the request that was sent with this correlation id.
func (c *conn) answer(req kmsg.Request, correlation int32) (kmsg.Response, error) {
	frame, err := c.frame()
	if err != nil {
		return nil, err
	}
	if got := int32(binary.BigEndian.Uint32(frame)); got != correlation {
		return nil, fmt.Errorf("answer %d instead of %d", got, correlation)
	}
	body := frame[4:]
	if req.IsFlexible() && req.Key() != 18 {
		if body[0] != 0 {
			return nil, fmt.Errorf("the header has %d tagged fields", body[0])
		}
		body = body[1:]
	}
	return strictly(req, body)
}

// strictly decodes an answer that must leave nothing over.
func strictly(req kmsg.Request, body []byte) (kmsg.Response, error) {
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	if err := resp.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("key %d version %d: %w", req.Key(), req.GetVersion(), err)
	}
	if again := resp.AppendTo(nil); len(again) != len(body) {
		return nil, fmt.Errorf("key %d version %d: %d bytes of %d are understood: %+v", req.Key(), req.GetVersion(), len(again), len(body), resp)
	}
	return resp, nil
}

// ask sends a request at its version and returns the answer.
func ask[R kmsg.Response](c *conn, req kmsg.Request) R {
	c.t.Helper()
	resp, err := c.answer(req, c.send(req))
	require.NoError(c.t, err)
	return resp.(R)
}

// requireClosed holds that the other side hangs up, without another byte.
func (c *conn) requireClosed() {
	c.t.Helper()
	_ = c.socket.SetReadDeadline(time.Now().Add(patience))
	n, err := c.socket.Read(make([]byte, 1))
	require.Zero(c.t, n, "a byte instead of the end of the connection")
	require.Error(c.t, err)
	var timeout net.Error
	require.False(c.t, isTimeout(err, &timeout), "the connection stays open: %v", err)
}

func isTimeout(err error, as *net.Error) bool {
	e, ok := err.(net.Error)
	*as = e
	return ok && e.Timeout()
}

func at[R kmsg.Request](version int16, req R) R {
	req.SetVersion(version)
	return req
}
