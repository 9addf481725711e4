//go:build real

package real

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// process is one that was seen to run.
type process struct {
	pid, parent int
	born        string // tells it from a later one with its number
	args        string
}

func (p process) String() string { return fmt.Sprintf("%d (%.120s)", p.pid, p.args) }

// runs reports whether the process runs still.
func (p process) runs() bool {
	now, ok := look(p.pid)
	return ok && now.born == p.born
}

// look returns the process with a number, if it runs: one that only waits to be
// reaped does not.
func look(pid int) (process, bool) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return process{}, false
	}
	// What comes first is the name, which may have anything in it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return process{}, false
	}
	if threads, _ := os.ReadDir(dir + "task"); fields[0] == "X" || fields[0] == "Z" && len(threads) < 2 {
		return process{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	args, _ := os.ReadFile(dir + "cmdline")
	return process{pid, parent, fields[19], strings.TrimSpace(strings.ReplaceAll(string(args), "\x00", " "))}, true
}

// numbers returns the numbers of all processes.
func numbers() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// descendants returns the processes below the one with a number. It may miss one
// whose parent ends at this moment.
func descendants(pid int) (all []process) {
	children := map[int][]process{}
	for _, n := range numbers() {
		if p, ok := look(n); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			all = append(all, p)
			next = append(next, p.pid)
		}
	}
	return all
}

// ours returns the processes below this one, but for some.
func ours(but ...int) []process {
	all := descendants(os.Getpid())
	return slices.DeleteFunc(all, func(p process) bool { return slices.Contains(but, p.pid) })
}

// allGone reports whether none of the processes runs.
func allGone(all []process) bool {
	return !slices.ContainsFunc(all, process.runs)
}

// reap takes the remains of processes that became our children. There must be
// no other children.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != syscall.EINTR && pid <= 0 {
			return
		}
	}
}

// openFiles returns how many files and sockets this process has open. The
// runtime's own for waiting are there once the first socket was.
func openFiles() (n int) {
	files, _ := os.ReadDir("/proc/self/fd")
	for _, f := range files {
		if at, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && !strings.HasPrefix(at, "anon_inode:") {
			n++
		}
	}
	return n
}
