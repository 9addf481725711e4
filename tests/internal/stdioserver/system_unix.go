//go:build unix

package stdioserver

import (
	"errors"
	"os"
	"syscall"
)

// isLocked locks a file until the process ends, and reports whether another process has locked it.
func isLocked(f *os.File) bool {
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// suspend stops this process.
func suspend() { syscall.Kill(os.Getpid(), syscall.SIGSTOP) } //nolint:errcheck // a process may signal itself
