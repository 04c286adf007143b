package embedded_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/proto"
)

// history is what clients of all servers were told: of nodes that they made, and of a node whose version each success has for itself.
type history struct {
	t     *testing.T
	stop  chan struct{}
	wg    sync.WaitGroup
	count atomic.Int64

	mu       sync.Mutex
	made     []string
	versions map[int32]int
	unknown  int
}

func newHistory(t *testing.T, e *servers, at []int) *history {
	h := &history{t: t, stop: make(chan struct{}), versions: map[int32]int{}}
	c := e.dial(at[0], client.Session{})
	_, err := c.Call(proto.OpCreate2, create("/counter", "", 0))
	require.NoError(t, err)
	for w := range 2 * len(at) {
		h.wg.Go(func() { h.work(w, e.addr(at[w%len(at)], 0)) })
	}
	return h
}

// work makes nodes and raises the counter, over as many connections as it takes.
func (h *history) work(w int, addr string) {
	for n := 0; ; {
		select {
		case <-h.stop:
			return
		default:
		}
		c, err := client.Dial(addr, 20*time.Second, client.Session{}, nil)
		if err != nil {
			time.Sleep(10 * time.Millisecond) // the pace of a client that looks for a server
			continue
		}
		for err == nil {
			select {
			case <-h.stop:
				c.Drop()
				return
			default:
			}
			n++
			err = h.once(c, fmt.Sprintf("/w%d-%d", w, n))
		}
		c.Drop()
	}
}

func (h *history) once(c *client.Conn, path string) error {
	if _, err := c.Call(proto.OpCreate2, create(path, path, 0)); err != nil {
		return err
	}
	h.mu.Lock()
	h.made = append(h.made, path)
	h.mu.Unlock()
	r, err := c.Call(proto.OpExists, &proto.ReadRequest{Path: "/counter"})
	if err != nil {
		return err
	}
	from := r.Stat().Version
	_, err = c.Call(proto.OpSetData, &proto.SetDataRequest{Path: "/counter", Data: []byte(path), Version: from})
	var code *client.Error
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		h.versions[from+1]++
	case errors.As(err, &code) && code.Code == proto.BadVersion:
		err = nil
	default:
		h.unknown++
	}
	h.count.Add(1)
	return err
}

// more returns when so many rounds more were answered.
func (h *history) more(n int64) {
	h.t.Helper()
	until := h.count.Load() + n
	require.Eventually(h.t, func() bool { return h.count.Load() >= until }, 2*time.Minute, 10*time.Millisecond)
}

func (h *history) end() {
	close(h.stop)
	h.wg.Wait()
}

// judge asks for what was acknowledged.
func (h *history) judge(c *client.Conn) {
	h.t.Helper()
	for _, path := range h.made {
		require.True(h.t, exists(h.t, c, path), "%s was acknowledged", path)
	}
	r, err := c.Call(proto.OpExists, &proto.ReadRequest{Path: "/counter"})
	require.NoError(h.t, err)
	last := int(r.Stat().Version)
	for v, times := range h.versions {
		require.Equal(h.t, 1, times, "version %d was given twice", v)
		require.LessOrEqual(h.t, int(v), last)
	}
	require.LessOrEqual(h.t, last-len(h.versions), h.unknown, "versions that nobody was given")
	require.NotEmpty(h.t, h.made)
}
