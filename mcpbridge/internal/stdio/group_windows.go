package stdio

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is the job of a server. The server and its children are in it from their first instruction, and cannot leave it.
// Windows ends the processes of a job when its last handle is closed. Only this process has one, so that they end with this
// process, in whatever way it ends.
type group struct {
	job    windows.Handle
	leader *os.Process
}

// newGroup makes a job without a server. The caller calls release in the end.
func newGroup() (*group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		windows.CloseHandle(job) //nolint:errcheck // it is empty
		return nil, os.NewSyscallError("SetInformationJobObject", err)
	}
	return &group{job: job}, nil
}

// start starts a server in the job. command makes the command.
func (g *group) start(command func() *exec.Cmd) (*exec.Cmd, error) {
	cmd := command()
	process, pid, err := startInJob(cmd, g.job)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(process) //nolint:errcheck // until then the process id is its own
	g.leader, err = os.FindProcess(pid)
	cmd.Process = g.leader
	return cmd, err
}

// awaitExit waits for the end of the server.
func (g *group) awaitExit(cmd *exec.Cmd) {
	cmd.Wait() //nolint:errcheck // it is in ProcessState
}

// terminate does nothing: nothing asks a process to end here but the end of its input.
func (g *group) terminate() {}

// kill kills the processes of the job. It must not be called after release.
func (g *group) kill() { windows.TerminateJobObject(g.job, 1) } //nolint:errcheck // they may have ended

// reap does nothing: this process does not become the parent of orphans.
func (g *group) reap() {}

// release closes the job, and with that kills what is left in it.
func (g *group) release() { windows.CloseHandle(g.job) } //nolint:errcheck // it is ours

// procThreadAttributeJobList is PROC_THREAD_ATTRIBUTE_JOB_LIST.
const procThreadAttributeJobList = 0x0002000D

// startInJob starts a command as [exec.Cmd.Start] does, but in a job: to put a running process into a job is too late for the
// children that it has started already. The caller closes the handle of the process.
func startInJob(cmd *exec.Cmd, job windows.Handle) (process windows.Handle, pid int, err error) {
	program, err := programOf(cmd)
	if err != nil {
		return 0, 0, err
	}
	path, err1 := windows.UTF16PtrFromString(program)
	line, err2 := windows.UTF16PtrFromString(windows.ComposeCommandLine(cmd.Args))
	var dir *uint16
	var err3 error
	if cmd.Dir != "" {
		dir, err3 = windows.UTF16PtrFromString(cmd.Dir)
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return 0, 0, err
	}

	var inherited []windows.Handle
	defer func() {
		for _, h := range inherited {
			windows.CloseHandle(h) //nolint:errcheck // it is ours
		}
	}()
	self := windows.CurrentProcess()
	for _, f := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		var h windows.Handle
		err := windows.DuplicateHandle(self, windows.Handle(f.(*os.File).Fd()), self, &h, 0, true, windows.DUPLICATE_SAME_ACCESS)
		if err != nil {
			return 0, 0, os.NewSyscallError("DuplicateHandle", err)
		}
		inherited = append(inherited, h)
	}
	attributes, err := windows.NewProcThreadAttributeList(2)
	if err != nil {
		return 0, 0, err
	}
	defer attributes.Delete()
	err1 = attributes.Update(windows.PROC_THREAD_ATTRIBUTE_HANDLE_LIST, unsafe.Pointer(&inherited[0]), uintptr(len(inherited))*unsafe.Sizeof(inherited[0]))
	err2 = attributes.Update(procThreadAttributeJobList, unsafe.Pointer(&job), unsafe.Sizeof(job))
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, os.NewSyscallError("UpdateProcThreadAttribute", err)
	}

	startup := windows.StartupInfoEx{ProcThreadAttributeList: attributes.List()}
	startup.Cb = uint32(unsafe.Sizeof(startup))
	startup.Flags = windows.STARTF_USESTDHANDLES
	startup.StdInput, startup.StdOutput, startup.StdErr = inherited[0], inherited[1], inherited[2]
	var info windows.ProcessInformation
	err = windows.CreateProcess(path, line, nil, nil, true, windows.CREATE_UNICODE_ENVIRONMENT|windows.EXTENDED_STARTUPINFO_PRESENT,
		&environmentBlock(cmd.Environ())[0], dir, &startup.StartupInfo, &info)
	if err != nil {
		return 0, 0, &os.PathError{Op: "CreateProcess", Path: program, Err: err}
	}
	windows.CloseHandle(info.Thread) //nolint:errcheck // it is ours
	return info.Process, int(info.ProcessId), nil
}

// programOf returns the path of the program of a command. If the command names it relative to a directory, it is relative to
// that of the command, and may lack its extension.
func programOf(cmd *exec.Cmd) (string, error) {
	path := cmd.Path
	if !filepath.IsAbs(path) {
		var err error
		if path, err = filepath.Abs(filepath.Join(cmd.Dir, path)); err != nil {
			return "", err
		}
	}
	return exec.LookPath(path)
}

// environmentBlock returns the variables of an environment as CreateProcess takes them: sorted, and each with a NUL character at
// its end.
func environmentBlock(variables []string) (block []uint16) {
	variables = slices.SortedFunc(slices.Values(variables), func(a, b string) int {
		a, _, _ = strings.Cut(a, "=")
		b, _, _ = strings.Cut(b, "=")
		return cmp.Compare(strings.ToUpper(a), strings.ToUpper(b))
	})
	for _, variable := range variables {
		block = append(append(block, utf16.Encode([]rune(variable))...), 0)
	}
	return append(block, 0, 0)
}
