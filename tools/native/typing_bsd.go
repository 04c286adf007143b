//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package native

import "golang.org/x/sys/unix"

const (
	readTerminal  = unix.TIOCGETA
	writeTerminal = unix.TIOCSETA
)
