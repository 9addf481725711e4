//go:build unix

package stdio

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// watchdogScript keeps a list of the groups that run. Its input ends when this process ends, in whatever way. Then it
// kills the groups on the list.
const watchdogScript = `
trap '' INT TERM HUP
groups=' '
while read -r op group; do
	case $op in
	+) groups="$groups$group " ;;
	-) groups="${groups%% $group *} ${groups#* $group }" ;;
	esac
done
for group in $groups; do
	kill -s KILL -- "-$group"
done
`

// watchdogLimit bounds the wait for a watchdog that does not read.
const watchdogLimit = time.Second

// watchdog is the watchdog of this process.
var watchdog watchdogShell

// watchdogShell kills the process groups that remain when this process is killed. It is
// a shell, in a group of its own, that runs while there are groups. Without /bin/sh,
// or if the shell is killed, children of a server survive a SIGKILL of this process. So do children that
// a leader starts before add is called, which is soon after the start of the leader.
type watchdogShell struct {
	mu     sync.Mutex
	groups map[int]struct{}
	shell  *exec.Cmd // nil while it does not run
	pipe   *os.File  // to the shell; nil while it does not run
}

// add puts a group under watch.
func (r *watchdogShell) add(group int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.groups == nil {
		r.groups = map[int]struct{}{}
	}
	r.groups[group] = struct{}{}
	r.tell('+', group)
}

// remove removes a group from the list. Call it before another group can get
// its number.
func (r *watchdogShell) remove(group int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.groups, group)
	if len(r.groups) == 0 {
		r.end()
		return
	}
	r.tell('-', group)
}

// tell updates the list of the shell. A shell that does not accept the change is
// replaced, because its list must not be used.
func (r *watchdogShell) tell(op rune, group int) {
	if r.shell != nil && r.write(op, group) == nil {
		return
	}
	r.end()
	r.begin()
}

func (r *watchdogShell) write(op rune, group int) error {
	r.pipe.SetWriteDeadline(time.Now().Add(watchdogLimit)) //nolint:errcheck // pipes have deadlines
	_, err := fmt.Fprintf(r.pipe, "%c %d\n", op, group)
	return err
}

// begin starts a shell with the whole list.
func (r *watchdogShell) begin() {
	in, pipe, err := os.Pipe()
	if err != nil {
		return
	}
	defer in.Close()
	shell := exec.Command("/bin/sh", "-c", watchdogScript)
	shell.Stdin = in
	shell.Dir = "/"        // keeps no file system busy
	shell.Env = []string{} // needs no secrets
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := shell.Start(); err != nil {
		pipe.Close()
		return
	}
	r.shell, r.pipe = shell, pipe
	for group := range r.groups {
		if r.write('+', group) != nil {
			r.end()
			return
		}
	}
}

// end ends the shell, if it runs. It kills the shell before it closes the pipe, because the shell uses its list when
// its input ends.
func (r *watchdogShell) end() {
	if r.shell == nil {
		return
	}
	r.shell.Process.Kill() //nolint:errcheck // it may have ended
	r.shell.Wait()         //nolint:errcheck // as above
	r.pipe.Close()
	r.shell, r.pipe = nil, nil
}
