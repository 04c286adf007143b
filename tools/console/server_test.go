package console

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A broker shares its descriptors with its console: without room for a file its log directory would fail.
func TestConnectionsAreBounded(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	s, err := Serve(Config{Listener: "127.0.0.1:0", Cluster: newFake(), Log: logrus.NewEntry(log)})
	require.NoError(t, err)
	defer s.Close()
	ask := func(conn net.Conn, patience time.Duration) error {
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		_, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return errors.Join(err, resp.Body.Close())
	}
	connect := func() net.Conn {
		conn, err := net.Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	var held []net.Conn
	for range connections {
		held = append(held, connect())
		require.NoError(t, ask(held[len(held)-1], time.Minute))
	}
	late := connect()
	require.ErrorIs(t, ask(late, 200*time.Millisecond), os.ErrDeadlineExceeded)
	require.NoError(t, held[0].Close())
	assert.NoError(t, ask(late, time.Minute), "there is room again")
}
