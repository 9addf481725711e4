//go:build linux

package stdio

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// testProcess names the act that the test binary plays as a server.
const testProcess = "MCPBRIDGE_TEST_PROCESS"

func TestMain(m *testing.M) {
	if act, ok := acts[os.Getenv(testProcess)]; ok {
		act()
		return
	}
	goleak.VerifyTestMain(m)
}

// acts are servers that misbehave.
var acts = map[string]func(){
	"echo": func() { io.Copy(os.Stdout, os.Stdin) },
	"die": func() {
		fmt.Fprintln(os.Stderr, "first words\nlast words of", os.Getenv("TOKEN"))
		os.Exit(3)
	},
	"patient": func() { // ignores the end of its input
		say("ready")
		linger()
	},
	"stubborn": stubborn,
	"child": func() { // see bear
		io.Copy(io.Discard, os.NewFile(3, "said"))
		stubborn()
	},
	"sated": func() { // reads one line and no more
		for b := make([]byte, 1); b[0] != '\n'; {
			os.Stdin.Read(b)
		}
		say("read it")
		linger()
	},
	"mute": func() { // closes its output and lives
		os.Stdout.Close()
		linger()
	},
	"flood": func() {
		for range 8 << 10 {
			fmt.Fprintln(os.Stderr, strings.Repeat("x", 1<<10))
		}
		say("flooded")
		fmt.Fprintln(os.Stderr, "the end")
		os.Exit(1)
	},
	"parent": func() { // its child holds all of its pipes
		bear(nil)
		io.Copy(io.Discard, os.Stdin)
	},
	"stubborn parent": func() {
		bear(nil)
		stubborn()
	},
	"runaway": func() { // its child does so outside the group
		bear(&syscall.SysProcAttr{Setsid: true})
	},
	"owner": func() { // is one of us
		p, err := startProcess(server("parent"))
		if err != nil {
			panic(err)
		}
		grandchild, _ := bufio.NewReader(p).ReadString('\n')
		shell, _ := watch()
		say(p.cmd.Process.Pid, strings.TrimSpace(grandchild), shell)
		linger()
	},
	"watched": func() { // is one of us; nothing but the watchdog ends its children
		own := &syscall.SysProcAttr{Setpgid: true}
		spared, doomed := spawn("patient", own), spawn("patient", own)
		watchdog.add(spared.Process.Pid)
		watchdog.add(doomed.Process.Pid)
		watchdog.remove(spared.Process.Pid)
		shell, _ := watch()
		say(spared.Process.Pid, doomed.Process.Pid, shell)
		linger()
	},
}

func say(words ...any) { fmt.Println(words...) }

// linger waits longer than any test, and not for ever.
func linger() { <-time.After(time.Minute) }

func stubborn() {
	signal.Ignore(syscall.SIGTERM)
	say("ready")
	linger()
}

// bear starts a stubborn child that holds our pipes, and says its id before the child
// says anything.
func bear(attr *syscall.SysProcAttr) {
	wait, said, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	child := spawn("child", attr, wait)
	say(child.Process.Pid)
	said.Close()
}

func spawn(act string, attr *syscall.SysProcAttr, files ...*os.File) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), testProcess+"="+act)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	cmd.Stdout = os.Stdout
	if act == "patient" {
		cmd.Stdout = nil
	}
	cmd.SysProcAttr, cmd.ExtraFiles = attr, files
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd
}
