package tests

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"
)

// alive reports whether a process runs.
func alive(pid int) bool {
	process, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(process)
	event, _ := windows.WaitForSingleObject(process, 0)
	return event == uint32(windows.WAIT_TIMEOUT)
}

var suspendProcess = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtSuspendProcess")

// suspend stops a process.
func suspend(t *testing.T, pid int) {
	t.Helper()
	process, err := windows.OpenProcess(windows.PROCESS_SUSPEND_RESUME, false, uint32(pid))
	require.NoError(t, err)
	defer windows.CloseHandle(process)
	status, _, _ := suspendProcess.Call(uintptr(process))
	require.Zero(t, status)
}
