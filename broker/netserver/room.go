package netserver

import (
	"errors"
	"slices"
	"time"
)

var errMadeRoom = errors.New("closed to make room: it was idle for the longest time")

// Limit puts other limits in force. Over a lower limit of all, the connections that are idle for the longest time are
// closed; those of protected listeners stay, and so do those over the limit of one listener or address, as with Kafka.
func (s *Server) Limit(l Limits) {
	s.guests.limit(l)
	s.makeRoom()
}

// makeRoom closes connections of listeners that are not protected while there are more than may be.
func (s *Server) makeRoom() {
	most, crowded := s.guests.crowded()
	if !crowded {
		return
	}
	var movable []resident
	alive := 0
	for _, c := range s.snapshot() {
		if c.ended() {
			continue // it leaves without being told
		}
		alive++
		if !s.guests.protected(c.via.Name) {
			movable = append(movable, resident{c, c.wire.LastUse()})
		}
	}
	for _, r := range longestIdle(movable, alive-most) {
		r.conn.kill(errMadeRoom)
	}
}

// resident is a connection and when something last moved on it, read once since it moves on.
type resident struct {
	conn    *conn
	lastUse time.Time
}

// longestIdle are the n of them on which nothing has moved for the longest time, or all when they are fewer.
func longestIdle(all []resident, n int) []resident {
	slices.SortFunc(all, func(a, b resident) int { return a.lastUse.Compare(b.lastUse) })
	return all[:min(max(n, 0), len(all))]
}

// ended tells whether the connection is over, though it may still be there.
func (c *conn) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.broken != nil
}
