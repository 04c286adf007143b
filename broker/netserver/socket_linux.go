package netserver

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// leastTuned is the smallest receive buffer for which the kernel's own tuning will do.
const leastTuned = 64 << 10

// socketOptions gives what is to be set on a listening socket before it is bound. Accepted sockets inherit the size
// of the receive buffer, and only so does it count for the window that is agreed on at connecting.
//
// Setting a size ends the kernel's tuning of it. Where the kernel would grow the buffer to that size anyway when it
// is needed, it is left to do so: a fixed buffer of Kafka's 100 KiB costs a producer of big batches half as much
// processor time again. What is set is what the kernel would not do by itself: a small buffer, or a very big one.
func socketOptions(receiveBuffer int) func(network, address string, raw syscall.RawConn) error {
	tuned := receiveBuffer >= leastTuned && receiveBuffer <= largestTuned()
	return func(_, _ string, raw syscall.RawConn) error {
		if receiveBuffer <= 0 || tuned {
			return nil
		}
		var failure error
		err := raw.Control(func(fd uintptr) {
			failure = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
		})
		return errors.Join(err, os.NewSyscallError("setsockopt", failure))
	}
}

// largestTuned is the size up to which the kernel grows a receive buffer, 0 when it does not say.
func largestTuned() int {
	text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_rmem")
	if err != nil {
		return 0
	}
	sizes := strings.Fields(string(text)) // least, first, largest
	if len(sizes) != 3 {
		return 0
	}
	largest, err := strconv.Atoi(sizes[2])
	if err != nil {
		return 0
	}
	return largest
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

// descriptorLimit is how many descriptors this process may have open, 0 when the system does not say.
func descriptorLimit() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<30))
}
