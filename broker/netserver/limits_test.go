package netserver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/vfs"
	"barnabas/broker/wire"
)

func TestFramesOfEverySizeArriveWhole(t *testing.T) {
	content := make([]byte, 20<<20)
	for i := 0; i < len(content); i += 8 {
		binary.BigEndian.PutUint64(content[i:], rand.Uint64())
	}
	s := start(t, testConfig(), handler{})
	c := dial(t, s)
	for _, size := range []int{
		0, 1, 3, 4, 1019, 1020, 1021, 1024, 1025, 4096, firstPiece - 1, firstPiece, firstPiece + 1,
		1 << 20, firstPiece * growth, firstPiece*growth + 1, len(content), 1 << 20, 5 << 20,
	} {
		body := content[len(content)-size:]
		go c.send(body)
		require.True(t, bytes.Equal(body, c.receive()), "size %d", size)
	}
}

func TestFramesCutAnywhereArriveWhole(t *testing.T) {
	s := start(t, testConfig(), handler{})
	c := dial(t, s)
	require.NoError(t, c.Conn.(*net.TCPConn).SetNoDelay(true))
	var stream []byte
	const frames = 300
	for i := range frames {
		body := fmt.Appendf(nil, "%0*d", 1+i*7%2000, i)
		stream = append(binary.BigEndian.AppendUint32(stream, uint32(len(body))), body...)
	}
	go func() {
		for len(stream) > 0 {
			n := min(1+rand.IntN(900), len(stream))
			if _, err := c.Write(stream[:n]); err != nil {
				return
			}
			stream = stream[n:]
		}
	}()
	for i := range frames {
		require.Equal(t, fmt.Sprintf("%0*d", 1+i*7%2000, i), string(c.receive()))
	}
}

func TestImpossibleLengthsCloseTheConnection(t *testing.T) {
	cfg := testConfig()
	cfg.MaxRequestBytes = 1000
	s := start(t, cfg, handler{})
	healthy := dial(t, s)
	for _, length := range []uint32{1001, 1 << 30, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		c := dial(t, s)
		_, err := c.Write(binary.BigEndian.AppendUint32(nil, length))
		require.NoError(t, err)
		c.requireClosed()
	}
	healthy.send(make([]byte, 1000))
	require.Len(t, healthy.receive(), 1000)
}

func TestAnnouncedBytesCostNothingUntilTheyCome(t *testing.T) {
	s := start(t, testConfig(), handler{})
	var before, after runtime.MemStats
	for range 2 { // what other tests left in pools goes with the second
		runtime.GC()
	}
	runtime.ReadMemStats(&before)
	for range 100 {
		c := dial(t, s)
		_, err := c.Write([]byte{0x06, 0, 0, 0, 'x'}) // 96 MiB
		require.NoError(t, err)
	}
	eventually(t, "all are being read", func() bool {
		n := 0
		for _, c := range s.snapshot() {
			if c.in.arrived.Load() == 1 {
				n++
			}
		}
		return n == 100
	})
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(100*(firstPiece+8<<10)))
}

func TestIdleConnectionsAreClosedAndWaitingOnesAreNot(t *testing.T) {
	cfg := testConfig()
	cfg.IdleTimeout = 500 * time.Millisecond
	held := make(chan *wire.Request, 1)
	s := start(t, cfg, handler{handle: func(r *wire.Request) { held <- r }})
	var waiting *client
	var r *wire.Request
	eventually(t, "a request comes before its connection was idle for too long", func() bool {
		waiting = dial(t, s)
		waiting.send([]byte("long poll"))
		select {
		case r = <-held:
			return true
		case <-time.After(5 * cfg.IdleTimeout):
			return false
		}
	})
	dial(t, s).requireClosed() // connected after, idle for the whole time-out
	echo(r)
	require.Equal(t, "long poll", string(waiting.receive()))
	waiting.requireClosed()
}

