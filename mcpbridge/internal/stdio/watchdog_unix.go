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

// watchdogScript keeps the list of the groups that are alive. Its input ends
// when we end, in whatever way. Then nobody is left to end the groups on the list.
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

// watchdog is the one of this Go process.
var watchdog watchdogShell

// watchdogShell kills the process groups that are left over when we are killed ourselves. It is
// a shell, in a group of its own, that runs while there are groups. Where there is no /bin/sh,
// or when the shell is killed, children of a server outlive a SIGKILL of ours. So do those that
// the leader has started before add was called, which happens at once.
type watchdogShell struct {
	mu     sync.Mutex
	groups map[int]struct{}
	shell  *exec.Cmd // nil while there is none
	pipe   *os.File  // nil while there is none
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

// remove takes a group from the list. Call it while the number of the group
// cannot be anyone else's.
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

// tell keeps the shell's list up to date. A shell that does not take the change is
// replaced: its list must never be used.
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

// end ends the shell, if there is one. It is killed before its input ends,
// which would be the sign to use its list.
func (r *watchdogShell) end() {
	if r.shell == nil {
		return
	}
	r.shell.Process.Kill() //nolint:errcheck // it may have ended
	r.shell.Wait()         //nolint:errcheck // as above
	r.pipe.Close()
	r.shell, r.pipe = nil, nil
}
