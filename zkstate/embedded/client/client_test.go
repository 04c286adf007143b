package client

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"barnabas/zkstate/embedded/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a server that answers a connection with the given bytes, whatever it hears.
func scripted(t testing.TB, answer []byte) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write(answer)
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

var hello = proto.ConnectResponse(5000, 7, make([]byte, 16), true)

func TestAnAnswerOfZeroIsAnExpiredSession(t *testing.T) {
	_, err := Dial(scripted(t, proto.ConnectResponse(0, 0, make([]byte, 16), true)), time.Second, Session{ID: 5}, nil)
	require.ErrorIs(t, err, ErrExpired)
}

func TestAnAnswerNobodyAskedForEndsTheConnection(t *testing.T) {
	stray := proto.Seal(proto.AppendReplyHeader(proto.Frame(), 77, 1, proto.OK))
	c, err := Dial(scripted(t, append(append([]byte{}, hello...), stray...)), time.Second, Session{}, nil)
	require.NoError(t, err)
	<-c.Done()
	_, err = c.Do(proto.OpPing, &proto.EmptyRequest{})
	require.ErrorIs(t, err, ErrClosed)
	c.Drop()
}

// FuzzServer lets a server say anything.
func FuzzServer(f *testing.F) {
	f.Add(hello)
	f.Add(append(append([]byte{}, hello...), proto.Notification(proto.NodeCreated, "/a")...))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, answer []byte) {
		near, far := net.Pipe()
		go func() {
			_, _ = far.Write(answer)
			_ = far.Close()
		}()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		defer near.Close()
		c := &Conn{nc: near, onEvent: func(Event) {}, done: make(chan struct{})}
		if c.handshake(time.Second, Session{}) == nil {
			_ = c.receive()
		}
	})
}
