package mcpserver

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// polled returns the input of a client so that the runtime polls it with its other files. Otherwise a thread waits in each read of
// it, and has to get a processor before it can take the message. done restores the input, which other processes may have, too.
func polled(in io.Reader, out io.Writer) (from io.Reader, done func()) {
	file, is := in.(*os.File)
	if !is || !canBePolled(file, out) {
		return in, func() {}
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return in, func() {}
	}
	var own *os.File
	conn.Control(func(fd uintptr) { //nolint:errcheck // then own stays nil
		copied, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return
		}
		if unix.SetNonblock(copied, true) == nil {
			own = os.NewFile(uintptr(copied), file.Name())
			return
		}
		unix.Close(copied) //nolint:errcheck // nothing uses it
	})
	if own == nil {
		return in, func() {}
	}
	return own, func() {
		own.Close()                                                             // the input stays open
		conn.Control(func(fd uintptr) { _ = unix.SetNonblock(int(fd), false) }) //nolint:errcheck // nobody uses it then
	}
}

// canBePolled reports whether an input is a pipe or a socket, is not polled yet, and is no output of this process: what cannot be
// written at once would be lost.
func canBePolled(in *os.File, out io.Writer) bool {
	info, err := in.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 || in.SetReadDeadline(time.Time{}) == nil {
		return false
	}
	for _, other := range []io.Writer{out, os.Stdout, os.Stderr} {
		if file, is := other.(*os.File); is {
			its, err := file.Stat()
			if err == nil && os.SameFile(info, its) {
				return false
			}
		}
	}
	return true
}
