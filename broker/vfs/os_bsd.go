//go:build unix && !linux

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeVector writes the pieces one after the other: there is no pwritev to rely on.
func writeVector(f *os.File, p [][]byte, off int64) (int64, error) {
	start := off
	for _, b := range p {
		n, err := f.WriteAt(b, off)
		off += int64(n)
		if err != nil {
			return off - start, err
		}
	}
	return off - start, nil
}

func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return ErrLocked
	}
	return err
}

// held takes the lock for a moment: there is no asking without.
func held(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return true, nil
	}
	return false, err
}

// reserve does nothing: there is no call that leaves the file's size as it is.
func reserve(*os.File, int64) {}
