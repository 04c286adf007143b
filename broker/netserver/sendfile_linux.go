package netserver

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"barnabas/broker/vfs"
	"barnabas/broker/wire"
)

// sendfileChunk bounds one sendfile call: it does not give the processor back before it is done.
const sendfileChunk = 4 << 20

// page is the unit in which the kernel moves a file to a socket. A piece that begins inside of one takes a page more in
// each of the kernel's steps, so the bytes up to the next page go by way of memory.
const page = 4096

// maxPieces is what the kernel takes in one sendmsg (UIO_MAXIOV).
const maxPieces = 1024

func newSender(socket net.Conn, touch func()) sender {
	if tcp, ok := socket.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			return newSocketSender(raw, touch)
		}
	}
	return &copySender{socket: socket, touch: touch}
}

// socketSender sends to a TCP socket: bytes by sendmsg, as many pieces at once as there are, and pieces of files by
// sendfile.
//
// Sendfile gets its offset as an argument, every time. A file is shared by all who fetch from it, and one that is
// sent from its current position, as io.Copy does it, sends others' bytes.
//
// Bytes in front of a file's go out with MSG_MORE, so that they share a packet with it in spite of TCP_NODELAY.
type socketSender struct {
	raw   syscall.RawConn
	touch func()

	// The call to be made, and its outcome. The methods made into func values once: a closure for each write would
	// be garbage.
	pieces         [][]byte
	flags          int
	file           *os.File
	offset, length int64
	failure        error
	sendmsgStep    func(fd uintptr) bool
	offerStep      func(fd uintptr) bool
	sendfileStep   func(fd uintptr) bool

	gathered [][]byte
	scratch  []byte // pooled; holds the small pieces of files in gathered
}

func newSocketSender(raw syscall.RawConn, touch func()) *socketSender {
	s := &socketSender{raw: raw, touch: touch}
	s.sendmsgStep, s.sendfileStep = s.sendmsg, s.sendfile
	s.offerStep = func(fd uintptr) bool { s.sendmsg(fd); return true }
	return s
}

func (s *socketSender) send(list *exchange) error {
	if len(s.pieces) > 0 { // of an offer
		defer s.clear()
		return s.run(s.sendmsgStep)
	}
	err := s.gather(list)
	if err == nil {
		err = s.push(0)
	}
	s.clear()
	return err
}

// offer takes what send would send with one call, by way of memory.
func (s *socketSender) offer(list *exchange) (whole bool, err error) {
	bytes, ofFiles := sizes(list)
	if bytes+ofFiles > copyUpTo {
		return false, nil
	}
	if ofFiles > 0 {
		s.scratch = wire.GetBuffer(int(ofFiles)) // with room for all of them gathering sends nothing
	}
	err = s.gather(list)
	if err == nil {
		s.pieces, s.flags = s.gathered, 0
		err = s.run(s.offerStep)
	}
	if err == nil && len(s.pieces) > 0 {
		return false, nil
	}
	s.clear()
	return true, err
}

// sizes sums up what answers hold in memory and in files.
func sizes(list *exchange) (bytes, ofFiles int64) {
	for x := list; x != nil; x = x.next {
		bytes += x.size
		for i := range x.answer.Parts {
			ofFiles += max(0, x.answer.Parts[i].Range.Length)
		}
	}
	return bytes, ofFiles
}

// clear forgets what was sent, or failed.
func (s *socketSender) clear() {
	s.pieces = nil
	clear(s.gathered)
	s.gathered = s.gathered[:0]
	if cap(s.gathered) > maxTogether {
		s.gathered = nil // a big one is not kept by an idle connection
	}
	wire.PutBuffer(s.scratch)
	s.scratch = nil
}

