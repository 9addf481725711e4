package stdio

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// sweepInterval is how often orphans are looked for while their leaders run.
	sweepInterval = time.Second
	// reapWait is how long the members of a group that was killed may take to end.
	reapWait = 250 * time.Millisecond
)

// orphans are the members of our groups whose parents have ended. If we are PID 1 of a
// container, or a subreaper, we become their parent and have to reap them.
// They are recognized by their group: any other child of this process belongs to
// whoever started it. A group is ours as long as its leader has not been reaped.
var orphans sweep

// sweep reaps the orphans of groups whose leaders run.
type sweep struct {
	mu      sync.Mutex
	groups  map[int]struct{}
	running bool // a timer is set
}

// watch adds a group until done is called, which must be before its leader is reaped.
func (s *sweep) watch(group int) (done func()) {
	if !adopts() {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups == nil {
		s.groups = map[int]struct{}{}
	}
	s.groups[group] = struct{}{}
	if !s.running {
		s.running = true
		time.AfterFunc(sweepInterval, s.run)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.groups, group)
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

// reapGroup reaps what is left of a group that was killed, except for its leader. It waits
// a moment for the members to end. As each ends, its own children become ours.
func reapGroup(leader int) {
	if !adopts() {
		return
	}
	group := map[int]struct{}{leader: {}}
	for wait := time.Millisecond; reapOrphans(group) > 0 && wait < reapWait; wait *= 2 {
		time.Sleep(wait)
	}
}

// reapOrphans reaps the orphans of groups that have ended. It returns how many
// orphans there were, including those that have not ended.
func reapOrphans(groups map[int]struct{}) (found int) {
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
		// The name of the program comes before, in parentheses, whatever is in it.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 3 || fields[1] != self {
			continue
		}
		group, _ := strconv.Atoi(fields[2])
		if _, ours := groups[group]; ours && pid != group {
			found++
			unix.Wait4(pid, nil, unix.WNOHANG, nil) //nolint:errcheck // it may run still
		}
	}
	return found
}

// adopts reports whether the orphans of our children become children of ours.
func adopts() bool {
	var subreaper int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&subreaper)), 0, 0, 0)
	return os.Getpid() == 1 || err == nil && subreaper != 0
}
