package zkstate_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// manyNodes makes nodes with data, with none, with empty data and with an ACL that shuts others out, and answers reads of them, of some that are missing among them.
func manyNodes(t *testing.T, addr, root string) []Op {
	owner := connect(t, addr, func(c *Config) {
		c.Servers = addr + root
		c.Auth = []Auth{{"digest", "owner:secret"}}
	})
	var creates, reads []Op
	for i := range 500 {
		path := fmt.Sprintf("/%d", i)
		create := Create(path, fmt.Appendf(nil, "data of %d", i))
		switch i % 10 {
		case 1:
			create.Data = nil
		case 2:
			create.Data = []byte{}
		case 3:
			create.ACL = []ACL{{Perms: PermAll, Scheme: "auth"}}
		}
		if i%10 != 4 {
			creates = append(creates, create)
		}
		reads = append(reads, Get(path))
	}
	results, err := owner.Do(within(t, time.Minute), creates)
	require.NoError(t, err)
	for _, r := range results {
		require.NoError(t, r.Err)
	}
	return reads
}

// oneByOne reads in portions that are too small for bulk.
func oneByOne(t *testing.T, c *Client, reads []Op) []Result {
	var all []Result
	for len(reads) > 0 {
		results, err := c.Do(within(t, time.Minute), reads[:50])
		require.NoError(t, err)
		all, reads = append(all, results...), reads[50:]
	}
	return all
}

var received = regexp.MustCompile(`Received: (\d+)`)

// requests is how many packets a server has received.
func requests(t *testing.T, addr string) int {
	text, err := fourLetters(addr, "srvr")
	require.NoError(t, err)
	found := received.FindStringSubmatch(text)
	require.NotNil(t, found, text)
	n, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return n
}

func TestWhatIsReadInBulkIsWhatIsReadOneByOne(t *testing.T) {
	zktest.Each(t, func(t *testing.T, srv zktest.Server) {
		reads := manyNodes(t, srv.Addr(), "/bulk")
		for name, auth := range map[string][]Auth{"stranger": nil, "owner": {{"digest", "owner:secret"}}} {
			t.Run(name, func(t *testing.T) {
				c := connect(t, srv.Addr(), func(c *Config) { c.Servers, c.Auth = srv.Addr()+"/bulk", auth })
				want := oneByOne(t, c, reads)
				before := requests(t, srv.Addr())
				got, err := c.Do(within(t, time.Minute), reads)
				require.NoError(t, err)
				assert.Less(t, requests(t, srv.Addr())-before, 100, "the server had to answer each read by itself")
				require.Equal(t, want, got)
				assert.ErrorIs(t, got[4].Err, ErrNoNode)
				if auth == nil {
					assert.ErrorIs(t, got[3].Err, ErrNoAuth)
				} else {
					assert.Equal(t, "data of 3", string(got[3].Data))
				}
			})
		}
	})
}

// A client sees its own writes in what it reads in bulk, though that goes over another session.
func TestBulkIsNotOlderThanWhatTheClientWrote(t *testing.T) {
	zktest.Each(t, func(t *testing.T, srv zktest.Server) {
		reads := manyNodes(t, srv.Addr(), "/bulk")
		c := connect(t, srv.Addr(), func(c *Config) { c.Servers = srv.Addr() + "/bulk" })
		for i := range 20 {
			text := fmt.Sprintf("round %d", i)
			_, err := c.One(within(t, time.Minute), Set("/499", []byte(text), AnyVersion))
			require.NoError(t, err)
			got, err := c.Do(within(t, time.Minute), reads)
			require.NoError(t, err)
			require.Equal(t, text, string(got[499].Data))
		}
	})
}

func TestAServerWithoutMultiReadIsAskedOnceForItAndThenOneByOne(t *testing.T) {
	srv := zktest.Embedded(t)
	reads := manyNodes(t, srv.Addr(), "/bulk")
	old := newOldServer(t, srv.Addr())
	c := connect(t, old.addr, func(c *Config) { c.Servers = old.addr + "/bulk" })
	want := oneByOne(t, c, reads)
	for range 3 {
		got, err := c.Do(within(t, time.Minute), reads)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	old.mu.Lock()
	defer old.mu.Unlock()
	assert.LessOrEqual(t, old.asked, 3, "as many as one attempt sends before it is answered")
	assert.Positive(t, old.asked)
}

// oldServer is a ZooKeeper before 3.6: multiRead is an operation that it does not know.
type oldServer struct {
	addr, target string
	wg           sync.WaitGroup
	mu           sync.Mutex
	asked        int
}

func newOldServer(t *testing.T, target string) *oldServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &oldServer{addr: l.Addr().String(), target: target}
	s.wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			s.wg.Go(func() { defer in.Close(); _, _ = io.Copy(in, out) })
			s.wg.Go(func() { defer out.Close(); s.forward(out, in) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); s.wg.Wait() })
	return s
}

const (
	multiRead = 22
	unknownOp = 999
)

func (s *oldServer) forward(to io.Writer, from io.Reader) {
	for {
		var head [4]byte
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(from, frame); err != nil {
			return
		}
		if len(frame) >= 8 && binary.BigEndian.Uint32(frame[4:]) == multiRead {
			binary.BigEndian.PutUint32(frame[4:], unknownOp)
			s.mu.Lock()
			s.asked++
			s.mu.Unlock()
		}
		if _, err := to.Write(append(head[:], frame...)); err != nil {
			return
		}
	}
}
