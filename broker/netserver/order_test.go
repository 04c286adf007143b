package netserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/vfs"
	"barnabas/broker/wire"
)

func TestAnswersKeepTheOrderOfRequestsHoweverTheyComplete(t *testing.T) {
	const requests = 500
	arrived := make(chan *wire.Request, requests)
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
		if rand.IntN(3) == 0 {
			echo(r)
			return
		}
		arrived <- r
	}})
	c := dial(t, s)
	done := make(chan struct{})
	var completers sync.WaitGroup
	defer completers.Wait()
	defer close(done)
	for range 4 {
		completers.Go(func() {
			for {
				var held []*wire.Request
				select {
				case r := <-arrived:
					held = append(held, r)
				case <-done:
					return
				}
				for more := true; more && len(held) < 5; {
					select {
					case r := <-arrived:
						held = append(held, r)
					default:
						more = false
					}
				}
				rand.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
				for _, r := range held {
					echo(r)
				}
			}
		})
	}
	go func() {
		for i := range requests {
			frame := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, uint32(i))
			_, _ = c.Write(append(frame, 0, 0, 0, 0))
		}
	}()
	for i := range requests {
		require.EqualValues(t, i, binary.BigEndian.Uint32(c.receive()))
	}
}

func TestRequestsBehindAParkedOneAreHandled(t *testing.T) {
	var parked *wire.Request
	second := make(chan struct{})
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
		if parked == nil {
			parked = r
			return
		}
		echo(r)
		close(second)
	}})
	c := dial(t, s)
	c.send([]byte("first"))
	c.send([]byte("second"))
	<-second
	echo(parked)
	require.Equal(t, "first", string(c.receive()))
	require.Equal(t, "second", string(c.receive()))
}

func TestWhoeverAnswersLateNeverWaitsForTheClient(t *testing.T) {
	const requests, small = 400, 300
	file, content := testFile(t, 1<<20)
	held := make(chan *wire.Request, requests)
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) { held <- r }})
	c := dial(t, s)
	for range requests {
		c.send([]byte("x"))
	}
	// The small ones are more than the socket holds: it takes them whole, then one in part, then none. Then come some
	// that are too big to be written by whoever gives them.
	size := func(i int) int {
		if i < small {
			return []int{5, 3_000, 30_000}[i%3]
		}
		return []int{5, 3_000, 30_000, copyUpTo, 200_000}[i%5]
	}
	given := make(chan struct{})
	go func() {
		defer close(given)
		for i := range requests {
			n := int64(size(i))
			head := binary.BigEndian.AppendUint32(nil, uint32(4+2*n))
			(<-held).Reply(wire.Response{Parts: []wire.Part{
				{Bytes: binary.BigEndian.AppendUint32(head, uint32(i))},
				{Range: vfs.NewRange(file, int64(i), n, nil)},
				{Range: vfs.NewRange(file, int64(2*i), n, nil)},
			}})
		}
	}()
	select {
	case <-given:
	case <-time.After(patience):
		require.Fail(t, "an answer waited for a client that reads nothing")
	}
	for i := range requests {
		answer, n := c.receive(), size(i)
		require.EqualValues(t, i, binary.BigEndian.Uint32(answer))
		require.True(t, bytes.Equal(content[i:i+n], answer[4:4+n]), "first range of answer %d", i)
		require.True(t, bytes.Equal(content[2*i:2*i+n], answer[4+n:]), "second range of answer %d", i)
	}
}

func TestNothingIsAnsweredForNoReply(t *testing.T) {
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
		if string(r.Frame) == "silence" {
			r.NoReply()
			return
		}
		echo(r)
	}})
	c := dial(t, s)
	for i := range 20 {
		c.send([]byte("silence"))
		c.send(fmt.Appendf(nil, "answer %d", i))
		require.Equal(t, fmt.Sprintf("answer %d", i), string(c.receive()))
	}
}

