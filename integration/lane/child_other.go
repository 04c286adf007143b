//go:build !linux

package lane

import "os/exec"

// Bind does nothing where the system has no means for it.
func Bind(*exec.Cmd) {}