func TestAClientThatNeverReadsIsBoundedAndBothersNobody(t *testing.T) {
	var handled atomic.Int64
	answer := make([]byte, 64<<10)
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
		if len(r.Frame) < 8 {
			echo(r)
			return
		}
		handled.Add(1)
		r.Reply(framed(answer))
	}})
	greedy, healthy := dial(t, s), dial(t, s)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			if _, err := greedy.Write([]byte{0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8}); err != nil {
				return
			}
		}
	}()
	previous := int64(-1)
	eventually(t, "the server stops taking requests", func() bool {
		healthy.send([]byte("ping"))
		healthy.receive()
		time.Sleep(20 * time.Millisecond) // the pace of looking
		now := handled.Load()
		stuck := now == previous
		previous = now
		return stuck && now > 0
	})
	require.Less(t, handled.Load(), int64(maxUnanswered))
	require.NoError(t, greedy.Close())
	<-stopped
	eventually(t, "it is gone", func() bool { return s.Connections() == 1 })
}

func TestRequestsInHandAreBoundedPerConnection(t *testing.T) {
	held := make(chan *wire.Request, 2*maxUnanswered)
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) { held <- r }})
	c := dial(t, s)
	go func() {
		for range maxUnanswered + 10 {
			if _, err := c.Write([]byte{0, 0, 0, 1, 'x'}); err != nil {
				return
			}
		}
	}()
	eventually(t, "the bound is reached", func() bool { return len(held) == maxUnanswered })
	echo(<-held)
	c.receive()
	eventually(t, "another one came in", func() bool { return len(held) == maxUnanswered })
	for range maxUnanswered + 9 {
		echo(<-held)
		c.receive()
	}
}

func TestFileRangesAreSentFromTheirOffsets(t *testing.T) {
	file, content := testFile(t, 8<<20)
	var pinned atomic.Int64
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
		answer := wire.Response{}
		var total uint32
		var parts []wire.Part
		for f := r.Frame; len(f) >= 8; f = f[8:] {
			off, n := binary.BigEndian.Uint32(f), binary.BigEndian.Uint32(f[4:])
			total += n + 4
			pinned.Add(1)
			parts = append(parts, wire.Part{Bytes: binary.BigEndian.AppendUint32(nil, off)},
				wire.Part{Range: vfs.NewRange(file, int64(off), int64(n), func() { pinned.Add(-1) })})
		}
		answer.Parts = append([]wire.Part{{Bytes: binary.BigEndian.AppendUint32(nil, total)}}, parts...)
		answer.OnSent = func() {
			for i := range parts {
				parts[i].Range.Release()
			}
		}
		r.Reply(answer)
	}})
	var clients sync.WaitGroup
	for seed := range 8 {
		c := dial(t, s)
		clients.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(seed), 1))
			for range 10 {
				var ask, want []byte
				for range 1 + rnd.IntN(6) {
					n := []int{1, 100, copyUpTo, copyUpTo + 1, 300 << 10, 1 << 20}[rnd.IntN(6)]
					off := rnd.IntN(len(content) - n)
					ask = binary.BigEndian.AppendUint32(ask, uint32(off))
					ask = binary.BigEndian.AppendUint32(ask, uint32(n))
					want = binary.BigEndian.AppendUint32(want, uint32(off))
					want = append(want, content[off:off+n]...)
				}
				c.send(ask)
				got := c.receive()
				if string(got) != string(want) {
					t.Errorf("client %d got other bytes than it asked for", seed)
					return
				}
			}
		})
	}
	clients.Wait()
	eventually(t, "every range is released", func() bool { return pinned.Load() == 0 })
}

func TestARangeThatCannotBeReadClosesTheConnection(t *testing.T) {
	file, content := testFile(t, 100<<10)
	for _, n := range []int64{1000, 90 << 10} {
		s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
			r.Reply(wire.Response{Parts: []wire.Part{
				{Bytes: []byte{0, 2, 0, 0}}, {Range: vfs.NewRange(file, int64(len(content))-n/2, n, nil)},
			}})
		}})
		c := dial(t, s)
		c.send([]byte("more than there is"))
		_, err := c.tryReceive()
		require.Error(t, err)
	}
}

