package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"barnabas/broker/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// fakeBroker answers requests by a function; nil means silence. It is closed with the test.
type fakeBroker struct {
	t        *testing.T
	listener net.Listener
	answer   func(socket net.Conn, h wire.Header, req kmsg.Request) []byte
	accepted atomic.Int32
	tasks    sync.WaitGroup

	mu      sync.Mutex
	sockets []net.Conn
}

func startBroker(t *testing.T, answer func(socket net.Conn, h wire.Header, req kmsg.Request) []byte) *fakeBroker {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return startOn(t, listener, answer)
}

func startOn(t *testing.T, listener net.Listener, answer func(socket net.Conn, h wire.Header, req kmsg.Request) []byte) *fakeBroker {
	t.Helper()
	b := &fakeBroker{t: t, listener: listener, answer: answer}
	b.tasks.Go(b.accept)
	t.Cleanup(b.stop)
	return b
}

func (b *fakeBroker) stop() {
	_ = b.listener.Close()
	b.dropAll()
	b.tasks.Wait()
}

func (b *fakeBroker) dropAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, socket := range b.sockets {
		_ = socket.Close()
	}
	b.sockets = nil
}

func (b *fakeBroker) accept() {
	for {
		socket, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.accepted.Add(1)
		b.mu.Lock()
		b.sockets = append(b.sockets, socket)
		b.mu.Unlock()
		b.tasks.Go(func() { b.serve(socket) })
	}
}

