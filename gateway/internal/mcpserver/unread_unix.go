//go:build unix

package mcpserver

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// isUnread reports whether it is known that nobody reads what is written: the other end of a pipe is closed.
func isUnread(out io.Writer) bool {
	file, is := out.(*os.File)
	if !is {
		return false
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return true
	}
	closed := false
	err = conn.Control(func(fd uintptr) {
		ends := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(ends, 0)
		closed = err == nil && n > 0 && ends[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return closed || err != nil
}
