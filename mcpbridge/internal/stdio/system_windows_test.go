package stdio

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

const killedText = "exited with status 1"

var starters = []string{"starter"}

func init() {
	testServers["forking"] = func() {
		spawn("patient", nil, nil)
		spawn("patient", nil, nil)
		linger()
	}
}

// programFor returns a copy of this program, by whose name [leftOf] finds what the program starts.
func programFor(t *testing.T) string {
	t.Helper()
	program, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), fmt.Sprintf("owner%d.exe", os.Getpid()))
	require.NoError(t, os.WriteFile(path, program, 0o700))
	return path
}

// forking is a server that starts children at once.
func forking() *mcpbridge.Server { return server("forking") }

func ownerAttr() *syscall.SysProcAttr { return nil }

func alive(pid int) bool {
	process, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(process)
	event, _ := windows.WaitForSingleObject(process, 0)
	return event == uint32(windows.WAIT_TIMEOUT)
}

func leftOf(t *testing.T, program *exec.Cmd) (left []int) {
	t.Helper()
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	require.NoError(t, err)
	defer windows.CloseHandle(snapshot)
	entry := windows.ProcessEntry32{}
	entry.Size = uint32(unsafe.Sizeof(entry))
	for err = windows.Process32First(snapshot, &entry); err == nil; err = windows.Process32Next(snapshot, &entry) {
		if strings.EqualFold(windows.UTF16ToString(entry.ExeFile[:]), filepath.Base(program.Path)) && alive(int(entry.ProcessID)) {
			left = append(left, int(entry.ProcessID))
		}
	}
	return left
}

// handleVar names the handle of the file that passFile gives to a child.
const handleVar = "MCPBRIDGE_TEST_HANDLE"

func passFile(cmd *exec.Cmd, f *os.File) {
	handle := windows.Handle(f.Fd())
	if err := windows.SetHandleInformation(handle, windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT); err != nil {
		panic(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{AdditionalInheritedHandles: []syscall.Handle{syscall.Handle(handle)}}
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", handleVar, handle))
}

func passedFile() *os.File {
	handle, err := strconv.ParseUint(os.Getenv(handleVar), 10, 64)
	if err != nil {
		panic(err)
	}
	return os.NewFile(uintptr(handle), "said")
}