func (b *fakeBroker) serve(socket net.Conn) {
	for {
		var head [4]byte
		if _, err := io.ReadFull(socket, head[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(socket, frame); err != nil {
			return
		}
		h, body, err := wire.ParseHeader(frame)
		if err != nil {
			b.t.Errorf("the peer sent a header that is no good: %v", err)
			return
		}
		req, err := wire.DecodeRequest(h, body)
		if err != nil {
			b.t.Errorf("the peer sent a body that is no good: %v", err)
			return
		}
		if answer := b.answer(socket, h, req); answer != nil {
			if _, err := socket.Write(answer); err != nil {
				return
			}
		}
	}
}

// metadata answers every request with an empty response, Metadata with the correlation id as controller.
func metadata(_ net.Conn, h wire.Header, req kmsg.Request) []byte {
	resp := req.ResponseKind()
	if m, ok := resp.(*kmsg.MetadataResponse); ok {
		m.ControllerID = h.CorrelationID
	}
	return wire.AppendResponse(nil, h, resp)
}

func testConfig(addr string, change func(*Config)) Config {
	log := logrus.New()
	log.SetOutput(io.Discard)
	cfg := Config{ID: 7, Addr: addr, ClientID: "broker-1", Timeout: patience, BackoffMin: time.Millisecond, Log: logrus.NewEntry(log)}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

func newPeer(t *testing.T, addr string, change func(*Config)) *Peer {
	t.Helper()
	p := New(testConfig(addr, change))
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func (b *fakeBroker) addr() string { return b.listener.Addr().String() }

func metadataRequest(version int16) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = version
	return req
}

func TestAnswersBelongToTheirRequestsAtEveryVersion(t *testing.T) {
	b := startBroker(t, metadata)
	p := newPeer(t, b.addr(), nil)
	for version := int16(1); version <= 12; version++ {
		resp, err := p.Do(context.Background(), metadataRequest(version))
		require.NoError(t, err)
		require.EqualValues(t, version, resp.(*kmsg.MetadataResponse).ControllerID, "correlation ids count up")
		require.Equal(t, version, resp.GetVersion())
	}
	require.EqualValues(t, 1, b.accepted.Load())
	require.True(t, linked(p))
}

func TestRequestsAreSentInTheOrderOfTheCalls(t *testing.T) {
	b := startBroker(t, metadata)
	p := newPeer(t, b.addr(), nil)
	results := make(chan int32, 100)
	for range cap(results) {
		p.Send(context.Background(), metadataRequest(9), func(resp kmsg.Response, err error) {
			if err != nil {
				results <- -1
				return
			}
			results <- resp.(*kmsg.MetadataResponse).ControllerID
		})
	}
	for i := range cap(results) {
		require.EqualValues(t, i+1, <-results)
	}
}

func TestNoMoreThanTheLimitIsInFlight(t *testing.T) {
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	b := startBroker(t, func(socket net.Conn, h wire.Header, req kmsg.Request) []byte {
		arrived <- struct{}{}
		if len(arrived) == 2 {
			<-release
		}
		return nil
	})
	p := newPeer(t, b.addr(), func(c *Config) { c.MaxInFlight = 2 })
	outcomes := make(chan error, 3)
	for range 3 {
		p.Send(context.Background(), metadataRequest(9), func(_ kmsg.Response, err error) { outcomes <- err })
	}
	require.Eventually(t, func() bool { return len(arrived) == 2 }, patience, time.Millisecond)
	require.Never(t, func() bool { return len(arrived) > 2 }, 30*time.Millisecond, 5*time.Millisecond)
	close(release)
	require.NoError(t, p.Close())
	for range 3 {
		require.ErrorIs(t, <-outcomes, ErrClosed)
	}
}

func TestASilentBrokerIsATimeoutAndThenANewConnection(t *testing.T) {
	var silent atomic.Bool
	silent.Store(true)
	b := startBroker(t, func(socket net.Conn, h wire.Header, req kmsg.Request) []byte {
		if silent.Load() {
			return nil
		}
		return metadata(socket, h, req)
	})
	p := newPeer(t, b.addr(), func(c *Config) { c.Timeout = time.Second })
	_, err := p.Do(context.Background(), metadataRequest(9))
	require.ErrorIs(t, err, kerr.RequestTimedOut)
	require.NotErrorIs(t, err, ErrNotSent)
	silent.Store(false)
	require.Eventually(t, func() bool {
		_, err := p.Do(context.Background(), metadataRequest(9))
		return err == nil
	}, patience, time.Millisecond)
	require.GreaterOrEqual(t, b.accepted.Load(), int32(2))
}

func TestALostConnectionFailsWhatIsInFlightAndIsMadeAnew(t *testing.T) {
	var drop atomic.Bool
	b := startBroker(t, func(socket net.Conn, h wire.Header, req kmsg.Request) []byte {
		if drop.Load() {
			_ = socket.Close()
			return nil
		}
		return metadata(socket, h, req)
	})
	p := newPeer(t, b.addr(), nil)
	_, err := p.Do(context.Background(), metadataRequest(9))
	require.NoError(t, err)
	drop.Store(true)
	_, err = p.Do(context.Background(), metadataRequest(9))
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrNotSent, "it was sent: only its caller knows whether it may be repeated")
	drop.Store(false)
	_, err = p.Do(context.Background(), metadataRequest(9))
	require.NoError(t, err)
	require.EqualValues(t, 2, b.accepted.Load())
}

func TestNobodyListeningIsNotSent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	require.NoError(t, listener.Close())
	p := newPeer(t, addr, nil)
	_, err = p.Do(context.Background(), metadataRequest(9))
	require.ErrorIs(t, err, ErrNotSent)
	require.False(t, linked(p))
}

func TestAttemptsToConnectBackOff(t *testing.T) {
	var attempts atomic.Int32
	p := newPeer(t, "nowhere", func(c *Config) {
		c.BackoffMin, c.BackoffMax = 20*time.Millisecond, 40*time.Millisecond
		c.Dial = func(context.Context, string, string) (net.Conn, error) {
			attempts.Add(1)
			return nil, errors.New("refused")
		}
	})
	begin := time.Now()
	for range 4 {
		_, err := p.Do(context.Background(), metadataRequest(9))
		require.ErrorContains(t, err, "refused")
	}
	require.EqualValues(t, 4, attempts.Load())
	require.GreaterOrEqual(t, time.Since(begin), 100*time.Millisecond, "20, 40 and 40 ms between the four")
}

func TestAConnectionClosedBeforeItsFirstAnswerBacksOff(t *testing.T) {
	b := startBroker(t, func(socket net.Conn, h wire.Header, req kmsg.Request) []byte {
		_ = socket.Close()
		return nil
	})
	p := newPeer(t, b.addr(), func(c *Config) { c.BackoffMin = 30 * time.Millisecond })
	begin := time.Now()
	for range 2 {
		_, err := p.Do(context.Background(), metadataRequest(9))
		require.Error(t, err)
	}
	require.GreaterOrEqual(t, time.Since(begin), 30*time.Millisecond)
}

func TestACallerThatGivesUpDoesNotDisturbTheNext(t *testing.T) {
	release := make(chan struct{})
	b := startBroker(t, func(socket net.Conn, h wire.Header, req kmsg.Request) []byte {
		if h.CorrelationID == 1 {
			<-release
		}
		return metadata(socket, h, req)
	})
	p := newPeer(t, b.addr(), nil)
	ctx, cancel := context.WithCancel(context.Background())
	given := make(chan error)
	go func() {
		_, err := p.Do(ctx, metadataRequest(9))
		given <- err
	}()
	require.Eventually(t, func() bool { return linked(p) }, patience, time.Millisecond)
	second := make(chan error)
	go func() {
		_, err := p.Do(context.Background(), metadataRequest(9))
		second <- err
	}()
	cancel()
	require.ErrorIs(t, <-given, context.Canceled)
	close(release)
	require.NoError(t, <-second)
}

func TestAnswersNobodyAskedForEndTheConnection(t *testing.T) {
	for name, bad := range map[string][]byte{
		"another correlation id": {0, 0, 0, 4, 0, 0, 0, 99},
		"negative length":        {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1},
		"too long":               {0x7f, 0, 0, 0, 0, 0, 0, 1},
		"body cut off":           {0, 0, 0, 6, 0, 0, 0, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := startBroker(t, func(net.Conn, wire.Header, kmsg.Request) []byte { return bad })
			p := newPeer(t, b.addr(), nil)
			_, err := p.Do(context.Background(), metadataRequest(9))
			require.Error(t, err)
			require.Eventually(t, func() bool { return !linked(p) }, patience, time.Millisecond)
		})
	}
}

