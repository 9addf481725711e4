package stdio

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// cgroup is the control group of one server, below that of this process. Processes cannot leave it without the right
// to do so. A nil cgroup does nothing.
type cgroup struct{ dir string }

// cgroupPrefix begins the names of cgroups of servers.
const cgroupPrefix = "mcpactor-"

// cgroupWait is how long killed processes may hold their cgroup.
const cgroupWait = 250 * time.Millisecond

// ownCgroup returns the directory of the cgroup of this process, or nothing. It removes what a process that was killed has
// left there, before its guard could.
var ownCgroup = sync.OnceValue(func() string {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	names, _ := os.ReadFile("/proc/self/cgroup")
	own := cgroupIn(string(mounts), string(names))
	left, _ := filepath.Glob(own + "/" + cgroupPrefix + "*")
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > time.Minute {
			os.Remove(path) //nolint:errcheck // unless it has processes
		}
	}
	return own
})

// cgroupIn returns the directory of a cgroup of version 2, given the mounts and the cgroups of a process.
func cgroupIn(mounts, names string) string {
	_, name, found := strings.Cut("\n"+names, "\n0::")
	if !found {
		return ""
	}
	name, _, _ = strings.Cut(name, "\n")
	for mount := range strings.Lines(mounts) {
		about, system, _ := strings.Cut(mount, " - ")
		fields := strings.Fields(about) // 36 35 98:0 /root /mount/point …
		if !strings.HasPrefix(system, "cgroup2 ") || len(fields) < 5 {
			continue
		}
		if below, err := filepath.Rel(fields[3], name); err == nil && filepath.IsLocal(below) {
			return filepath.Join(fields[4], below)
		}
	}
	return ""
}

// newCgroup makes a cgroup, or returns nil where this process has no right to do so, as in most containers, and where the
// kernel is older than 5.14.
func newCgroup() *cgroup {
	own := ownCgroup()
	if own == "" {
		return nil
	}
	dir, err := os.MkdirTemp(own, cgroupPrefix)
	if err != nil {
		return nil
	}
	if _, err := os.Stat(dir + "/cgroup.kill"); err != nil {
		os.Remove(dir) //nolint:errcheck // it is empty
		return nil
	}
	return &cgroup{dir}
}

// path returns the directory of the cgroup, or nothing.
func (c *cgroup) path() string {
	if c == nil {
		return ""
	}
	return c.dir
}

// enter makes a process start in the cgroup. The caller calls done when it has started.
func (c *cgroup) enter(attr *syscall.SysProcAttr) (done func(), err error) {
	if c == nil {
		return func() {}, nil
	}
	dir, err := os.Open(c.dir)
	if err != nil {
		return nil, err
	}
	attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
	return func() { dir.Close() }, nil
}

// kill kills all processes in the cgroup.
func (c *cgroup) kill() {
	if c != nil {
		os.WriteFile(c.dir+"/cgroup.kill", []byte("1"), 0) //nolint:errcheck // then the group is killed
	}
}

// remove removes the cgroup. It waits up to cgroupWait until the processes in it have ended.
func (c *cgroup) remove() {
	if c == nil {
		return
	}
	for wait := time.Millisecond; os.Remove(c.dir) != nil && wait < cgroupWait; wait *= 2 {
		c.kill()
		time.Sleep(wait)
	}
}
