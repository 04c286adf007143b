package embedded_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/proto"
)

// link passes connections on until it is cut; then it holds them, as a network does that loses everything.
type link struct {
	l     net.Listener
	to    string
	cut   atomic.Bool
	mu    sync.Mutex
	conns []net.Conn
}

func newLink(t *testing.T, to string) *link {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	k := &link{l: l, to: to}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", to)
			if err != nil {
				_ = nc.Close()
				continue
			}
			k.mu.Lock()
			k.conns = append(k.conns, nc, up)
			k.mu.Unlock()
			wg.Go(func() { k.pass(up, nc) })
			wg.Go(func() { k.pass(nc, up) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		k.drop()
		wg.Wait()
	})
	return k
}

func (k *link) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.conns {
		_ = c.Close()
	}
	k.conns = nil
}

func (k *link) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if k.cut.Load() {
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// A leader that is cut off from the others, and still has clients, can make nothing happen; what the others acknowledge meanwhile is there when it is back.
func TestALeaderThatIsCutOffDecidesNothing(t *testing.T) {
	e := newServers(t, 3)
	var links [3][3]*link
	for i := range 3 {
		for j := range 3 {
			if i != j {
				links[i][j] = newLink(t, e.addr(j, 1))
				a := e.cfg[i].Ensemble.Servers[uint64(j+1)]
				a.Quorum = links[i][j].l.Addr().String()
				e.cfg[i].Ensemble.Servers[uint64(j+1)] = a
			}
		}
	}
	e.start(0, 1, 2)
	h := newHistory(t, e, []int{0, 1, 2})
	for range 3 {
		h.more(100)
		leader := e.leader()
		c := e.dial(leader, client.Session{})
		cut := func(on bool) {
			for j := range 3 {
				if j != leader {
					for _, k := range []*link{links[leader][j], links[j][leader]} {
						k.cut.Store(on)
						if !on {
							k.drop()
						}
					}
				}
			}
		}
		cut(true)
		_, err := c.Call(proto.OpCreate2, create("/never", "", 0))
		require.ErrorIs(t, err, client.ErrClosed)
		h.more(50) // the others go on
		cut(false)
		require.Eventually(t, func() bool { return strings.Contains(word(e.addr(leader, 0), "srvr"), "Mode: follower") }, time.Minute, 20*time.Millisecond)
	}
	h.end()
	c := e.dial(0, client.Session{})
	h.judge(c)
	require.False(t, exists(t, c, "/never"))
}