// gather collects the pieces of the answers, and sends what has to go before a big piece of a file, and it.
func (s *socketSender) gather(list *exchange) error {
	for x := list; x != nil; x = x.next {
		for i := range x.answer.Parts {
			part := &x.answer.Parts[i]
			if len(part.Bytes) > 0 {
				s.gathered = append(s.gathered, part.Bytes)
			}
			if err := s.addRange(part.Range); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *socketSender) addRange(r vfs.FileRange) error {
	if r.Length <= 0 {
		return nil
	}
	file := r.OSFile()
	lender, _ := r.File.(vfs.Lender)
	switch {
	case r.Length <= copyUpTo:
		return s.addCopy(r)
	case lender != nil:
		return s.addLent(lender, r)
	case file == nil:
		return s.addCopy(r)
	}
	if into := r.Offset % page; into > 0 {
		first := r
		first.Length = page - into
		if err := s.addCopy(first); err != nil {
			return err
		}
		r.Offset += first.Length
		r.Length -= first.Length
	}
	if err := s.push(unix.MSG_MORE); err != nil {
		return err
	}
	s.scratch = s.scratch[:0] // what it held is sent
	s.file, s.offset, s.length = file, r.Offset, r.Length
	err := s.run(s.sendfileStep)
	s.file = nil
	return err
}

// addCopy gathers a piece of a file by way of memory.
func (s *socketSender) addCopy(r vfs.FileRange) error {
	for r.Length > 0 {
		if s.scratch == nil {
			s.scratch = wire.GetBuffer(int(min(max(r.Length, page), maxScratch)))
		}
		free := s.scratch[len(s.scratch):cap(s.scratch)]
		if len(free) == 0 {
			if err := s.push(unix.MSG_MORE); err != nil {
				return err
			}
			wire.PutBuffer(s.scratch)
			s.scratch = nil
			continue
		}
		piece := free[:min(r.Length, int64(len(free)))]
		if err := r.ReadInto(piece); err != nil {
			return fmt.Errorf("cannot read records to send: %w", err)
		}
		s.scratch = s.scratch[:len(s.scratch)+len(piece)]
		s.gathered = append(s.gathered, piece)
		r.Offset += int64(len(piece))
		r.Length -= int64(len(piece))
	}
	return nil
}

// addLent gathers what a lender makes, and sends it before the next of it is made.
func (s *socketSender) addLent(from vfs.Lender, r vfs.FileRange) error {
	for r.Length > 0 {
		p, err := from.Lend(r.Offset, int(r.Length))
		if err != nil {
			return fmt.Errorf("cannot read records to send: %w", err)
		}
		s.gathered = append(s.gathered, p)
		r.Offset += int64(len(p))
		if r.Length -= int64(len(p)); r.Length == 0 {
			return nil // the last of it goes with what follows
		}
		if err := s.push(unix.MSG_MORE); err != nil {
			return err
		}
	}
	return nil
}

// push sends what is gathered.
func (s *socketSender) push(flags int) error {
	s.pieces, s.flags = s.gathered, flags
	var err error
	if len(s.pieces) > 0 {
		err = s.run(s.sendmsgStep)
	}
	s.pieces = nil
	clear(s.gathered)
	s.gathered = s.gathered[:0]
	return err
}

// run repeats a step, waiting for room in the socket in between, until it says that it is done.
func (s *socketSender) run(step func(fd uintptr) bool) error {
	s.failure = nil
	if err := s.raw.Write(step); err != nil {
		return err
	}
	return s.failure
}

// sendmsg writes pieces until all are gone; false: the socket is full.
func (s *socketSender) sendmsg(fd uintptr) bool {
	for len(s.pieces) > 0 {
		n, err := s.sendPieces(int(fd))
		switch err {
		case nil:
			s.touch()
			s.consume(n)
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			s.failure = os.NewSyscallError("sendmsg", err)
			return true
		}
	}
	return true
}

// sendPieces makes one system call. The plain one needs no array of pieces to be built.
func (s *socketSender) sendPieces(fd int) (int, error) {
	if len(s.pieces) == 1 && s.flags == 0 {
		return unix.Write(fd, s.pieces[0])
	}
	return unix.SendmsgBuffers(fd, s.pieces[:min(len(s.pieces), maxPieces)], nil, nil, s.flags|unix.MSG_NOSIGNAL)
}

func (s *socketSender) consume(n int) {
	for n > 0 && n >= len(s.pieces[0]) {
		n -= len(s.pieces[0])
		s.pieces = s.pieces[1:]
	}
	if n > 0 {
		s.pieces[0] = s.pieces[0][n:]
	}
}

// sendfile sends the range until all is gone; false: the socket is full.
func (s *socketSender) sendfile(fd uintptr) bool {
	for s.length > 0 {
		n, err := unix.Sendfile(int(fd), int(s.file.Fd()), &s.offset, int(min(s.length, sendfileChunk)))
		switch {
		case n > 0: // the kernel has moved s.offset
			s.touch()
			s.length -= int64(n)
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return false
		case err != nil:
			s.failure = os.NewSyscallError("sendfile", err)
			return true
		default:
			s.failure = fmt.Errorf("cannot read records to send: %s ends before %d: %w", s.file.Name(), s.offset, io.ErrUnexpectedEOF)
			return true
		}
	}
	return true
}
