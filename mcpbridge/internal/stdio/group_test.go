//go:build linux

package stdio

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// kills is how often a program that starts servers is killed.
var kills = flag.Int("stdio.kills", 20, "kill a program that starts servers so many times")

// owner runs an act that is one of us, in a session of its own, and returns the process ids that it prints, and how to
// kill it.
func owner(t *testing.T, act string) (session int, pids []int, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), testProcess+"="+act)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	kill = sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	t.Cleanup(kill)
	return cmd.Process.Pid, numbers(t, bufio.NewReader(out)), kill
}

// inSession returns the processes of a session that are no zombies.
func inSession(t *testing.T, session int) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, path := range stats {
		stat, _ := os.ReadFile(path) // it may be gone
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if len(fields) > 3 && fields[3] == fmt.Sprint(session) && alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// withoutCgroups runs a test as where there is no right to make a cgroup.
func withoutCgroups(t *testing.T) {
	own := ownCgroup
	ownCgroup = noCgroup
	t.Cleanup(func() { ownCgroup = own })
}

// needsCgroups skips a test where there is no right to make a cgroup.
func needsCgroups(t *testing.T) {
	c := newCgroup()
	if c == nil {
		t.Skip("this process may not make a cgroup")
	}
	c.remove()
}

func TestNothingOutlivesOurOwnDeath(t *testing.T) {
	_, pids, kill := owner(t, "owner")
	require.Len(t, pids, 3, "leader, grandchild, guard")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		require.NoError(t, syscall.Kill(pids[2], sig)) // which the guard ignores
	}
	for _, pid := range pids {
		require.True(t, alive(pid))
	}
	kill()
	requireGone(t, pids...)
}

// The start is when a server may have children that nobody knows of.
func TestNothingOutlivesOurDeathAtTheStart(t *testing.T) {
	for _, act := range []string{"starter", "starter in a group", "starter on Unix"} {
		t.Run(act, func(t *testing.T) {
			for range *kills {
				session, _, kill := owner(t, act)
				after := rand.N(20 * time.Millisecond)
				<-time.After(after)
				kill()
				require.Eventually(t, func() bool { return len(inSession(t, session)) == 0 }, 10*time.Second, 5*time.Millisecond,
					"killed after %v: %v are left", after, inSession(t, session))
			}
		})
	}
}

// A cgroup ends what has left the process group.
func TestDaemonsEndWithTheirServer(t *testing.T) {
	needsCgroups(t)
	p, out := start(t, "daemon")
	daemons := []int{numbers(t, out)[0], numbers(t, out)[0]}
	stopIn(t, p, 5*time.Second)
	requireGone(t, daemons...)
	require.NoDirExists(t, p.group.cgroup.path())
}

func TestDaemonsDoNotOutliveOurOwnDeath(t *testing.T) {
	needsCgroups(t)
	_, pids, kill := owner(t, "owner of a daemon")
	require.Len(t, pids, 4, "leader, two daemons, guard")
	kill()
	requireGone(t, pids...)
}

// A process that makes itself the leader of a session has left the group, but is still known.
func TestServerThatLeavesItsGroupIsEndedWithItsNewOne(t *testing.T) {
	withoutCgroups(t)
	p, out := startServer(t, &mcpbridge.Server{Command: "setsid", Args: []string{"sh", "-c", `sleep 60 & echo $!; wait`}})
	child := numbers(t, out)[0]
	session, err := syscall.Getpgid(p.cmd.Process.Pid)
	require.NoError(t, err)
	require.Equal(t, p.cmd.Process.Pid, session)
	stopIn(t, p, time.Second)
	requireGone(t, child)
}

// Without /bin/sh there is no guard, and the server leads its group.
func TestServerWithoutAGuardLeadsItsGroup(t *testing.T) {
	g := &group{}
	var out *bufio.Reader
	cmd, err := g.start(func() *exec.Cmd {
		cmd := exec.Command("sh", "-c", "sleep 60 & echo $!; wait")
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		out = bufio.NewReader(stdout)
		return cmd
	})
	require.NoError(t, err)
	require.Equal(t, cmd.Process.Pid, g.number())
	child := numbers(t, out)[0]
	g.kill()
	require.Error(t, cmd.Wait())
	g.release()
	requireGone(t, child)
}

// A directory that looks like a cgroup, and is none that a process can be started in, costs the cgroup and not the server.
func TestServerStartsWhereTheCgroupRefusesIt(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	require.NoError(t, err)
	g := &group{cgroup: &cgroup{dir}}
	cmd, err := g.start(func() *exec.Cmd { return exec.Command("cat") })
	require.NoError(t, err)
	require.Nil(t, g.cgroup)
	require.NoError(t, cmd.Wait())
	g.release()
}

func TestOwnCgroupIsFound(t *testing.T) {
	const (
		unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid  = "29 23 0:25 / /sys/fs/cgroup ro shared:8 - tmpfs tmpfs ro\n30 29 0:26 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n"
		bound   = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n"
	)
	for _, c := range []struct{ mounts, names, want string }{
		{unified, "0::/user.slice/app.service\n", "/sys/fs/cgroup/user.slice/app.service"},
		{unified, "0::/\n", "/sys/fs/cgroup"},
		{hybrid, "4:memory:/x\n0::/y\n", "/sys/fs/cgroup/unified/y"},
		{bound, "0::/docker/abc/child\n", "/sys/fs/cgroup/child"},
		{bound, "0::/elsewhere\n", ""},
		{unified, "4:memory:/x\n", ""},
		{"", "0::/\n", ""},
	} {
		require.Equal(t, c.want, cgroupIn(c.mounts, c.names), "%+v", c)
	}
}
