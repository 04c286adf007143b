package vfs

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxVector is what Linux takes in one pwritev (IOV_MAX).
const maxVector = 1024

// writeVector writes the pieces at off, in one system call where it can.
func writeVector(f *os.File, p [][]byte, off int64) (int64, error) {
	if len(p) == 1 {
		n, err := f.WriteAt(p[0], off)
		return int64(n), err
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	start := off
	pieces := append([][]byte(nil), p...) // consumed as they are written; the caller's slice stays as it is
	for {
		for len(pieces) > 0 && len(pieces[0]) == 0 {
			pieces = pieces[1:]
		}
		if len(pieces) == 0 {
			return off - start, nil
		}
		n, err := pwritev(conn, pieces[:min(len(pieces), maxVector)], off)
		if err != nil {
			return off - start, &os.PathError{Op: "write", Path: f.Name(), Err: err}
		}
		off += int64(n)
		for n > 0 {
			k := min(n, len(pieces[0]))
			if pieces[0] = pieces[0][k:]; len(pieces[0]) == 0 {
				pieces = pieces[1:]
			}
			n -= k
		}
	}
}

func pwritev(conn syscall.RawConn, pieces [][]byte, off int64) (n int, err error) {
	ctl := conn.Control(func(fd uintptr) {
		for {
			n, err = unix.Pwritev(int(fd), pieces, off)
			if err != unix.EINTR {
				return
			}
		}
	})
	if ctl != nil {
		return 0, ctl
	}
	if err == nil && n == 0 {
		err = io.ErrShortWrite
	}
	return max(n, 0), err
}

// lockFile takes an open-file-description lock. The Java runtime takes a POSIX record lock (fcntl), which flock(2) does
// not see; an open-file-description lock excludes those of other processes as well as a second holder in this one, and
// does not vanish when somebody else in this process closes the same file.
func lockFile(f *os.File) error {
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk)
	if err == unix.EAGAIN || err == unix.EACCES {
		return ErrLocked
	}
	return err
}

// held asks who has a lock without taking it.
func held(f *os.File) (bool, error) {
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lk)
	return lk.Type != unix.F_UNLCK, err
}

// reserve allocates blocks behind the end of the file. A file system that cannot, or has no room, does without.
func reserve(f *os.File, size int64) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { _ = unix.Fallocate(int(fd), unix.FALLOC_FL_KEEP_SIZE, 0, size) })
}
