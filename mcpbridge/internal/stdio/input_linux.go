package stdio

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// pending returns how many bytes are in a pipe.
func pending(f *os.File) (n int) {
	if raw, err := f.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { //nolint:errcheck // then n stays 0
			n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		})
	}
	return n
}

// unread returns how many bytes are left in a pipe, given its writing end, or -1 if that is unknown. It reads them, and
// closes the pipe.
func unread(f *os.File) int64 {
	in := -1
	if raw, err := f.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { //nolint:errcheck // then there is nothing to read from
			path := "/proc/self/fd/" + strconv.Itoa(int(fd))
			in, _ = unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		})
	}
	f.Close()
	if in < 0 {
		return -1
	}
	defer unix.Close(in) //nolint:errcheck // it was only read
	var total int64
	for buf := make([]byte, 16<<10); ; {
		switch n, err := unix.Read(in, buf); {
		case err == unix.EINTR:
		case n <= 0:
			return total
		default:
			total += int64(n)
		}
	}
}
