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

// journal is the file in which the processes of the stdio server write down
// what they do: "pid 123" when one starts, "run 4-5" when it runs a call.
type journal struct {
	path   string
	killed map[int]bool
}

func newJournal() (*journal, error) {
	f, err := os.CreateTemp("", "mcpactor-demo-")
	if err != nil {
		return nil, err
	}
	return &journal{path: f.Name(), killed: map[int]bool{}}, f.Close()
}

// read calls f with each line, split at its space.
func (j *journal) read(f func(what, value string)) error {
	file, err := os.Open(j.path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		what, value, _ := strings.Cut(lines.Text(), " ")
		f(what, value)
	}
	return lines.Err()
}

// running returns the ids of the processes that run, the newest last.
func (j *journal) running() (pids []int) {
	j.read(func(what, value string) { //nolint:errcheck // then there are none to be found
		if pid, err := strconv.Atoi(value); err == nil && what == "pid" && !j.killed[pid] && alive(pid) {
			pids = append(pids, pid)
		}
	})
	return pids
}

// kill kills up to n processes, the newest first.
func (j *journal) kill(n int) (killed int) {
	pids := j.running()
	for _, pid := range pids[max(0, len(pids)-n):] {
		if p, err := os.FindProcess(pid); err == nil && p.Kill() == nil {
			j.killed[pid] = true
			killed++
		}
	}
	return killed
}

// left waits a little for the processes to be gone, and returns those that are
// not.
func (j *journal) left() (left []string) {
	for range 100 {
		if left = nil; len(j.running()) == 0 {
			break
		}
		for _, pid := range j.running() {
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
