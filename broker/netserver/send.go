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
}

// copyUpTo is the size up to which a piece of a file is read into memory and sent together with the bytes around
// it: below it, one more system call costs more than the copy.
const copyUpTo = 64 << 10

// maxScratch bounds the memory in which one send gathers small pieces of files.
const maxScratch = 64 << 10

// copySender sends over any connection by way of memory.
type copySender struct {
	socket net.Conn
	touch  func()
}

func (s *copySender) send(list *exchange) error {
	for x := list; x != nil; x = x.next {
		for i := range x.answer.Parts {
			part := &x.answer.Parts[i]
			if len(part.Bytes) > 0 {
				if err := s.write(part.Bytes); err != nil {
					return err
				}
			}
			if err := s.copyRange(part.Range); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *copySender) write(p []byte) error {
	_, err := s.socket.Write(p)
	s.touch()
	return err
}

func (s *copySender) copyRange(r vfs.FileRange) error {
	if r.Length <= 0 {
		return nil
	}
	scratch := wire.GetBuffer(int(min(r.Length, maxScratch)))
	defer wire.PutBuffer(scratch)
	for r.Length > 0 {
		piece := scratch[:min(r.Length, int64(cap(scratch)))]
		if err := r.ReadInto(piece); err != nil {
			return fmt.Errorf("cannot read records to send: %w", err)
		}
		if err := s.write(piece); err != nil {
			return err
		}
		r.Offset += int64(len(piece))
		r.Length -= int64(len(piece))
	}
	return nil
}
