package peer

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// sender sends the calls of the queue one after the other until the peer is closed, and then fails what is left.
func (p *Peer) sender() {
	for {
		select {
		case c := <-p.queue:
			if err := p.dispatch(c); err != nil {
				c.done(nil, p.unsent(c, err))
			}
		case <-p.ctx.Done():
			p.failQueued()
			return
		}
	}
}

func (p *Peer) failQueued() {
	for {
		select {
		case c := <-p.queue:
			c.done(nil, p.unsent(c, ErrClosed))
		default:
			return
		}
	}
}

// dispatch brings one call onto the connection. When it fails, the call has not been sent, and is the caller's to
// end.
func (p *Peer) dispatch(c *call) error {
	ctx, cancel := context.WithDeadline(c.ctx, c.deadline)
	defer cancel()
	stop := context.AfterFunc(p.ctx, cancel)
	defer stop()
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return p.cause(ctx)
	}
	for {
		l, err := p.connected(ctx)
		if err == nil && l.socket.over(time.Now()) {
			if err = p.retire(ctx, l); err == nil {
				continue
			}
		}
		if err != nil {
			<-p.slots
			return err
		}
		if l.send(c) {
			return nil
		}
		// The link died before it took the call. Another attempt makes a new one.
	}
}

// retire ends a link whose session is about to end, when everything that was sent on it is answered. Its caller has one slot.
func (p *Peer) retire(ctx context.Context, l *link) error {
	taken := 0
	defer func() {
		for range taken {
			<-p.slots
		}
	}()
	for taken < p.cfg.MaxInFlight-1 {
		select {
		case p.slots <- struct{}{}:
			taken++
		case <-ctx.Done():
			return p.cause(ctx)
		}
	}
	l.kill(errSessionOver)
	return nil
}

var errSessionOver = errors.New("the SASL session is about to end")

// cause tells why ctx, a call's with its deadline, is over.
func (p *Peer) cause(ctx context.Context) error {
	switch {
	case p.ctx.Err() != nil:
		return ErrClosed
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return kerr.RequestTimedOut
	default:
		return ctx.Err()
	}
}

// connected gives the link, making one if there is none. Only the sender calls it.
func (p *Peer) connected(ctx context.Context) (*link, error) {
	p.mu.Lock()
	l := p.mu.link
	p.mu.Unlock()
	if l != nil {
		return l, nil
	}
	if err := p.backOff(ctx); err != nil {
		return nil, err
	}
	socket, err := p.cfg.connect(ctx)
	if err != nil {
		p.failed()
		if ctx.Err() != nil {
			return nil, p.cause(ctx)
		}
		return nil, err
	}
	l = newLink(p, socket)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		_ = socket.Close()
		return nil, ErrClosed
	}
	p.mu.link = l
	p.mu.versions = nil
	p.tasks.Go(l.reader)
	return l, nil
}

func (p *Peer) failed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.pauses.failed(time.Now())
}

func (p *Peer) worked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.pauses.worked()
}

// backOff waits until the next attempt may be made.
func (p *Peer) backOff(ctx context.Context) error {
	p.mu.Lock()
	until := p.mu.pauses.until
	p.mu.Unlock()
	if err := sleepUntil(ctx, until); err != nil {
		return p.cause(ctx)
	}
	return nil
}

// lost forgets a link that has died.
func (p *Peer) lost(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.link == l {
		p.mu.link, p.mu.versions = nil, nil
	}
}
