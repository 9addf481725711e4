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

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// testProcess is an environment variable that names the test server as which the test
// binary runs.
const testProcess = "MCPBRIDGE_TEST_PROCESS"

func TestMain(m *testing.M) {
	if serve, ok := testServers[os.Getenv(testProcess)]; ok {
		serve()
		return
	}
	goleak.VerifyTestMain(m)
}

// testServers are the servers as which the test binary can run.
var testServers = map[string]func(){
	"echo": func() { io.Copy(os.Stdout, os.Stdin) },
	"die": func() {
		fmt.Fprintln(os.Stderr, "first words\nlast words of", os.Getenv("TOKEN"))
		os.Exit(3)
	},
	"patient": func() { // ignores the end of its input
		printLine("ready")
		linger()
	},
	"stubborn": stubborn,
	"child": func() { // see startChild
		io.Copy(io.Discard, passedFile())
		stubborn()
	},
	"sated": func() { // reads one line only
		for b := make([]byte, 1); b[0] != '\n'; {
			os.Stdin.Read(b)
		}
		printLine("read it")
		linger()
	},
	"mute": func() { // closes its stdout, and does not exit
		os.Stdout.Close()
		linger()
	},
	"flood": func() {
		for range 8 << 10 {
			fmt.Fprintln(os.Stderr, strings.Repeat("x", 1<<10))
		}
		printLine("flooded")
		fmt.Fprintln(os.Stderr, "the end")
		os.Exit(1)
	},
	"parent": func() { // its child keeps all of its pipes open
		startChild(nil)
		io.Copy(io.Discard, os.Stdin)
	},
	"stubborn parent": func() {
		startChild(nil)
		stubborn()
	},
	"daemon": func() { // its children leave its process group, one of them by a double fork
		cmd := exec.Command("sh", "-c", `setsid sh -c 'echo $$; exec sleep 60' & (setsid sh -c '(sh -c "echo \$\$; exec sleep 60" &)' &); wait`)
		cmd.Stdout = os.Stdout
		cmd.Run()
	},
	"owner":             func() { own(server("parent"), 1) },
	"owner of a daemon": func() { own(server("daemon"), 2) },
	"starter":           func() { startForEver() },
}

// own starts a server itself, and prints the process ids of the server and of some of its children.
func own(srv *mcpbridge.Server, children int) {
	p, err := startProcess(srv, nil, nil)
	if err != nil {
		panic(err)
	}
	words := []any{p.cmd.Process.Pid}
	for lines := bufio.NewReader(p); children > 0; children-- {
		child, _ := lines.ReadString('\n')
		words = append(words, strings.TrimSpace(child))
	}
	printLine(words...)
	linger()
}

// startForEver starts servers that start children at once, until it is killed.
func startForEver() {
	printLine("0")
	for {
		if _, err := startProcess(forking(), nil, nil); err != nil {
			panic(err)
		}
	}
}

func printLine(words ...any) { fmt.Println(words...) }

// linger waits longer than any test takes.
func linger() { <-time.After(time.Minute) }

func stubborn() {
	signal.Ignore(syscall.SIGTERM)
	printLine("ready")
	linger()
}

// startChild starts a stubborn child that keeps the pipes open. It prints the id of the
// child before the child prints anything.
func startChild(attr *syscall.SysProcAttr) {
	wait, said, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	child := spawn("child", attr, wait)
	printLine(child.Process.Pid)
	said.Close()
}

func spawn(act string, attr *syscall.SysProcAttr, file *os.File) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), testProcess+"="+act)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	cmd.Stdout = os.Stdout
	if act == "patient" {
		cmd.Stdout = nil
	}
	cmd.SysProcAttr = attr
	if file != nil {
		passFile(cmd, file)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd
}
