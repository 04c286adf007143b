//go:build !linux

package lane

import "testing"

// Disk is a file system of the test's own that can fail as real ones do.
type Disk struct{ Dir string }

// NewDisk skips the test: there is none here.
func NewDisk(t testing.TB, _ int64) *Disk {
	t.Skip("not run: needs Linux")
	return nil
}

func (*Disk) Sync()         {}
func (*Disk) CutPower()     {}
func (*Disk) TurnReadOnly() {}
func (*Disk) Restore()      {}
