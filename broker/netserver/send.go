package netserver

import (
	"fmt"
	"net"

	"barnabas/broker/vfs"
	"barnabas/broker/wire"
)

// sender puts answers on a socket, whole and in order. It is used by one goroutine at a time.
type sender interface {
	// send writes the answers of a list. After an error the connection is good for nothing more.
	send(list *exchange) error
	// offer is send for one who must not wait: it gives small answers to a socket that has room for them. When it has
	// not taken the whole list, send is called with the same list next, and goes on where this ended.
	offer(list *exchange) (whole bool, err error)
}

// copyUpTo is the size up to which a piece of a file is read into memory and sent together with the bytes around
// it: below it, one more system call costs more than the copy.
const copyUpTo = 64 << 10

// maxScratch bounds the memory in which one send gathers small pieces of files.
const maxScratch = 64 << 10

// copySender sends over any connection by way of memory, small pieces together: over TLS each write is a record and a system call.
type copySender struct {
	socket   net.Conn
	touch    func()
	gathered []byte // pooled; of one send
}

func (s *copySender) send(list *exchange) error {
	s.gathered = wire.GetBuffer(maxScratch)
	err := s.gather(list)
	if err == nil {
		err = s.push()
	}
	wire.PutBuffer(s.gathered)
	s.gathered = nil
	return err
}

func (s *copySender) gather(list *exchange) error {
	for x := list; x != nil; x = x.next {
		for i := range x.answer.Parts {
			part := &x.answer.Parts[i]
			if err := s.add(part.Bytes); err != nil {
				return err
			}
			if err := s.addRange(part.Range); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *copySender) add(p []byte) error {
	if len(p) > cap(s.gathered)-len(s.gathered) {
		if err := s.push(); err != nil {
			return err
		}
		if len(p) >= cap(s.gathered) {
			return s.write(p)
		}
	}
	s.gathered = append(s.gathered, p...)
	return nil
}

func (s *copySender) addRange(r vfs.FileRange) error {
	for r.Length > 0 {
		free := s.gathered[len(s.gathered):cap(s.gathered)]
		if len(free) == 0 {
			if err := s.push(); err != nil {
				return err
			}
			continue
		}
		piece := free[:min(r.Length, int64(len(free)))]
		if err := r.ReadInto(piece); err != nil {
			return fmt.Errorf("cannot read records to send: %w", err)
		}
		s.gathered = s.gathered[:len(s.gathered)+len(piece)]
		r.Offset += int64(len(piece))
		r.Length -= int64(len(piece))
	}
	return nil
}

func (s *copySender) push() error {
	if len(s.gathered) == 0 {
		return nil
	}
	err := s.write(s.gathered)
	s.gathered = s.gathered[:0]
	return err
}

// offer takes nothing: whether a write would wait cannot be told.
func (s *copySender) offer(*exchange) (bool, error) { return false, nil }

func (s *copySender) write(p []byte) error {
	_, err := s.socket.Write(p)
	s.touch()
	return err
}
