//go:build real

package real

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
)

// remote is a server over HTTP, in a process of our own.
type remote struct {
	w       *world
	address string
	args    []string
	env     []string
	output  string // the file with all it says

	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// listen starts a server, and returns the URL of its root.
func (w *world) listen(args []string, env map[string]string) string {
	w.t.Helper()
	port := w.freePort()
	r := &remote{w: w, address: net.JoinHostPort("127.0.0.1", port), env: append(os.Environ(), "PORT="+port)}
	for _, arg := range args {
		r.args = append(r.args, strings.ReplaceAll(arg, "$PORT", port))
	}
	for name, value := range env {
		r.env = append(r.env, name+"="+value)
	}
	r.output = filepath.Join(w.dir, "output-"+port)
	w.remotes = append(w.remotes, r)
	r.start()
	return "http://" + r.address
}

// freePort returns a port that nobody has, and that the system gives to nobody
// who does not ask for it.
func (w *world) freePort() string {
	w.t.Helper()
	for range 100 {
		port := fmt.Sprint(20000 + rand.IntN(10000))
		if l, err := net.Listen("tcp", ":"+port); err == nil {
			l.Close()
			return port
		}
	}
	w.t.Fatal("there is no free port")
	return ""
}

// start starts the server, again if it has ended, and waits until it listens.
func (r *remote) start() {
	r.w.t.Helper()
	if r.done != nil {
		<-r.done
	}
	output, err := os.OpenFile(r.output, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(r.w.t, err)
	defer output.Close()
	cmd, done := exec.Command("node", r.args...), make(chan struct{})
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.w.dir, r.env, output, output
	require.NoError(r.w.t, cmd.Start())
	go func() {
		defer close(done)
		cmd.Wait()
	}()
	r.cmd, r.done = cmd, done
	r.w.until("the server listens on "+r.address, func() bool {
		conn, err := net.Dial("tcp", r.address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
}

// pid returns the number of the process, or 0 if it was never started.
func (r *remote) pid() int {
	if r.cmd == nil {
		return 0
	}
	return r.cmd.Process.Pid
}

// end ends the server.
func (r *remote) end() {
	if r.cmd != nil {
		r.cmd.Process.Kill()
		<-r.done
	}
	if r.w.t.Failed() {
		said, _ := os.ReadFile(r.output)
		r.w.t.Logf("the server said: %s", said)
	}
}
