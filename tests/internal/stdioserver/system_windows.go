package stdioserver

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// isLocked locks a file until the process ends, and reports whether another process has locked it.
func isLocked(f *os.File) bool {
	const now = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return errors.Is(windows.LockFileEx(windows.Handle(f.Fd()), now, 0, 1, 0, new(windows.Overlapped)), windows.ERROR_LOCK_VIOLATION)
}

var suspendProcess = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtSuspendProcess")

// suspend stops this process.
func suspend() { suspendProcess.Call(uintptr(windows.CurrentProcess())) } //nolint:errcheck // a process may suspend itself
