package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processLog is a file that the processes of the stdio server append to: "pid 123" when a
// process starts, "run 4-5" when it runs a call. The show reads it to find the processes
// and to count the runs of calls.
type processLog struct {
	path   string
	killed map[int]bool // by pid
}

func newProcessLog() (*processLog, error) {
	f, err := os.CreateTemp("", "mcpactor-demo-")
	if err != nil {
		return nil, err
	}
	return &processLog{path: f.Name(), killed: map[int]bool{}}, f.Close()
}

// read calls f with both words of each line.
func (l *processLog) read(f func(key, value string)) error {
	file, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), " ")
		f(key, value)
	}
	return lines.Err()
}

// running returns the ids of the running processes, the newest last.
func (l *processLog) running() (pids []int) {
	l.read(func(key, value string) { //nolint:errcheck // a file that cannot be read names no process
		if pid, err := strconv.Atoi(value); err == nil && key == "pid" && !l.killed[pid] && alive(pid) {
			pids = append(pids, pid)
		}
	})
	return pids
}

// kill kills up to n processes, the newest first, and returns how many it killed.
func (l *processLog) kill(n int) (killed int) {
	pids := l.running()
	for _, pid := range pids[max(0, len(pids)-n):] {
		if p, err := os.FindProcess(pid); err == nil && p.Kill() == nil {
			l.killed[pid] = true
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