func TestCloseOfARequestSendsEarlierAnswersFirst(t *testing.T) {
	var parked *wire.Request
	closed := make(chan struct{})
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
		if parked == nil {
			parked = r
			return
		}
		r.Close(errors.New("enough"))
		close(closed)
	}})
	c := dial(t, s)
	c.send([]byte("first"))
	c.send([]byte("second"))
	<-closed
	echo(parked)
	require.Equal(t, "first", string(c.receive()))
	c.requireClosed()
}

func TestASecondAnswerIsDroppedAndReleased(t *testing.T) {
	var released atomic.Int32
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
		echo(r)
		r.Reply(wire.Response{Parts: []wire.Part{{Bytes: []byte("twice")}}, OnSent: func() { released.Add(1) }})
		r.Close(errors.New("no effect"))
	}})
	c := dial(t, s)
	c.send([]byte("one"))
	c.send([]byte("two"))
	require.Equal(t, "one", string(c.receive()))
	require.Equal(t, "two", string(c.receive()))
	require.EqualValues(t, 2, released.Load())
}

func TestAnswersAreReleasedOnceWhetherSentOrNot(t *testing.T) {
	const requests = 100
	var released [requests]atomic.Int32
	held := make(chan *wire.Request, requests)
	gone := make(chan struct{})
	s := start(t, testConfig(), handler{
		handle:       func(r *wire.Request) { held <- r },
		disconnected: func(*wire.Conn) { close(gone) },
	})
	answer := func(r *wire.Request, i int) {
		a := framed(r.Frame)
		a.OnSent = func() { released[i].Add(1) }
		r.Reply(a)
	}
	c := dial(t, s)
	var waiting []*wire.Request
	for range requests {
		c.send([]byte("x"))
		waiting = append(waiting, <-held)
	}
	answer(waiting[0], 0)
	c.receive()
	for i := 2; i < 50; i++ { // behind the second, which is not answered
		answer(waiting[i], i)
	}
	require.NoError(t, c.Close())
	<-gone
	for i := 50; i < requests; i++ {
		answer(waiting[i], i)
	}
	answer(waiting[1], 1)
	for i := range released {
		eventually(t, fmt.Sprint("answer ", i), func() bool { return released[i].Load() == 1 })
	}
}

func TestAPanickingHandlerCostsItsConnectionOnly(t *testing.T) {
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
		if string(r.Frame) == "boom" {
			panic("a fault")
		}
		echo(r)
	}})
	good, bad := dial(t, s), dial(t, s)
	bad.send([]byte("boom"))
	bad.requireClosed()
	good.send([]byte("still here"))
	require.Equal(t, "still here", string(good.receive()))
}

func TestConnectedHandleDisconnectedComeInOrder(t *testing.T) {
	events := make(chan string, 10)
	s := start(t, testConfig(), handler{
		connected:    func(c *wire.Conn) { c.Attachment = "kept"; events <- "connected to " + c.Listener },
		handle:       func(r *wire.Request) { events <- "handle " + r.Conn.Attachment.(string); echo(r) },
		disconnected: func(c *wire.Conn) { events <- "disconnected " + c.SecurityProtocol },
	})
	c := dial(t, s)
	c.send([]byte("x"))
	c.receive()
	require.NoError(t, c.Close())
	require.Equal(t, "connected to TEST", <-events)
	require.Equal(t, "handle kept", <-events)
	require.Equal(t, "disconnected PLAINTEXT", <-events)
}

func TestClosingLetsRequestsInHandBeAnswered(t *testing.T) {
	held := make(chan *wire.Request, 1)
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) { held <- r }})
	idle, busy := dial(t, s), dial(t, s)
	busy.send([]byte("late"))
	r := <-held
	closed := make(chan error, 1)
	go func() { closed <- s.Close(context.Background()) }()
	idle.requireClosed()
	echo(r)
	require.Equal(t, "late", string(busy.receive()))
	busy.requireClosed()
	require.NoError(t, <-closed)
	require.Zero(t, s.Connections())
}

func TestClosingDoesNotWaitForEver(t *testing.T) {
	held := make(chan *wire.Request, 1)
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) { held <- r }})
	c := dial(t, s)
	c.send([]byte("never answered"))
	r := <-held
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Close(ctx), context.DeadlineExceeded)
	c.requireClosed()
	echo(r) // nobody is there; nothing happens
}
