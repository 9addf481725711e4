//go:build real

package real

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/freeport"
)

// remote is a server over HTTP that the test starts.
type remote struct {
	h       *harness
	program string
	address string
	args    []string
	env     []string
	output  string // the file with its output

	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// startRemote starts a server over HTTP, and returns its origin.
func (h *harness) startRemote(args []string, env map[string]string) string {
	h.t.Helper()
	address, err := freeport.Addr("127.0.0.1")
	require.NoError(h.t, err)
	_, port, _ := net.SplitHostPort(address)
	r := &remote{h: h, program: "node", address: address, env: append(os.Environ(), "PORT="+port)}
	for _, arg := range args {
		r.args = append(r.args, strings.ReplaceAll(arg, "$PORT", port))
	}
	for name, value := range env {
		r.env = append(r.env, name+"="+value)
	}
	r.output = filepath.Join(h.dir, "output-"+port)
	h.remotes = append(h.remotes, r)
	r.start()
	return "http://" + r.address
}

// start starts the server, or starts it again after its end, and waits until it listens.
func (r *remote) start() {
	r.h.t.Helper()
	if r.done != nil {
		<-r.done
	}
	output, err := os.OpenFile(r.output, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(r.h.t, err)
	defer output.Close()
	cmd, done := exec.Command(r.program, r.args...), make(chan struct{})
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.h.dir, r.env, output, output
	require.NoError(r.h.t, cmd.Start())
	go func() {
		defer close(done)
		cmd.Wait()
	}()
	r.cmd, r.done = cmd, done
	r.h.eventually("the server listens on "+r.address, func() bool {
		conn, err := net.Dial("tcp", r.address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
}

// pid returns the process id, or 0 if the server was never started.
func (r *remote) pid() int {
	if r.cmd == nil {
		return 0
	}
	return r.cmd.Process.Pid
}

// stop kills the server.
func (r *remote) stop() {
	if r.cmd != nil {
		r.cmd.Process.Kill()
		<-r.done
	}
	if r.h.t.Failed() {
		said, _ := os.ReadFile(r.output)
		r.h.t.Logf("the server said: %s", said)
	}
}
