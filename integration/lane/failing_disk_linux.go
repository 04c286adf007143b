package lane

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Disk is a file system of the test's own that can fail as real ones do. When its power is cut, what was not synced is gone.
type Disk struct {
	Dir   string // where it is mounted
	image string
	t     testing.TB
}

// NewDisk makes an ext4 of so many bytes. Without root and a loop device there is none, and the test is skipped.
func NewDisk(t testing.TB, bytes int64) *Disk {
	t.Helper()
	mkfs := Program(t, "mkfs.ext4")
	home := t.TempDir()
	d := &Disk{Dir: filepath.Join(home, "disk"), image: filepath.Join(home, "image"), t: t}
	for _, err := range []error{os.Mkdir(d.Dir, 0o755), os.WriteFile(d.image, nil, 0o600), os.Truncate(d.image, bytes)} {
		d.must(err)
	}
	d.run(mkfs, "-q", "-F", d.image)
	// Left to itself, the file system would sync now and then.
	if out, err := d.mount().CombinedOutput(); err != nil {
		t.Skipf("not run: needs a machine that mounts a file system of its own: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = unix.Unmount(d.Dir, unix.MNT_DETACH) })
	return d
}

// Sync puts all that was written on the disk.
func (d *Disk) Sync() {
	d.t.Helper()
	dir, err := os.Open(d.Dir)
	d.must(err)
	defer dir.Close()
	d.must(unix.Syncfs(int(dir.Fd())))
}

// CutPower ends the file system in its tracks: nothing that was not synced reaches the disk any more, not even its journal.
func (d *Disk) CutPower() {
	d.t.Helper()
	const shutdown, dropTheLog = 0x8004587d, uint32(2) // FS_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH
	dir, err := os.Open(d.Dir)
	d.must(err)
	defer dir.Close()
	how := dropTheLog
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), shutdown, uintptr(unsafe.Pointer(&how))); errno != 0 {
		d.t.Fatalf("cutting the power of %s: %v", d.Dir, errno)
	}
}

// TurnReadOnly lets the file system find an error, after which nothing can be written to it.
func (d *Disk) TurnReadOnly() {
	d.t.Helper()
	table, err := os.ReadFile("/proc/self/mounts")
	d.must(err)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); f[1] == d.Dir {
			d.must(os.WriteFile(filepath.Join("/sys/fs/ext4", filepath.Base(f[0]), "trigger_fs_error"), []byte("1"), 0))
			return
		}
	}
	d.t.Fatalf("%s is not mounted", d.Dir)
}

// Restore mounts what is on the disk, once no process has files of it open.
func (d *Disk) Restore() {
	d.t.Helper()
	d.must(unix.Unmount(d.Dir, 0))
	if out, err := d.mount().CombinedOutput(); err != nil {
		d.t.Fatalf("mounting %s again: %v: %s", d.Dir, err, out)
	}
}

func (d *Disk) mount() *exec.Cmd {
	return exec.Command("mount", "-o", "loop,errors=remount-ro,commit="+strconv.Itoa(int(patience.Seconds())), d.image, d.Dir)
}

func (d *Disk) run(name string, args ...string) {
	d.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		d.t.Fatalf("%s: %v: %s", name, err, out)
	}
}

func (d *Disk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}
