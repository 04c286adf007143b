//go:build !linux

package lane

import (
	"os/exec"
	"testing"
)

// Bind does nothing where the system has no means for it.
func Bind(*exec.Cmd) {}

// SmallDisk mounts nothing here.
func SmallDisk(testing.TB, int) string { return "" }
