package powercut

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/lane"
)

// gate stands before a broker's listener. Requests of a kind that is held wait in it, as in a slow network, and those of a sender that is gone are dropped.
type gate struct {
	addr string // where it listens

	mu       sync.Mutex
	changed  *sync.Cond
	held     map[kmsg.Key]bool
	waiting  map[kmsg.Key]int
	answered map[kmsg.Key]int // of those that waited
	conns    map[net.Conn]bool
	closed   bool
}

// newGate listens for a broker that will listen at another address.
func newGate(t *testing.T, broker string) *gate {
	g := &gate{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(lane.Port(t))), held: map[kmsg.Key]bool{}, waiting: map[kmsg.Key]int{}, answered: map[kmsg.Key]int{}, conns: map[net.Conn]bool{}}
	g.changed = sync.NewCond(&g.mu)
	l, err := net.Listen("tcp", g.addr)
	require.NoError(t, err)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			tasks.Go(func() { g.pass(c, broker) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		g.set(func() {
			g.closed = true
			for c := range g.conns {
				c.Close()
			}
		})
		tasks.Wait()
	})
	return g
}

func (g *gate) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	g.changed.Broadcast()
}

// hold lets no request of a kind through any more.
func (g *gate) hold(k kmsg.Key) { g.set(func() { g.held[k] = true }) }

// release lets all of them through.
func (g *gate) release(k kmsg.Key) { g.set(func() { g.held[k] = false }) }

// await waits until one of a kind waits.
func (g *gate) await(t *testing.T, k kmsg.Key) {
	t.Helper()
	g.until(t, func() bool { return g.waiting[k] > 0 }, "a request of kind "+k.Name()+" to come")
}

// awaitAnswer waits until one that was held is answered.
func (g *gate) awaitAnswer(t *testing.T, k kmsg.Key) {
	t.Helper()
	g.until(t, func() bool { return g.answered[k] > 0 }, "an answer to a held request of kind "+k.Name())
}

func (g *gate) until(t *testing.T, holds func() bool, what string) {
	t.Helper()
	ctx := lane.Patience(t)
	for {
		g.mu.Lock()
		ok := holds()
		g.mu.Unlock()
		if ok {
			return
		}
		require.NoError(t, ctx.Err(), "waiting for %s", what)
		time.Sleep(5 * time.Millisecond) // the pace of looking
	}
}

// pass takes what a connection's sender and the broker say to each other.
func (g *gate) pass(sender net.Conn, addr string) {
	defer sender.Close()
	broker, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return
	}
	defer broker.Close()
	gone, waited := false, map[uint32]kmsg.Key{}
	g.set(func() { g.conns[sender], g.conns[broker] = true, true })
	var back sync.WaitGroup
	defer back.Wait()
	defer broker.Close()
	frames := make(chan []byte, 16)
	back.Go(func() { // what is asked
		defer close(frames)
		for {
			frame, err := readFrame(sender)
			if err != nil {
				g.set(func() { gone = true })
				return
			}
			select {
			case frames <- frame:
			case <-time.After(time.Minute): // nobody asks so much before it is answered
				return
			}
		}
	})
	back.Go(func() { // what is answered
		defer sender.Close()
		for {
			frame, err := readFrame(broker)
			if err != nil {
				return
			}
			_, err = sender.Write(frame)
			g.set(func() {
				if k, ok := waited[binary.BigEndian.Uint32(frame[4:])]; ok && err == nil {
					g.answered[k]++
				}
			})
		}
	})
	for frame := range frames {
		k := kmsg.Key(binary.BigEndian.Uint16(frame[4:]))
		g.mu.Lock()
		if g.held[k] {
			waited[binary.BigEndian.Uint32(frame[8:])] = k
			g.waiting[k]++
			for g.held[k] && !gone && !g.closed {
				g.changed.Wait()
			}
			g.waiting[k]--
		}
		drop := gone || g.closed
		g.mu.Unlock()
		if drop {
			break
		}
		if _, err := broker.Write(frame); err != nil {
			break
		}
	}
	sender.Close()
	for range frames { // until the reader has seen it
	}
	g.set(func() {
		delete(g.conns, sender)
		delete(g.conns, broker)
	})
}

// readFrame reads one request or answer with its length.
func readFrame(r io.Reader) ([]byte, error) {
	size := make([]byte, 4)
	if _, err := io.ReadFull(r, size); err != nil {
		return nil, err
	}
	frame := append(size, make([]byte, binary.BigEndian.Uint32(size))...)
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}
