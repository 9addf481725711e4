//go:build unix

package wire

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// hasEnded reports whether the other end of a connection over HTTP/1 has ended it, and all that came before was read.
func hasEnded(conn net.Conn) (ended bool) {
	if secure, ok := conn.(*tls.Conn); ok {
		if secure.ConnectionState().NegotiatedProtocol == "h2" {
			return false // which others use as well
		}
		conn = secure.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) { //nolint:errcheck // then ended stays false
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		ended = n == 0 && err == nil || errors.Is(err, unix.ECONNRESET)
	})
	return ended
}
