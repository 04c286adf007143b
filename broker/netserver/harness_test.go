package netserver

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"barnabas/broker/quota"
	"barnabas/broker/vfs"
	"barnabas/broker/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what has to happen.
const patience = time.Minute

// handler is a wire.Handler made of functions; those that are nil do nothing, or echo.
type handler struct {
	handle       func(*wire.Request)
	connected    func(*wire.Conn)
	disconnected func(*wire.Conn)
}

func (h handler) Handle(r *wire.Request) {
	if h.handle == nil {
		echo(r)
		return
	}
	h.handle(r)
}

func (h handler) Connected(c *wire.Conn) {
	if h.connected != nil {
		h.connected(c)
	}
}

func (h handler) Disconnected(c *wire.Conn) {
	if h.disconnected != nil {
		h.disconnected(c)
	}
}

// echo answers with what was asked.
func echo(r *wire.Request) { r.Reply(framed(r.Frame)) }

// framed makes an answer of a copy of body.
func framed(body []byte) wire.Response {
	answer := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	return wire.Response{Parts: []wire.Part{{Bytes: append(answer, body...)}}}
}

func quiet() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return logrus.NewEntry(log)
}

func testConfig() Config {
	return Config{
		Listeners:       []Listener{{Name: "TEST", Host: "127.0.0.1", Protocol: "PLAINTEXT"}},
		MaxRequestBytes: 100 << 20,
		Limits:          noLimits(),
		Arrivals:        quota.NewArrivals(quota.Windows{Samples: 11, Size: time.Second}),
		Log:             quiet(),
	}
}

// start serves until the test ends.
func start(t testing.TB, cfg Config, h wire.Handler) *Server {
	t.Helper()
	s, err := Listen(cfg)
	require.NoError(t, err)
	s.Serve(h)
	var once sync.Once
	t.Cleanup(func() { once.Do(func() { stop(t, s) }) })
	return s
}

// stop closes the server unless the test has done so itself.
func stop(t testing.TB, s *Server) {
	select {
	case <-s.stopped:
		return
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.Close(ctx) // cuts off clients that a test left behind
}

// client speaks frames.
type client struct {
	t testing.TB
	net.Conn
}

func dial(t testing.TB, s *Server) *client {
	t.Helper()
	return dialListener(t, s, "TEST")
}

func dialListener(t testing.TB, s *Server, listener string) *client {
	t.Helper()
	socket, err := net.Dial("tcp", s.Addr(listener).String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	require.NoError(t, socket.SetDeadline(time.Now().Add(patience)))
	return &client{t: t, Conn: socket}
}

func (c *client) send(body []byte) {
	c.t.Helper()
	_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	require.NoError(c.t, err)
}

func (c *client) receive() []byte {
	c.t.Helper()
	body, err := c.tryReceive()
	require.NoError(c.t, err)
	return body
}

func (c *client) tryReceive() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(c, body)
	return body, err
}

// requireClosed fails unless the server closes the connection without another byte.
func (c *client) requireClosed() {
	c.t.Helper()
	n, err := c.Read(make([]byte, 1))
	require.Zero(c.t, n)
	var timeout net.Error
	if ok := asNetError(err, &timeout); ok {
		require.False(c.t, timeout.Timeout(), "the connection is still open")
	}
	require.Error(c.t, err)
}

func asNetError(err error, target *net.Error) bool {
	found, ok := err.(net.Error)
	if ok {
		*target = found
	}
	return ok
}

// testFile makes a file with content that tells its position.
func testFile(t testing.TB, size int) (vfs.File, []byte) {
	t.Helper()
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(i>>16) ^ byte(i>>8)*7 ^ byte(i)
	}
	name := filepath.Join(t.TempDir(), "segment")
	require.NoError(t, os.WriteFile(name, content, 0o644))
	file, err := vfs.OS.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file, content
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, patience, time.Millisecond, what)
}

func noLimits() Limits { return Limits{Connections: Unlimited, PerIP: Unlimited} }
