//go:build !linux

package netserver

import "net"

func newSender(socket net.Conn, touch func()) sender {
	return &copySender{socket: socket, touch: touch}
}
