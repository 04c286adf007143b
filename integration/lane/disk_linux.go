package lane

import (
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// SmallDisk mounts a disk of so many bytes for the test and returns where, or "" where that is not allowed.
func SmallDisk(t testing.TB, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size="+strconv.Itoa(bytes)); err != nil {
		t.Logf("no small disk: %v", err)
		return ""
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}
