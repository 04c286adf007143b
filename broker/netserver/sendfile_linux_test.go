package netserver

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/vfs"
	"barnabas/broker/wire"
)

func TestASmallLateAnswerIsOutWhenReplyReturns(t *testing.T) {
	parked, behind := make(chan *wire.Request, 1), make(chan struct{})
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
		if string(r.Frame) == "park" {
			parked <- r
			return
		}
		echo(r)
		behind <- struct{}{}
	}})
	c := dial(t, s)
	for range 20 {
		c.send([]byte("park"))
		c.send([]byte("behind")) // once it is handled, the connection's goroutine has left the parked one
		r := <-parked
		<-behind
		sent := false // not shared: another goroutine that set it would be a race
		answer := framed([]byte("late"))
		answer.OnSent = func() { sent = true }
		r.Reply(answer)
		require.True(t, sent)
		require.Equal(t, "late", string(c.receive()))
		require.Equal(t, "behind", string(c.receive()))
	}
}

// lender lends pieces of its content, and spoils each with the next.
type lender struct {
	content, lent []byte
	piece         int
	at            int64
}

func (l *lender) Name() string { return "lender" }

func (l *lender) Lend(off int64, most int) ([]byte, error) {
	if off != l.at {
		return nil, fmt.Errorf("asked for %d at %d", off, l.at)
	}
	for i := range l.lent {
		l.lent[i] = 'x'
	}
	l.lent = append(l.lent[:0], l.content[off:][:min(most, l.piece)]...)
	l.at += int64(len(l.lent))
	return l.lent, nil
}

func (l *lender) ReadAt(p []byte, off int64) (int, error) {
	lent, err := l.Lend(off, len(p))
	return copy(p, lent), err
}

func TestWhatIsLentIsSentBeforeMoreIsLent(t *testing.T) {
	_, content := testFile(t, 1<<20)
	body := append(bytes.Clone(content), "between and behind"...)
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
		head := framed(body)
		lent := func(from, to, piece int) vfs.FileRange {
			return vfs.NewRange(&lender{content: content[from:to], piece: piece}, 0, int64(to-from), nil)
		}
		r.Reply(wire.Response{Parts: []wire.Part{
			{Bytes: head.Parts[0].Bytes[:4], Range: lent(0, 400_000, 70_000)},
			{Range: lent(400_000, 400_100, 200)}, // small: by way of memory
			{Range: lent(400_100, 500_000, 1<<20)},
			{Range: lent(500_000, 1<<20, 100_000)},
			{Bytes: []byte("between and behind")},
		}})
	}})
	c := dial(t, s)
	for range 3 {
		c.send([]byte("give"))
		require.True(t, bytes.Equal(body, c.receive()))
	}
}
