package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processLog is a file that the processes of the stdio server append to: "pid 123" when a
// process starts, "run 4-5" when it runs a call. The show reads it to find the processes
// and to count the runs of calls.
type processLog struct {
	path     string
	executed func(call string)
	offset   int64 // up to which the file was read
	pids     []int // of the processes that ran when it was last read, the newest last
}

func newProcessLog(executed func(call string)) (*processLog, error) {
	f, err := os.CreateTemp("", "mcpactor-demo-")
	if err != nil {
		return nil, err
	}
	return &processLog{path: f.Name(), executed: executed}, f.Close()
}

// read reads the lines that were added since the last time.
func (l *processLog) read() error {
	file, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return err
	}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadString('\n')
		if err != nil { // a line without an end is read the next time
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		l.offset += int64(len(line))
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if pid, err := strconv.Atoi(value); err == nil && key == "pid" {
			l.pids = append(l.pids, pid)
		} else if key == "run" {
			l.executed(value)
		}
	}
}

// running returns the ids of the running processes, the newest last.
func (l *processLog) running() []int {
	l.read() //nolint:errcheck // a file that cannot be read names no process
	l.pids = slices.DeleteFunc(l.pids, func(pid int) bool { return !alive(pid) })
	return l.pids
}

// kill kills up to n processes, the newest first, and returns how many it killed.
func (l *processLog) kill(n int) (killed int) {
	pids := slices.Clone(l.running())
	for _, pid := range pids[max(0, len(pids)-n):] {
		if p, err := os.FindProcess(pid); err == nil && p.Kill() == nil {
			l.pids = slices.DeleteFunc(l.pids, func(other int) bool { return other == pid }) // it may not have ended yet
			killed++
		}
	}
	return killed
}

// waitForExit waits up to two seconds until no process runs, and describes those that still
// do.
func (l *processLog) waitForExit() (left []string) {
	for range 100 {
		if left = nil; len(l.running()) == 0 {
			break
		}
		for _, pid := range l.running() {
			left = append(left, fmt.Sprintf("process %d still runs", pid))
		}
		time.Sleep(20 * time.Millisecond)
	}
	return left
}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}
