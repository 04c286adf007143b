//go:build unix

package vfs

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The errors that CrashFS shares with the operating system, so that a caller's errors.Is works over both.
const (
	errIsDir    = syscall.EISDIR
	errNotDir   = syscall.ENOTDIR
	errNotEmpty = syscall.ENOTEMPTY
	errBadFile  = syscall.EBADF
	errInvalid  = syscall.EINVAL
)

func diskSpace(dir string) (total, usable int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	size := int64(st.Bsize)
	return int64(st.Blocks) * size, int64(st.Bavail) * size, nil
}

// identity is the device and the number of a file. Both stay taken as long as it is open, even if it has no name any more.
func identity(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
