//go:build linux

package bridge

import (
	"bufio"
	"bytes"
	"encoding/json"
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

	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
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
	"quitter": func() { // answers one request less than the handshake has
		reply(`"error":{"code":-32601,"message":"no such method"}`)
		os.Exit(4)
	},
	"waverer": func() { // answers all of them, and is gone
		reply(`"error":{"code":-32601,"message":"no such method"}`)
		reply(`"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		os.Exit(4)
	},
	"picky": func() { // reads a call, but for the newline, or but for that and the closing brace; and dies
		reply(`"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		var call []byte
		for b := make([]byte, 1); !bytes.Contains(call, []byte(`"tools/call","params"`)) || !json.Valid(append(call, os.Getenv("MISSING")...)); {
			os.Stdin.Read(b)
			if call = append(call, b[0]); b[0] == '\n' {
				call = nil // it was the notification that comes before
			}
		}
		os.Exit(5)
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
		child := spawn("stubborn", nil)
		say(child.Process.Pid)
		io.Copy(io.Discard, os.Stdin)
	},
	"stubborn parent": func() {
		child := spawn("stubborn", nil)
		say(child.Process.Pid)
		stubborn()
	},
	"runaway": func() { // its child does so outside the group
		child := spawn("stubborn", &syscall.SysProcAttr{Setsid: true})
		say(child.Process.Pid)
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

// reply answers the next request.
func reply(answer string) {
	var line []byte
	for b := make([]byte, 1); b[0] != '\n'; line = append(line, b[0]) {
		os.Stdin.Read(b)
	}
	say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, rpc.Parse(line).ID, answer))
}

func say(words ...any) { fmt.Println(words...) }

// linger waits longer than any test, and not for ever.
func linger() { <-time.After(time.Minute) }

func stubborn() {
	signal.Ignore(syscall.SIGTERM)
	say("ready")
	linger()
}

func spawn(act string, attr *syscall.SysProcAttr) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), testProcess+"="+act)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	cmd.Stdout = os.Stdout
	if act == "patient" {
		cmd.Stdout = nil
	}
	cmd.SysProcAttr = attr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd
}
