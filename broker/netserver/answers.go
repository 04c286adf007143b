package netserver

import "barnabas/broker/wire"

// maxTogether limits the answers that one system call takes.
const maxTogether = 64

// Answered takes the outcome of a request, from any goroutine. The frame goes back to its pool at once, however
// long the answer has to wait for its turn.
func (x *exchange) Answered(r *wire.Request, answer wire.Response, failure error) {
	c := x.conn
	frame := x.freeFrame()

	c.mu.Lock()
	c.mu.requestBytes -= frame
	if c.mu.broken != nil {
		c.mu.Unlock()
		answer.Sent()
		return
	}
	x.answered, x.answer = true, answer
	if failure != nil {
		x.failure = &protocolError{failure}
		c.mu.failure = x.failure
	}
	x.size = bytesInMemory(answer)
	c.mu.unsent += x.size
	start := x != c.mu.current && c.headReadyLocked()
	if start {
		c.mu.writing = true
	} else {
		c.mu.change.Broadcast() // fewer bytes of requests: there may be room now
	}
	c.mu.Unlock()
	if start {
		c.writeLate()
	}
}

// Freed takes the frame back before the answer.
func (x *exchange) Freed(*wire.Request) {
	frame := x.freeFrame()
	if frame == 0 {
		return
	}
	c := x.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.requestBytes -= frame
	c.mu.change.Broadcast()
}

// freeFrame gives frame and memory back, unless that has been done, and tells how many bytes it was.
func (x *exchange) freeFrame() int64 {
	if x.freed.Swap(true) {
		return 0
	}
	wire.PutBuffer(x.Frame)
	x.Frame = nil
	x.conn.server.memory.release(&x.claim)
	return x.frameSize
}

func bytesInMemory(answer wire.Response) int64 {
	var n int64
	for i := range answer.Parts {
		n += int64(len(answer.Parts[i].Bytes))
	}
	return n
}

// flush writes what is ready, unless somebody is at it already.
func (c *conn) flush() {
	c.mu.Lock()
	ready := c.headReadyLocked()
	if ready {
		c.mu.writing = true
	}
	c.mu.Unlock()
	if ready {
		c.write()
	}
}

// writeLate writes answers that came late on the goroutine of whoever gave them, as far as the socket takes them at
// once. What it does not take, and what has become ready meanwhile, is left to a writer. Its caller has set writing.
func (c *conn) writeLate() {
	ready, end := c.popReady()
	if ready == nil {
		return
	}
	if whole, err := c.out.offer(ready); whole || err != nil {
		if !c.sent(ready, end, err) {
			return
		}
		if ready, end = c.popReady(); ready == nil {
			return
		}
	}
	go c.writeFrom(ready, end)
}

// write sends answers while the head of the queue is ready. Its caller has set writing.
func (c *conn) write() { c.writeFrom(c.popReady()) }

// writeFrom is write with the first answers taken out of the queue.
func (c *conn) writeFrom(ready *exchange, end error) {
	for ready != nil && c.sent(ready, end, c.out.send(ready)) {
		ready, end = c.popReady()
	}
}

// sent releases the answers of a list whose sending is over with err. It tells whether the connection goes on; if not,
// because of err or because a request of the list wants its end, nobody writes any more.
func (c *conn) sent(list *exchange, end, err error) bool {
	for x := list; x != nil; x = x.next {
		x.answer.Sent()
	}
	if err == nil && end == nil {
		return true
	}
	if err == nil {
		c.sayGoodbye()
		err = end
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.writing = false
	c.breakLocked(err)
	c.mu.change.Broadcast()
	return false
}

// popReady takes the answers at the head of the queue that are ready, as a list. A request that failed ends the
// list, and the connection: what came before it is still sent. When there is nothing to do it ends the writing,
// under the same lock that Answered takes, so no answer is left behind.
func (c *conn) popReady() (ready *exchange, end error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var last *exchange
	for n := 0; n < maxTogether && end == nil && c.mu.broken == nil; n++ {
		x := c.mu.head
		if x == nil || !x.answered {
			break
		}
		c.mu.head = x.next
		if c.mu.head == nil {
			c.mu.tail = nil
		}
		x.next = nil
		c.mu.unanswered--
		c.mu.unsent -= x.size
		if last == nil {
			ready = x
		} else {
			last.next = x
		}
		last = x
		end = x.failure
	}
	if ready == nil {
		c.mu.writing = false
	}
	c.mu.change.Broadcast()
	return ready, end
}
