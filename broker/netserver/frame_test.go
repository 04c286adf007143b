package netserver

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// script is a connection whose bytes come in pieces of given sizes.
type script struct {
	bytes  []byte
	pieces []byte // sizes, over and over
	turn   int
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.bytes) == 0 {
		return 0, io.EOF
	}
	n := len(p)
	if len(s.pieces) > 0 {
		n = min(n, 1+int(s.pieces[s.turn%len(s.pieces)]))
		s.turn++
	}
	n = copy(p[:n], s.bytes)
	s.bytes = s.bytes[n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error)      { return len(p), nil }
func (s *script) Close() error                     { return nil }
func (s *script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// cut cuts a stream into frames, the simple way; the error is that of the frame which is no good.
func cut(stream []byte, limit int32) (frames [][]byte, broken bool) {
	for {
		if len(stream) < 4 {
			return frames, false
		}
		size := int32(binary.BigEndian.Uint32(stream))
		if size < 0 || size > limit {
			return frames, true
		}
		if len(stream)-4 < int(size) {
			return frames, false
		}
		frames = append(frames, stream[4:4+size])
		stream = stream[4+size:]
	}
}

func TestAnotherProtocolIsNamed(t *testing.T) {
	for start, want := range map[string]string{
		"\x16\x03\x01\x02\x00\x01": "speaks TLS", "GET / HTTP/1.1\r\n\r\n": "speaks HTTP", "\xff\xff\xff\xff": "frame of -1 bytes",
	} {
		s := &Server{cfg: Config{MaxRequestBytes: 1000}, memory: newBudget(0)}
		c := newConn(s, &script{bytes: []byte(start)}, netip.Addr{}, Listener{})
		_, err := c.in.next()
		require.ErrorContains(t, err, want)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte{0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 1, 9}, []byte{0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, []byte{})
	long := binary.BigEndian.AppendUint32(nil, 9000)
	long = append(long, make([]byte, 9000)...)
	f.Add(append(long, long...), []byte{200, 3, 255})
	f.Add(append(long[:4:4], make([]byte, 100)...), []byte{50})
	const limit = 20_000
	f.Fuzz(func(t *testing.T, stream, pieces []byte) {
		s := &Server{cfg: Config{MaxRequestBytes: limit}, memory: newBudget(1 << 20)}
		c := newConn(s, &script{bytes: stream, pieces: pieces}, netip.Addr{}, Listener{})
		want, broken := cut(stream, limit)
		for i := 0; ; i++ {
			x, err := c.in.next()
			if err != nil {
				require.Len(t, want, i)
				var fault *protocolError
				require.Equal(t, broken, errors.As(err, &fault), "%v", err)
				require.Zero(t, s.memory.held())
				return
			}
			require.Less(t, i, len(want))
			require.Equal(t, string(want[i]), string(x.Frame))
			s.memory.release(&x.claim)
		}
	})
}
