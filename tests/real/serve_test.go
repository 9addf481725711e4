//go:build real

package real

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/freeport"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// programs is the folder of what the tests build. TestMain removes it.
var programs = filepath.Join(os.TempDir(), fmt.Sprintf("mcpactor-real-%d", os.Getpid()))

// buildMcpactor builds the command mcpactor, and returns its path. It has the race detector if the tests have it: then a race
// ends it, which no test expects.
var buildMcpactor = sync.OnceValues(func() (string, error) {
	program := filepath.Join(programs, "mcpactor")
	args := []string{"build", "-o", program}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
		os.Setenv("GORACE", "halt_on_error=1")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if said, err := exec.CommandContext(ctx, "go", append(args, "../../cmd/mcpactor")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return program, nil
})

// mcpactor returns the path of the command. The time to build it does not count.
func (h *harness) mcpactor() string {
	h.t.Helper()
	began := time.Now()
	program, err := buildMcpactor()
	require.NoError(h.t, err)
	h.limit = h.limit.Add(time.Since(began))
	return program
}

// target is what a client connects to: a URL, or a command that it starts.
type target struct {
	url     string
	command []string
	env     map[string]string
}

// direct returns the target of a client that connects to a server itself.
func direct(server mcpbridge.Server) target {
	if server.URL != "" {
		return target{url: server.URL}
	}
	return target{command: append([]string{server.Command}, server.Args...), env: server.Env}
}

// served returns the target of a client that starts mcpactor serve in front of a server.
func (h *harness) served(server mcpbridge.Server, flags ...string) target {
	h.t.Helper()
	command := append([]string{h.mcpactor(), "serve", "--no-cache"}, flags...)
	if server.URL != "" {
		return target{command: append(command, server.URL)}
	}
	return target{command: append(append(command, "--", server.Command), server.Args...), env: server.Env}
}

// listened starts mcpactor serve in front of a server, and returns the target of clients over HTTP.
func (h *harness) listened(server mcpbridge.Server) target {
	h.t.Helper()
	address, err := freeport.Addr("127.0.0.1")
	require.NoError(h.t, err)
	at := h.served(server, "--listen", address)
	env := os.Environ()
	for name, value := range at.env {
		env = append(env, name+"="+value)
	}
	front := &remote{h: h, program: at.command[0], args: at.command[1:], address: address, env: env, output: filepath.Join(h.dir, "serve.output")}
	h.fronts = append(h.fronts, front)
	front.start()
	return target{url: "http://" + address + "/mcp"}
}

// running returns the processes of the servers, whoever has started them.
func (h *harness) running() (all []process) {
	for _, p := range ownDescendants() {
		for _, script := range h.scripts {
			if strings.HasPrefix(p.args, "node "+script) {
				all = append(all, p)
			}
		}
	}
	return all
}

// kill kills processes, and waits for their end.
func (h *harness) kill(victims []process) {
	h.t.Helper()
	require.NotEmpty(h.t, victims)
	for _, p := range victims {
		syscall.Kill(p.pid, syscall.SIGKILL)
	}
	h.eventually("they are gone", func() bool { return allEnded(victims) })
}

// serveServers are the servers behind mcpactor serve, with a call that each serves.
func serveServers(t *testing.T) map[string]func(h *harness) (server mcpbridge.Server, tool string, args arguments, want string) {
	chromium, err := exec.LookPath("chromium")
	require.NoError(t, err, "run tests/real/install")
	type served = func(h *harness) (mcpbridge.Server, string, arguments, string)
	echoes := func(at serverTransport) served {
		return func(h *harness) (mcpbridge.Server, string, arguments, string) {
			return h.serve("s", legacy, at), echo, hello, "Echo: hello"
		}
	}
	return map[string]served{
		"everything":           echoes(legacy.transports[0]),
		"everything over http": echoes(legacy.transports[1]),
		"everything over sse":  echoes(legacy.transports[2]),
		"everything behind nginx": func(h *harness) (mcpbridge.Server, string, arguments, string) {
			return h.behindNginx(h.serve("s", everything, everything.transports[1]), ""), echo, hello, "Echo: hello"
		},
		"memory": func(h *harness) (mcpbridge.Server, string, arguments, string) {
			program := serverProgram{script: "@modelcontextprotocol/server-memory/dist/index.js", env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(h.dir, "memory.json")}}
			return h.serve("s", program, stdio), "read_graph", arguments{}, "entities"
		},
		"filesystem": func(h *harness) (mcpbridge.Server, string, arguments, string) {
			program := serverProgram{script: "@modelcontextprotocol/server-filesystem/dist/index.js", args: []string{h.dir}}
			return h.serve("s", program, stdio), "write_file", arguments{"path": filepath.Join(h.dir, "a.txt"), "content": "text"}, "Successfully wrote"
		},
		"playwright": func(h *harness) (mcpbridge.Server, string, arguments, string) {
			program := serverProgram{script: "@playwright/mcp/cli.js", args: []string{"--headless", "--no-sandbox", "--isolated", "--executable-path", chromium}}
			return h.serve("s", program, stdio), "browser_navigate", arguments{"url": h.newSite().URL + "/page"}, "/page"
		},
	}
}

