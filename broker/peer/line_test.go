package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/wire"
)

func newLine(t *testing.T, addr string, change func(*Config)) *Line {
	t.Helper()
	l := NewLine(testConfig(addr, change))
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestALineAsksOneAfterTheOtherOnOneConnection(t *testing.T) {
	b := startBroker(t, metadata)
	l := newLine(t, b.addr(), nil)
	for i := range 20 {
		resp, err := l.Do(context.Background(), metadataRequest(int16(i%10)))
		require.NoError(t, err)
		if i%10 >= 1 { // version 0 does not tell the controller
			require.EqualValues(t, i+1, resp.(*kmsg.MetadataResponse).ControllerID)
		}
	}
	require.EqualValues(t, 1, b.accepted.Load())
}

func TestFetchedRecordsStayUntilTheyAreReleased(t *testing.T) {
	b := startBroker(t, func(_ net.Conn, h wire.Header, req kmsg.Request) []byte {
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		topic, partition := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
		partition.RecordBatches = make([]byte, 1<<20)
		for i := range partition.RecordBatches {
			partition.RecordBatches[i] = byte(h.CorrelationID)
		}
		topic.Partitions = append(topic.Partitions, partition)
		resp.Topics = append(resp.Topics, topic)
		return wire.AppendResponse(nil, h, resp)
	})
	l := newLine(t, b.addr(), nil)
	type fetched struct {
		records []byte
		release func()
	}
	var kept []fetched
	for i := range 20 {
		req := kmsg.NewPtrFetchRequest()
		req.Version = 17
		resp, release, err := l.Fetch(context.Background(), req)
		require.NoError(t, err)
		kept = append(kept, fetched{resp.Topics[0].Partitions[0].RecordBatches, release})
		if i%3 == 2 {
			kept[0].release()
			kept = kept[1:]
		}
		for _, f := range kept {
			want := f.records[0]
			require.NotZero(t, want)
			for _, got := range f.records {
				if got != want {
					t.Fatal("records changed before they were released")
				}
			}
		}
	}
}

func TestALineThatLostItsConnectionMakesAnother(t *testing.T) {
	var drop atomic.Bool
	b := startBroker(t, func(socket net.Conn, h wire.Header, req kmsg.Request) []byte {
		if drop.Load() {
			_ = socket.Close()
			return nil
		}
		return metadata(socket, h, req)
	})
	l := newLine(t, b.addr(), nil)
	for _, lost := range []bool{false, true, false} {
		drop.Store(lost)
		_, err := l.Do(context.Background(), metadataRequest(9))
		require.Equal(t, lost, err != nil)
		require.NotErrorIs(t, err, ErrNotSent)
	}
	require.EqualValues(t, 2, b.accepted.Load())
}

func TestASilentBrokerIsATimeoutForALine(t *testing.T) {
	b := startBroker(t, func(net.Conn, wire.Header, kmsg.Request) []byte { return nil })
	l := newLine(t, b.addr(), func(c *Config) { c.Timeout = time.Second })
	_, err := l.Do(context.Background(), metadataRequest(9))
	require.ErrorIs(t, err, kerr.RequestTimedOut)
	require.NotErrorIs(t, err, ErrNotSent)
}

func TestALineBacksOffBetweenAttemptsToConnect(t *testing.T) {
	l := newLine(t, "nowhere", func(c *Config) {
		c.BackoffMin, c.BackoffMax = 20*time.Millisecond, 40*time.Millisecond
		c.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
	})
	begin := time.Now()
	for range 4 {
		_, err := l.Do(context.Background(), metadataRequest(9))
		require.ErrorContains(t, err, "refused")
		require.ErrorIs(t, err, ErrNotSent)
	}
	require.GreaterOrEqual(t, time.Since(begin), 100*time.Millisecond, "20, 40 and 40 ms between the four")
}

func TestWhoGivesUpOnALineBreaksTheConnection(t *testing.T) {
	asked := make(chan struct{}, 2)
	var answers atomic.Bool
	b := startBroker(t, func(socket net.Conn, h wire.Header, req kmsg.Request) []byte {
		asked <- struct{}{}
		if answers.Load() {
			return metadata(socket, h, req)
		}
		return nil
	})
	l := newLine(t, b.addr(), nil)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-asked
		answers.Store(true)
		cancel()
	}()
	_, err := l.Do(ctx, metadataRequest(9))
	require.ErrorIs(t, err, context.Canceled)
	_, err = l.Do(context.Background(), metadataRequest(9))
	require.NoError(t, err)
	require.EqualValues(t, 2, b.accepted.Load())
}

func TestAClosedLineFailsWhatIsAskedNowAndLater(t *testing.T) {
	asked := make(chan struct{})
	b := startBroker(t, func(net.Conn, wire.Header, kmsg.Request) []byte { close(asked); return nil })
	l := newLine(t, b.addr(), nil)
	go func() {
		<-asked
		_ = l.Close()
	}()
	_, err := l.Do(context.Background(), metadataRequest(9))
	require.ErrorIs(t, err, ErrClosed)
	_, err = l.Do(context.Background(), metadataRequest(9))
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, err, ErrNotSent)
}

func TestALineTakesNoAnswerThatItDidNotAskFor(t *testing.T) {
	for name, bad := range map[string][]byte{
		"another correlation id": {0, 0, 0, 4, 0, 0, 0, 99},
		"negative length":        {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1},
		"too long":               {0x7f, 0, 0, 0, 0, 0, 0, 1},
		"body cut off":           {0, 0, 0, 6, 0, 0, 0, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := startBroker(t, func(net.Conn, wire.Header, kmsg.Request) []byte { return bad })
			l := newLine(t, b.addr(), nil)
			for range 2 {
				_, err := l.Do(context.Background(), metadataRequest(9))
				require.Error(t, err)
			}
			require.EqualValues(t, 2, b.accepted.Load())
		})
	}
}

// BenchmarkRound is what asking and being answered costs on both ways, the other side's part included.
func BenchmarkRound(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer func() { require.NoError(b, listener.Close()) }()
	go func() {
		for {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			go answerAll(socket)
		}
	}()
	log := logrus.New()
	log.SetOutput(io.Discard)
	cfg := Config{Addr: listener.Addr().String(), Log: logrus.NewEntry(log)}
	peer, line := New(cfg), NewLine(cfg)
	defer func() { require.NoError(b, errors.Join(peer.Close(), line.Close())) }()
	for name, do := range map[string]func(context.Context, kmsg.Request) (kmsg.Response, error){"peer": peer.Do, "line": line.Do} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := do(context.Background(), metadataRequest(9)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// answerAll answers each Metadata request with the same bytes but for the correlation id.
func answerAll(socket net.Conn) {
	defer func() { _ = socket.Close() }()
	buf := make([]byte, 4096)
	resp := kmsg.NewPtrMetadataResponse()
	resp.Version = 9
	for {
		n, err := socket.Read(buf)
		if err != nil || n < 12 {
			return
		}
		h := wire.Header{Key: 3, Version: 9, CorrelationID: int32(binary.BigEndian.Uint32(buf[8:]))}
		if _, err := socket.Write(wire.AppendResponse(nil, h, resp)); err != nil {
			return
		}
	}
}
