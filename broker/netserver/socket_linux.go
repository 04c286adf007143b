package netserver

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// socketOptions gives what is to be set on a listening socket before it is bound. Accepted sockets inherit the size
// of the receive buffer, and only so does it count for the window that is agreed on at connecting.
func socketOptions(receiveBuffer int) func(network, address string, raw syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		if receiveBuffer <= 0 {
			return nil
		}
		var failure error
		err := raw.Control(func(fd uintptr) {
			failure = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
		})
		return errors.Join(err, os.NewSyscallError("setsockopt", failure))
	}
}

// setBacklog changes how many connections may wait to be accepted; Go has asked for as many as the system allows.
func setBacklog(socket net.Listener, backlog int) error {
	tcp, ok := socket.(*net.TCPListener)
	if !ok || backlog <= 0 {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failure error
	err = raw.Control(func(fd uintptr) { failure = unix.Listen(int(fd), backlog) })
	return errors.Join(err, os.NewSyscallError("listen", failure))
}
