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

// process is a process that ran when it was looked up.
type process struct {
	pid, parent int
	started     string // distinguishes it from a later process with the same id
	args        string
}

func (p process) String() string { return fmt.Sprintf("%d (%.120s)", p.pid, p.args) }

// runs reports whether the process still runs.
func (p process) runs() bool {
	now, ok := findProcess(p.pid)
	return ok && now.started == p.started
}

// findProcess returns the process with an id, if it runs. A zombie does not run.
func findProcess(pid int) (process, bool) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return process{}, false
	}
	// The name comes first, and may contain any character.
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

// processIDs returns the ids of all processes.
func processIDs() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// descendants returns the descendants of a process. It may miss a process whose parent ends
// at this moment.
func descendants(pid int) (all []process) {
	children := map[int][]process{}
	for _, n := range processIDs() {
		if p, ok := findProcess(n); ok {
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

// ownDescendants returns the descendants of this process other than but.
func ownDescendants(but ...int) []process {
	all := descendants(os.Getpid())
	return slices.DeleteFunc(all, func(p process) bool { return slices.Contains(but, p.pid) })
}

// allEnded reports whether none of the processes runs.
func allEnded(all []process) bool {
	return !slices.ContainsFunc(all, process.runs)
}

// reap reaps the zombies among the children of this process. There must be no other
// children.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != syscall.EINTR && pid <= 0 {
			return
		}
	}
}

// openFiles returns the open files and sockets of this process, each with its number. A
// count is not enough, because files that were open before may be closed meanwhile. The
// files of the runtime's poller are left out: it opens them with the first socket.
func openFiles() (all []string) {
	files, _ := os.ReadDir("/proc/self/fd")
	for _, f := range files {
		if at, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && !strings.HasPrefix(at, "anon_inode:") {
			all = append(all, f.Name()+" "+at)
		}
	}
	return all
}
