package differential

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

const patience = time.Minute // for one answer, on a busy machine

// side is one of the two brokers, with one connection to it.
type side struct {
	*cluster.Broker
	name      string
	zookeeper string
	tree      *zkstate.Client
	conn      net.Conn
	known     *known
	asked     int32
}

func startSide(t *testing.T, name string, program cluster.Program) *side {
	t.Helper()
	zk := zktest.Embedded(t)
	c := cluster.StartProgram(t, program, zk.Addr(), 1, settings, func(int) map[string]string { return nil })
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	tree, err := zkstate.Connect(zkstate.Config{Servers: zk.Addr(), SessionTimeout: 20 * time.Second, Log: logrus.NewEntry(quiet)})
	require.NoError(t, err)
	t.Cleanup(tree.Close)
	s := &side{Broker: c.Brokers[0], name: name, zookeeper: zk.Addr(), tree: tree, known: newKnown()}
	t.Cleanup(s.hangUp)
	return s
}

func (s *side) hangUp() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// answer is what became of a request.
type answer struct {
	resp   kmsg.Response // nil: none
	closed bool          // the broker closed the connection instead
	broken error         // the answer cannot be read, or none came and the connection is open
}

// clone is a request of a side's own.
func clone(req kmsg.Request) (kmsg.Request, error) {
	c := kmsg.RequestForKey(req.Key())
	c.SetVersion(req.GetVersion())
	return c, c.ReadFrom(req.AppendTo(nil))
}

// ask sends a request in which symbols stand for what this side was told, and reads the answer.
func (s *side) ask(req kmsg.Request) answer {
	mine, err := clone(req)
	if err != nil {
		return answer{broken: fmt.Errorf("the request does not survive its own encoding: %w", err)}
	}
	s.known.put(mine)
	s.asked++
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("twin")).AppendRequest(nil, mine, s.asked)[4:]
	if p, ok := mine.(*kmsg.ProduceRequest); ok && p.Acks == 0 {
		return s.tell(frame)
	}
	body, a := s.exchange(frame)
	if body == nil {
		return a
	}
	resp := mine.ResponseKind()
	if resp.IsFlexible() && mine.Key() != kmsg.ApiVersions.Int16() {
		body = body[1:]
	}
	if err := read(resp, body); err != nil {
		return answer{broken: err}
	}
	s.known.learn(mine, resp)
	return answer{resp: resp}
}

// tell sends what has no answer, and looks whether the connection is still there afterwards.
func (s *side) tell(frame []byte) answer {
	s.asked++
	probe := kmsg.NewRequestFormatter().AppendRequest(nil, kmsg.NewPtrApiVersionsRequest(), s.asked)[4:]
	_, a := s.exchange(frame, probe)
	return a
}

// exchange sends one frame and reads one, without the correlation id.
func (s *side) exchange(frames ...[]byte) ([]byte, answer) {
	if s.conn == nil {
		conn, err := net.DialTimeout("tcp", s.Addr, patience)
		if err != nil {
			return nil, answer{broken: err}
		}
		s.conn = conn
	}
	body, err := s.roundTrip(frames)
	if err == nil {
		return body, answer{}
	}
	s.hangUp()
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return nil, answer{broken: errors.New("neither answered nor closed")}
	}
	return nil, answer{closed: true}
}

func (s *side) roundTrip(frames [][]byte) ([]byte, error) {
	if err := s.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	var out []byte
	for _, f := range frames {
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(f))), f...)
	}
	if _, err := s.conn.Write(out); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(s.conn, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 4 || n > 64<<20 {
		return nil, fmt.Errorf("an answer of %d bytes", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(s.conn, body); err != nil {
		return nil, err
	}
	if got := int32(binary.BigEndian.Uint32(body)); got != s.asked {
		return nil, fmt.Errorf("the answer to request %d, not %d", got, s.asked)
	}
	return body[4:], nil
}

// read decodes all of an answer.
func read(resp kmsg.Response, body []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	if err := resp.ReadFrom(body); err != nil {
		return err
	}
	if n := len(resp.AppendTo(nil)); n != len(body) {
		return fmt.Errorf("%d bytes that hold an answer of %d", len(body), n)
	}
	return nil
}

// do asks for what the harness itself wants to know.
func do[R kmsg.Response](t *testing.T, s *side, req kmsg.Request) R {
	t.Helper()
	a := s.ask(req)
	for range 5 { // the request before may have been the connection's last
		if a.closed {
			a = s.ask(req)
		}
	}
	require.NoError(t, a.broken)
	require.False(t, a.closed, "%s closed the connection", s.name)
	return a.resp.(R)
}
