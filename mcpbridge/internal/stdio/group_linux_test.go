package stdio

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

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
	require.Len(t, pids, 3, "leader, two daemons")
	kill()
	requireGone(t, pids...)
}

// Processes end each other by a signal to their group.
func TestGuardIgnoresTheSignalsOfItsGroup(t *testing.T) {
	withoutCgroups(t)
	p, out := startServer(t, &mcpbridge.Server{Command: "sh", Args: []string{"-c", `
		trap '' HUP INT QUIT TERM USR1 USR2 ALRM ABRT PIPE PROF VTALRM XCPU XFSZ TSTP TTIN TTOU
		echo 0; read -r line
		for s in HUP INT QUIT TERM USR1 USR2 ALRM ABRT PIPE PROF VTALRM XCPU XFSZ TSTP TTIN TTOU; do kill -s $s 0; done
		echo 1; read -r line`}})
	require.Equal(t, []int{0}, numbers(t, out))
	guard := p.group.guard.Process.Pid
	require.Eventually(t, func() bool { return ignoresSignals(t, guard) }, 5*time.Second, time.Millisecond)
	fmt.Fprintln(&p.input)
	require.Equal(t, []int{1}, numbers(t, out))
	require.True(t, alive(guard))
	stopIn(t, p, 5*time.Second)
	require.False(t, exists(guard))
}

// What is short may be there again a moment later, for the server.
func TestServerIsNotStartedWithoutItsGuard(t *testing.T) {
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	limit := func(files uint64) {
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: before.Max}))
	}
	defer limit(before.Cur)
	for files := uint64(3); ; files++ {
		limit(files)
		g, err := newGroup()
		limit(before.Cur)
		if err == nil {
			require.NotNil(t, g.guard)
			g.release()
			require.Greater(t, files, uint64(3))
			return
		}
		require.ErrorIs(t, err, syscall.EMFILE)
	}
}

// ignoresSignals reports whether a shell ignores the signals that a guard ignores.
func ignoresSignals(t *testing.T, guard int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", guard))
	require.NoError(t, err)
	_, ignored, _ := strings.Cut(string(status), "SigIgn:")
	mask, err := strconv.ParseUint(strings.Fields(ignored)[0], 16, 64)
	require.NoError(t, err)
	return mask>>(uint(syscall.SIGTERM)-1)&1 == 1 && mask>>(uint(syscall.SIGUSR2)-1)&1 == 1
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
	g := &group{cgroup: &cgroup{t.TempDir()}}
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