func TestVersionsAreAskedOncePerConnection(t *testing.T) {
	var asked atomic.Int32
	b := startBroker(t, func(socket net.Conn, h wire.Header, req kmsg.Request) []byte {
		if h.Key != wire.KeyApiVersions {
			return metadata(socket, h, req)
		}
		asked.Add(1)
		return wire.AppendResponse(nil, h, wire.APIVersions(h.Version))
	})
	p := newPeer(t, b.addr(), nil)
	for range 3 {
		req := kmsg.NewPtrMetadataRequest()
		require.NoError(t, p.Negotiate(context.Background(), req, 99))
		require.EqualValues(t, 12, req.Version)
		require.NoError(t, p.Negotiate(context.Background(), req, 5))
		require.EqualValues(t, 5, req.Version)
	}
	require.EqualValues(t, 1, asked.Load())
	require.ErrorIs(t, p.Negotiate(context.Background(), kmsg.NewPtrVoteRequest(), 0), kerr.UnsupportedVersion)
	b.dropAll()
	require.Eventually(t, func() bool { return !linked(p) }, patience, time.Millisecond)
	require.NoError(t, p.Negotiate(context.Background(), kmsg.NewPtrMetadataRequest(), 99))
	require.EqualValues(t, 2, asked.Load())
}

// KIP-511: a broker that does not know the version asked answers in version 0.
func TestVersionsOfAnOlderBrokerAreUnderstood(t *testing.T) {
	b := startBroker(t, func(_ net.Conn, h wire.Header, _ kmsg.Request) []byte {
		h.Version = 0
		return wire.AppendResponse(nil, h, wire.UnsupportedAPIVersions())
	})
	p := newPeer(t, b.addr(), nil)
	versions, err := p.versions(context.Background())
	require.NoError(t, err)
	require.Equal(t, map[int16]served{18: {0, 4}}, versions)
}

func TestACrowdThatWaitsIsTurnedAway(t *testing.T) {
	p := newPeer(t, "nowhere", func(c *Config) {
		c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	outcomes := make(chan error, maxWaiting+10)
	for range cap(outcomes) {
		p.Send(context.Background(), metadataRequest(9), func(_ kmsg.Response, err error) { outcomes <- err })
	}
	for range 9 {
		require.ErrorIs(t, <-outcomes, ErrBusy)
	}
	require.NoError(t, p.Close())
	p.Send(context.Background(), metadataRequest(9), func(_ kmsg.Response, err error) { outcomes <- err })
	for range maxWaiting + 2 {
		require.ErrorIs(t, <-outcomes, ErrNotSent)
	}
}

// linked tells whether there is a connection now.
func linked(p *Peer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.link != nil
}
