package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// buildMcpactor builds the command mcpactor, and returns its path.
var buildMcpactor = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "mcpactor-bench")
	if err != nil {
		return "", err
	}
	program := filepath.Join(folder, "mcpactor")
	if said, err := exec.Command("go", "build", "-C", "..", "-o", program, "./cmd/mcpactor").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return program, nil
})

// gateways are the command lines of programs that a client starts in place of a server at a URL.
func gateways(b *testing.B, url string) map[string][]string {
	if !nodeInstalled() {
		b.Skip("run make bench-others")
	}
	mcpactor, err := buildMcpactor()
	require.NoError(b, err)
	return map[string][]string{
		"mcpactor":     {mcpactor, "serve", "--no-cache", url},
		"mcp-remote":   {"node", "node/node_modules/mcp-remote/dist/proxy.js", url, "--transport", "http-only", "--silent"},
		"supergateway": {"node", "node/node_modules/supergateway/dist/index.js", "--streamableHttp", url, "--logLevel", "none"},
	}
}

// overCommand is the way over the stdio of a command.
func overCommand(command []string) route {
	return route{name: "stdio", open: func(ctx context.Context) (session, error) {
		return connect(ctx, &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...)}, protocolWithSessions)
	}}
}

// BenchmarkServe measures calls through mcpactor serve, beside a direct connection and other gateways. The client and the server
// are the same in all. With server=http the client starts the gateway, with server=stdio the gateway starts the server: the direct
// connection is over stdio then, and one is served over stdio and one over HTTP.
func BenchmarkServe(b *testing.B) {
	through := func(command []string) func(route) (client, error) {
		return func(route) (client, error) { return openBare(overCommand(command)) }
	}
	for _, callers := range []int{1, 32} {
		remote := dialsHTTP(origin+pathJSON, tuned, false, protocolWithSessions)
		all := []contender{{"direct", func(route) (client, error) { return openBare(route{open: remote}) }}}
		commands := gateways(b, origin+pathJSON)
		for _, how := range []string{"mcpactor", "mcp-remote", "supergateway"} {
			all = append(all, contender{how, through(commands[how])})
		}
		b.Run(fmt.Sprintf("server=http/callers=%d", callers), func(b *testing.B) {
			compare(b, route{}, all, func(b *testing.B, c client) { measureCalls(b, callers, c) })
		})
	}
	for _, callers := range []int{1, 32} {
		server := []string{self, serveStdio, "", ""}
		mcpactor, err := buildMcpactor()
		require.NoError(b, err)
		all := []contender{
			{"direct", through(server)},
			{"mcpactor", through(append([]string{mcpactor, "serve", "--no-cache", "--"}, server...))},
			{"mcpactor-http", listening(func(port string) []string {
				return append([]string{mcpactor, "serve", "--no-cache", "--listen", "127.0.0.1:" + port, "--"}, server...)
			}, openHTTP)},
			{"supergateway-http", listening(func(port string) []string {
				return []string{
					"node", "node/node_modules/supergateway/dist/index.js", "--stdio", self + ` serve-stdio "" ""`, "--port", port,
					"--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none",
				}
			}, openHTTP)},
		}
		b.Run(fmt.Sprintf("server=stdio/callers=%d", callers), func(b *testing.B) {
			compare(b, route{}, all, func(b *testing.B, c client) { measureCalls(b, callers, c) })
		})
	}
}

// listener is a client of a gateway that listens.
type listener struct {
	client
	end func()
}

func (l listener) close() { l.client.close(); l.end() }

// openHTTP opens sessions of the SDK at a URL.
func openHTTP(url string) (client, error) {
	return openBare(route{open: dialsHTTP(url, tuned, false, protocolWithSessions)})
}

// listening starts a gateway that listens, and connects to it.
func listening(command func(port string) []string, open func(url string) (client, error)) func(route) (client, error) {
	return func(route) (client, error) {
		url, end, err := startListening(command)
		if err != nil {
			return nil, err
		}
		c, err := open(url)
		return listener{c, end}, err
	}
}

// startListening starts a gateway, and waits until it listens.
func startListening(command func(port string) []string) (url string, end func(), err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	port := strconv.Itoa(free.Addr().(*net.TCPAddr).Port)
	free.Close()
	args := command(port)
	cmd := exec.Command(args[0], args[1:]...)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			return "http://127.0.0.1:" + port + "/mcp", end, conn.Close()
		}
		if time.Now().After(deadline) {
			end()
			return "", nil, err
		}
	}
}

// BenchmarkServeMemory measures the memory of gateways between 20 clients and a server at a URL, after a call of each client:
// 20 gateways that the clients start, and one that listens for all. Memory is what the processes have for themselves, and their
// parts of what they share (Pss). It needs Linux.
func BenchmarkServeMemory(b *testing.B) {
	const clients = 20
	if _, err := pss(os.Getpid()); err != nil {
		b.Skip(err)
	}
	measure := func(b *testing.B, open func(context.Context) (session, error), running func() []int) {
		for b.Loop() {
			var all []session
			for range clients {
				s, err := open(b.Context())
				require.NoError(b, err)
				all = append(all, s)
				require.NoError(b, s.call(b.Context()))
			}
			total := 0
			for _, pid := range running() {
				size, err := pss(pid)
				require.NoError(b, err)
				total += size
			}
			b.ReportMetric(float64(total)/1024, "MB")
			b.ReportMetric(0, "ns/op")
			var left sync.WaitGroup
			for _, s := range all {
				left.Go(s.close)
			}
			left.Wait()
		}
	}
	url := origin + pathJSON
	commands := gateways(b, url)
	for _, how := range []string{"mcpactor", "mcp-remote", "supergateway"} {
		b.Run("how="+how, func(b *testing.B) {
			measure(b, overCommand(commands[how]).open, func() []int { return matching(b, strings.Join(commands[how], "\x00")) })
		})
	}
	b.Run("how=mcpactor-http", func(b *testing.B) {
		var command []string
		at, end, err := startListening(func(port string) []string {
			command = []string{commands["mcpactor"][0], "serve", "--no-cache", "--listen", "127.0.0.1:" + port, url}
			return command
		})
		require.NoError(b, err)
		defer end()
		measure(b, dialsHTTP(at, tuned, false, protocolWithSessions), func() []int { return matching(b, strings.Join(command, "\x00")) })
	})
}

// matching returns the processes with a command line.
func matching(b *testing.B, command string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	require.NoError(b, err)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.TrimRight(string(line), "\x00") == command {
			pids = append(pids, pid)
		}
	}
	require.NotEmpty(b, pids)
	return pids
}

// pss returns the proportional set size of a process, in KiB.
func pss(pid int) (size int, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, its := strings.CutPrefix(line, "Pss:"); its {
			_, err = fmt.Sscanf(rest, "%d", &size)
			return size, err
		}
	}
	return 0, errors.New("there is no Pss")
}
