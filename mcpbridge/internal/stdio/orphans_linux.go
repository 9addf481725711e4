package stdio

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// sweepInterval is the time between two searches for orphans while their leaders run.
	sweepInterval = time.Second
	// reapWait is how long the members of a killed group may take to end.
	reapWait = 250 * time.Millisecond
)

// orphans are the members of the servers' process groups whose parents have ended. If this process is PID 1 of a
// container, or a subreaper, it becomes their parent, and has to reap them. It recognizes them by their group: other
// code of this process may have other children.
var orphans sweep

// sweep reaps the orphans of groups whose leaders run.
type sweep struct {
	mu      sync.Mutex
	groups  map[int]*group // by number
	running bool           // a timer is set
}

// watch adds a group. The caller calls done before it reaps the server.
func (s *sweep) watch(g *group) (done func()) {
	if !adopts() {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups == nil {
		s.groups = map[int]*group{}
	}
	s.groups[g.number()] = g
	if !s.running {
		s.running = true
		time.AfterFunc(sweepInterval, s.run)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.groups, g.number())
	}
}

func (s *sweep) run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running = len(s.groups) > 0; s.running {
		reapOrphans(s.groups)
		time.AfterFunc(sweepInterval, s.run)
	}
}

// awaitExit waits for the end of the server without reaping it.
func (g *group) awaitExit(cmd *exec.Cmd) {
	defer orphans.watch(g)()
	for unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// reap reaps the orphans of a killed group. It waits up to reapWait until they have ended. When one ends, its children
// become children of this process.
func (g *group) reap() {
	if !adopts() {
		return
	}
	only := map[int]*group{g.number(): g}
	for wait := time.Millisecond; reapOrphans(only) > 0 && wait < reapWait; wait *= 2 {
		time.Sleep(wait)
	}
}

// reapOrphans reaps the orphans of groups that have ended. It returns the number of
// orphans, including those that have not ended.
func reapOrphans(groups map[int]*group) (found int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	self := strconv.Itoa(os.Getpid())
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + name + "/stat") // it may be gone
		// The fields follow the name of the program, which is in parentheses, and may contain parentheses.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 3 || fields[1] != self {
			continue
		}
		number, _ := strconv.Atoi(fields[2])
		if g := groups[number]; g != nil && pid != number && pid != g.leader.Pid { // not the guard, and not the server
			found++
			unix.Wait4(pid, nil, unix.WNOHANG, nil) //nolint:errcheck // it may still run
		}
	}
	return found
}

// adopts reports whether orphans of the servers become children of this process.
func adopts() bool {
	var subreaper int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&subreaper)), 0, 0, 0)
	return os.Getpid() == 1 || err == nil && subreaper != 0
}