func TestMalformedFloodsDoNotDisturbAHealthyClient(t *testing.T) {
	cfg := testConfig()
	cfg.MaxRequestBytes = 1 << 20
	cfg.QueuedMaxBytes = 4 << 20
	s := start(t, cfg, handler{handle: func(r *wire.Request) {
		if len(r.Frame) > 0 && r.Frame[0] == 0xff {
			r.Close(wire.ErrMalformed)
			return
		}
		echo(r)
	}})
	healthy := dial(t, s)
	addr := s.Addr("TEST").String()
	done := make(chan struct{})
	var storm sync.WaitGroup
	for seed := range 4 {
		storm.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(seed), 2))
			junk := make([]byte, 5000)
			for {
				select {
				case <-done:
					return
				default:
				}
				c, err := net.Dial("tcp", addr)
				if err != nil {
					continue
				}
				for i := range junk {
					junk[i] = byte(rnd.Uint32())
				}
				if rnd.IntN(2) == 0 {
					binary.BigEndian.PutUint32(junk, uint32(rnd.IntN(100_000)))
				}
				_, _ = c.Write(junk[:rnd.IntN(len(junk))])
				_ = c.Close()
			}
		})
	}
	for i := range 500 {
		body := fmt.Appendf(nil, "healthy %d", i)
		healthy.send(body)
		require.Equal(t, body, healthy.receive())
	}
	close(done)
	storm.Wait()
	eventually(t, "the storm is over", func() bool { return s.Connections() == 1 })
	require.Zero(t, s.memory.held(), "everything charged was given back")
}

func TestAClientThatTakesNoAnswersIsClosedAndWhatTheyHoldReleased(t *testing.T) {
	cfg := testConfig()
	cfg.IdleTimeout = 200 * time.Millisecond
	file, _ := testFile(t, 4<<20)
	var pinned atomic.Int64
	s := start(t, cfg, handler{handle: func(r *wire.Request) {
		pinned.Add(1)
		go r.Reply(wire.Response{ // from elsewhere, as a fetch that has waited
			Parts:  []wire.Part{{Bytes: []byte{0, 0x20, 0, 0}}, {Range: vfs.NewRange(file, 0, 2<<20, nil)}},
			OnSent: func() { pinned.Add(-1) },
		})
	}})
	c := dial(t, s)
	for range 100 {
		_, _ = c.Write([]byte{0, 0, 0, 1, 'x'}) // it may be closed by then
	}
	eventually(t, "it is closed", func() bool { return s.Connections() == 0 })
	eventually(t, "every answer is released", func() bool { return pinned.Load() == 0 })
}

func TestASlowReaderIsNotIdle(t *testing.T) {
	cfg := testConfig()
	cfg.IdleTimeout = 400 * time.Millisecond
	cfg.SendBuffer = 64 << 10
	file, content := testFile(t, 8<<20)
	s := start(t, cfg, handler{handle: func(r *wire.Request) {
		r.Reply(wire.Response{Parts: []wire.Part{{Bytes: []byte{0, 0x80, 0, 0}}, {Range: vfs.NewRange(file, 0, 8<<20, nil)}}})
	}})
	readSlowly := func() ([]byte, error) { // a second in all, more than twice the time-out
		c := dial(t, s)
		require.NoError(t, c.Conn.(*net.TCPConn).SetReadBuffer(64<<10))
		c.send([]byte("x"))
		got := make([]byte, 4+len(content))
		for rest := got; len(rest) > 0; {
			time.Sleep(30 * time.Millisecond) // the slowness under test
			n, err := io.ReadFull(c, rest[:min(len(rest), 256<<10)])
			if err != nil {
				return nil, err
			}
			rest = rest[n:]
		}
		return got, nil
	}
	got, err := readSlowly()
	for tries := 1; err != nil && tries < 10; tries++ { // a reader that is held up for the time-out was idle
		got, err = readSlowly()
	}
	require.NoError(t, err)
	require.Equal(t, string(content), string(got[4:]))
}

func TestAPanickingHandlerGivesItsMemoryBack(t *testing.T) {
	cfg := testConfig()
	cfg.QueuedMaxBytes = 1 << 20
	s := start(t, cfg, handler{handle: func(*wire.Request) { panic("a fault") }})
	for range 10 {
		c := dial(t, s)
		c.send(make([]byte, 500_000))
		c.requireClosed()
	}
	eventually(t, "all is given back", func() bool { return s.memory.held() == 0 })
}
