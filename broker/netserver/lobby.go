package netserver

import (
	"net"
	"sync"
	"time"
)

// lobby holds sockets that were turned away until they are closed: a client that is refused at once comes again at
// once. They take descriptors, so no more than so many are held; what comes on top is closed at once.
type lobby struct {
	room int

	mu struct {
		sync.Mutex
		waiting map[net.Conn]*time.Timer // nil: no more are held
	}
}

const largestLobby = 1000

// newLobby makes one that leaves most descriptors to others; 0: their limit is not known.
func newLobby(descriptors int) *lobby {
	l := &lobby{room: largestLobby}
	if descriptors > 0 {
		l.room = min(l.room, descriptors/16)
	}
	l.mu.waiting = make(map[net.Conn]*time.Timer)
	return l
}

// hold closes a socket after a while.
func (l *lobby) hold(socket net.Conn, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.waiting == nil || len(l.mu.waiting) >= l.room {
		_ = socket.Close()
		return
	}
	l.mu.waiting[socket] = time.AfterFunc(after, func() {
		l.mu.Lock()
		delete(l.mu.waiting, socket)
		l.mu.Unlock()
		_ = socket.Close()
	})
}

// close closes what waits and holds nothing any more.
func (l *lobby) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for socket, timer := range l.mu.waiting {
		timer.Stop()
		_ = socket.Close()
	}
	l.mu.waiting = nil
}
