package peer

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/wire"
)

// Line is a connection to another broker for one who waits for each answer before asking again, as a follower's fetcher
// does. It writes and reads on its caller's goroutine and has none of its own: a request by way of a Peer wakes three
// others, which for a small fetch costs more than the fetch. It connects when first needed, and anew when lost.
//
// Close may be called at any time; the other methods by one goroutine at a time.
type Line struct {
	cfg         Config
	format      *kmsg.RequestFormatter
	in          *bufio.Reader // of the socket
	correlation int32
	pauses      pauses
	ctx         context.Context // ends with Close
	stop        context.CancelFunc

	mu struct {
		sync.Mutex
		socket secured // without a connection: not connected
	}
}

// NewLine makes a line; nothing is connected yet. MaxInFlight does not matter to it.
func NewLine(cfg Config) *Line {
	cfg = cfg.complete()
	l := &Line{
		cfg:    cfg,
		format: kmsg.NewRequestFormatter(kmsg.FormatterClientID(cfg.ClientID)),
		in:     bufio.NewReaderSize(nil, 4096),
		pauses: pauses{least: cfg.BackoffMin, most: cfg.BackoffMax},
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// Do sends a request at the version that its caller has set and waits for the answer, for ctx, or for the time-out. A
// request that was sent and lost is not sent again: its caller knows whether it may be repeated. Errors wrap ErrNotSent
// when no byte of it went out, and ErrClosed after Close.
func (l *Line) Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	return l.ask(ctx, req, func(size int32) []byte { return make([]byte, size) })
}

// Fetch is Do for a fetch whose answer may be big: the records in the response alias a pooled buffer, which is
// reused after release is called. When err is nil, release is not, and has to be called once.
func (l *Line) Fetch(ctx context.Context, req *kmsg.FetchRequest) (resp *kmsg.FetchResponse, release func(), err error) {
	var body []byte
	answer, err := l.ask(ctx, req, func(size int32) []byte {
		body = wire.GetBuffer(int(size))[:size]
		return body
	})
	if err != nil {
		return nil, nil, err
	}
	return answer.(*kmsg.FetchResponse), func() { wire.PutBuffer(body) }, nil
}

// ask does one round. The body of the answer is read into what buffer gives.
func (l *Line) ask(ctx context.Context, req kmsg.Request, buffer func(size int32) []byte) (kmsg.Response, error) {
	deadline := time.Now().Add(l.cfg.Timeout)
	socket, fresh, err := l.connected(ctx, deadline)
	if err != nil {
		return nil, l.cfg.unsent(req, l.cause(ctx, err))
	}
	// Whoever does not want to wait any more breaks the connection: an answer that comes later would be taken for
	// that to the next request.
	giveUp := context.AfterFunc(ctx, l.drop)
	defer giveUp()
	_ = socket.SetDeadline(deadline) // fails on a closed socket only, and then so does the write
	resp, err := l.round(socket, req, buffer)
	if err != nil {
		l.drop()
		if fresh {
			l.pauses.failed(time.Now())
		}
		return nil, l.cfg.failure(req, l.cause(ctx, l.cfg.whyNoAnswer(err)))
	}
	if fresh {
		l.pauses.worked()
	}
	return resp, nil
}

func (l *Line) round(socket net.Conn, req kmsg.Request, buffer func(size int32) []byte) (kmsg.Response, error) {
	l.correlation++
	frame := l.format.AppendRequest(wire.GetBuffer(0), req, l.correlation)
	_, err := socket.Write(frame)
	wire.PutBuffer(frame)
	if err != nil {
		return nil, err
	}
	size, correlation, err := l.cfg.readHead(l.in)
	if err != nil {
		return nil, err
	}
	if correlation != l.correlation {
		return nil, unasked(correlation)
	}
	return readBody(l.in, req, buffer(size))
}

// cause is err, unless it came of the end of the line or of ctx.
func (l *Line) cause(ctx context.Context, err error) error {
	switch {
	case l.ctx.Err() != nil:
		return ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// connected gives the socket, making one if there is none: a fresh one, on which no answer has come.
func (l *Line) connected(ctx context.Context, deadline time.Time) (socket net.Conn, fresh bool, err error) {
	if socket = l.current(); socket != nil {
		return socket, false, nil
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	stop := context.AfterFunc(l.ctx, cancel)
	defer stop()
	if err := sleepUntil(ctx, l.pauses.until); err != nil {
		return nil, false, err
	}
	ready, err := l.cfg.connect(ctx)
	if err != nil {
		l.pauses.failed(time.Now())
		return nil, false, err
	}
	l.in.Reset(ready)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		_ = ready.Close()
		return nil, false, ErrClosed
	}
	l.mu.socket = ready
	return ready.Conn, true, nil
}

// current gives the socket, if there is one whose session is not over.
func (l *Line) current() net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.socket.Conn != nil && l.mu.socket.over(time.Now()) {
		l.dropLocked()
	}
	return l.mu.socket.Conn
}

// drop ends the connection, from any goroutine.
func (l *Line) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropLocked()
}

func (l *Line) dropLocked() {
	if l.mu.socket.Conn != nil {
		_ = l.mu.socket.Close()
		l.mu.socket = secured{}
	}
}

// Close ends the connection and fails what is asked now and later. It may be called again.
func (l *Line) Close() error {
	l.stop()
	l.drop()
	return nil
}
