//go:build !linux

package netserver

import (
	"net"
	"syscall"
)

func socketOptions(int) func(network, address string, raw syscall.RawConn) error { return nil }

func setBacklog(net.Listener, int) error { return nil }

func descriptorLimit() int { return 0 }
