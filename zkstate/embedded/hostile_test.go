package embedded_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/proto"
	"barnabas/zkstate/zktest"
)

// junk makes one hostile connection of a seed: raw noise, bad lengths, half a frame, or a proper start with a broken rest.
func junk(rnd *rand.Rand) []byte {
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	hello := proto.Seal(proto.AppendConnect(proto.Frame(), proto.ConnectRequest{TimeoutMs: 1000, Password: make([]byte, 16), HasReadOnly: true}))
	request := func(body []byte) []byte {
		return proto.Seal(append(proto.AppendInt32(proto.AppendInt32(proto.Frame(), 1), int32(rnd.IntN(120)-12)), body...))
	}
	switch rnd.IntN(7) {
	case 0:
		return noise(rnd.IntN(200))
	case 1:
		return binary.BigEndian.AppendUint32(nil, rnd.Uint32())
	case 2:
		return append(binary.BigEndian.AppendUint32(nil, 900_000), noise(100)...)
	case 3:
		return append(hello, noise(rnd.IntN(100))...)
	case 4:
		return append(hello, request(noise(rnd.IntN(60)))...)
	case 5: // a vector of a billion entries
		return append(hello, request(binary.BigEndian.AppendUint32(proto.AppendString(nil, "/x"), 1<<30))...)
	default:
		return hello[:rnd.IntN(len(hello))]
	}
}

func TestAStormOfMalformedInputDoesNotTouchAHealthyClient(t *testing.T) {
	srv := zktest.Embedded(t)
	healthy := dial(t, srv)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var storm sync.WaitGroup
	for w := range 4 {
		storm.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 7))
			for ctx.Err() == nil {
				conn, err := net.Dial("tcp", srv.Addr())
				if err != nil {
					continue
				}
				_ = conn.SetDeadline(time.Now().Add(time.Second))
				_, _ = conn.Write(junk(rnd))
				if rnd.IntN(3) == 0 {
					_ = conn.(*net.TCPConn).CloseWrite()
					_, _ = io.Copy(io.Discard, conn)
				}
				_ = conn.Close()
			}
		})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	slowest := time.Duration(0)
	for i := range 150 {
		began := time.Now()
		_, err := healthy.Call(proto.OpCreate2, create(fmt.Sprintf("/n%d", i), "x", 0))
		require.NoError(t, err)
		slowest = max(slowest, time.Since(began))
	}
	cancel()
	storm.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, slowest, 30*time.Second)
	require.Less(t, int64(after.HeapInuse)-int64(before.HeapInuse), int64(64<<20))
	r, err := healthy.Call(proto.OpGetAllChildrenNum, &proto.PathRequest{Path: "/"})
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.Int32(), int32(150))
}

// A client that asks for much and reads nothing is held back, and costs no more than the answers under way.
func TestAClientThatNeverReadsIsHeldBack(t *testing.T) {
	srv := zktest.Embedded(t)
	healthy := dial(t, srv)
	big := create("/big", "", 0)
	big.Data = make([]byte, 500<<10)
	_, err := healthy.Call(proto.OpCreate2, big)
	require.NoError(t, err)

	conn, err := net.Dial("tcp", srv.Addr())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write(proto.Seal(proto.AppendConnect(proto.Frame(), proto.ConnectRequest{TimeoutMs: 1000, Password: make([]byte, 16)})))
	require.NoError(t, err)
	get := proto.Seal(proto.AppendRequest(proto.AppendInt32(proto.AppendInt32(proto.Frame(), 1), int32(proto.OpGetData)), &proto.ReadRequest{Path: "/big"}))
	written := 0
	for ; written < 1<<20; written++ { // until the server reads no more, or hangs up because the session ran out
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := conn.Write(get); err != nil {
			break
		}
	}
	require.Less(t, written, 1<<20)
	_, err = healthy.Call(proto.OpExists, &proto.ReadRequest{Path: "/big"})
	require.NoError(t, err)
}

func TestManyClientsWriteAtOnce(t *testing.T) {
	srv := zktest.Embedded(t)
	var wg sync.WaitGroup
	errs := make(chan error, 64)
	for w := range 64 {
		wg.Go(func() {
			c, err := client.Dial(srv.Addr(), 50*time.Second, client.Session{}, nil)
			if err != nil {
				errs <- err
				return
			}
			defer c.Close()
			for i := range 10 {
				if _, err := c.Call(proto.OpCreate2, create(fmt.Sprintf("/w%d-%d", w, i), "x", 0)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	r, err := dial(t, srv).Call(proto.OpGetAllChildrenNum, &proto.PathRequest{Path: "/"})
	require.NoError(t, err)
	require.EqualValues(t, 640+3, r.Int32())
}

// The store cannot hold a path that long; a request for one must not reach it.
func TestAPathTooLongForTheStoreIsRefusedAlone(t *testing.T) {
	c := dial(t, zktest.Embedded(t))
	_, err := c.Call(proto.OpCreate2, create("/"+strings.Repeat("x", 40_000), "", 0))
	require.Equal(t, &client.Error{Code: proto.BadArguments}, err)
	path := "/" + strings.Repeat("x", 31_000)
	_, err = c.Call(proto.OpCreate2, create(path, "", 0))
	require.NoError(t, err)
	_, err = c.Call(proto.OpExists, &proto.ReadRequest{Path: path})
	require.NoError(t, err)
}