// Clients that nobody here wrote find behind mcpactor serve what the server itself shows them, and their calls work. With -short
// one client has all servers, and one server all clients.
func TestServeShowsClientsWhatServersHave(t *testing.T) {
	for name, behind := range serveServers(t) {
		for kind, connect := range otherClients {
			if testing.Short() && name != "everything" && kind != "typescript" {
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				needsClient(t, kind)
				h := newHarness(t)
				h.limit = time.Now().Add(2 * time.Minute) // the inspector is started for each of its three calls
				server, tool, args, want := behind(h)
				itself := server
				if server.URL != "" { // not all of them speak HTTP+SSE
					itself = h.serve("itself", everything, stdio)
				}
				itself.Env = server.Env
				c, other := connect(h, h.served(server)), connect(h, direct(itself))
				require.JSONEq(t, other.list("tools/list"), c.list("tools/list"))
				said, isError := c.call(tool, args)
				require.False(t, isError, said)
				require.Contains(t, said, want)
			})
		}
	}
}

// The server is killed between calls, or is away for a while: the client keeps its connection, and its calls work. If the
// session is gone, and may have had state of the client, the answer says so once.
func TestServeHidesThatAServerIsKilledOrAway(t *testing.T) {
	const gone = "has a new session"
	keepsState := []string{"filesystem", "playwright"} // the tools of the others only read
	for name, behind := range serveServers(t) {
		for kind, connect := range otherClients {
			if kind == inspector {
				continue // it is another client for each call
			}
			if name != "everything over http" && kind != "typescript" {
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				needsClient(t, kind)
				h := newHarness(t)
				h.limit = time.Now().Add(2 * time.Minute) // a browser is started three times
				server, tool, args, want := behind(h)
				c := connect(h, h.served(server))
				works := func() string {
					said, isError := c.call(tool, args)
					require.False(t, isError, said)
					require.Contains(t, said, want)
					return said
				}
				require.NotContains(t, works(), gone)
				for range 2 {
					h.kill(h.running())
					h.restartServers()
					require.Equal(t, slices.Contains(keepsState, name), strings.Contains(works(), gone))
					require.NotContains(t, works(), gone)
				}
				if server.URL == "" {
					return
				}
				h.kill(h.running())
				during := make(chan string, 1)
				go func() {
					said, isError := c.call(tool, args)
					during <- fmt.Sprint(said, isError)
				}()
				<-time.After(2 * time.Second)
				h.restartServers()
				require.Contains(t, <-during, want)
			})
		}
	}
}

// All servers of a file, one of which does not exist, for a client over stdio.
func TestServeOfAFileShowsAllServersThatWork(t *testing.T) {
	h := newHarness(t)
	file := filepath.Join(h.dir, "mcp.json")
	one, two := h.serve("one", everything, stdio), h.serve("two", everything, everything.transports[1])
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers": {
		"one": {"command": "node", "args": [%q]}, "two": {"url": %q}, "broken": {"command": "no-such-program"}, "off": {"command": "x", "disabled": true}}}`, one.Args[0], two.URL), 0o600))
	c := otherClients["typescript"](h, target{command: []string{h.mcpactor(), "serve", "--no-cache", "--config", file}})
	listed := c.list("tools/list")
	for _, server := range []string{"one", "two"} {
		require.Contains(t, listed, `"`+server+`__echo"`)
		said, isError := c.call(server+"__echo", hello)
		require.False(t, isError, said)
		require.Contains(t, said, "Echo: hello")
	}
	require.NotContains(t, listed, "broken__")
}

// Nothing is left of servers and their children when the client leaves, or mcpactor serve gets a signal, or is killed: also
// while a call runs.
func TestNothingIsLeftOfServe(t *testing.T) {
	for name, end := range map[string]func(h *harness, c otherClient){
		"the client leaves": func(_ *harness, c otherClient) { c.leave() },
		"a signal":          func(h *harness, _ otherClient) { h.signalServe(syscall.SIGTERM) },
		"killed":            func(h *harness, _ otherClient) { h.signalServe(syscall.SIGKILL) },
	} {
		for _, of := range []string{"everything", "playwright"} {
			t.Run(name+"/"+of, func(t *testing.T) {
				h := newHarness(t)
				server, tool, args, want := serveServers(t)[of](h)
				c := otherClients["typescript"](h, h.served(server))
				said, _ := c.call(tool, args)
				require.Contains(t, said, want)
				before := allButClients()
				require.NotEmpty(t, h.running())
				hanging := make(chan struct{})
				go func() {
					defer close(hanging)
					if of == "everything" {
						c.call(slow, arguments{"duration": 60, "steps": 1})
					} else {
						c.call(tool, arguments{"url": h.sites[0].URL + "/wait/"})
					}
				}()
				<-time.After(300 * time.Millisecond)
				began := time.Now()
				end(h, c)
				h.eventually("all are gone", func() bool { return len(allButClients()) == 0 && allEnded(before) })
				t.Logf("%d processes were gone after %v", len(before), time.Since(began).Round(10*time.Millisecond))
				<-hanging
			})
		}
	}
}

// allButClients returns the descendants of this process that are no clients.
func allButClients() []process {
	return slices.DeleteFunc(ownDescendants(), func(p process) bool { return strings.Contains(p.args, "/clients/typescript.mjs") })
}

// signalServe sends a signal to each process of mcpactor serve.
func (h *harness) signalServe(signal syscall.Signal) {
	h.t.Helper()
	program, err := buildMcpactor()
	require.NoError(h.t, err)
	sent := 0
	for _, p := range ownDescendants() {
		if strings.HasPrefix(p.args, program+" serve") {
			require.NoError(h.t, syscall.Kill(p.pid, signal))
			sent++
		}
	}
	require.Positive(h.t, sent)
}
