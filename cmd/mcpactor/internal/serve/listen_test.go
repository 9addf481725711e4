package serve

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/internal/freeport"
)

// programVar makes the test binary the program.
const programVar = "MCPACTOR_SERVE_TEST_PROGRAM"

func runProgram() {
	var program struct {
		Serve Serve `cmd:""`
	}
	p := &cli.Program{Name: "mcpactor", In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	os.Exit(p.Run(&program, os.Args[1:]))
}

// listening starts the program in a process of its own, and waits until it listens. end kills it.
func listening(t *testing.T, address string, args ...string) (end func() (said string)) {
	self, err := os.Executable()
	require.NoError(t, err)
	var said bytes.Buffer
	cmd := exec.Command(self, append([]string{"serve", "--listen", address}, args...)...)
	cmd.Env = append(os.Environ(), programVar+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	end = func() string {
		cmd.Process.Kill()
		<-ended
		return said.String()
	}
	for range 1000 {
		resp, err := http.Get("http://" + address + "/livez")
		if err == nil {
			resp.Body.Close()
			return end
		}
		select {
		case <-ended:
			require.Fail(t, "it has ended", said.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	end()
	require.Fail(t, "it does not listen")
	return nil
}

// Killing the program ends nobody: a client goes on with the next process, whose servers it then has. Only the user can read what
// is kept.
func TestClientsGoOnAfterTheProgramIsKilled(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cache := filepath.Join(t.TempDir(), "cache")
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("LocalAppData", cache)
	t.Setenv("HOME", cache)
	address, err := freeport.Addr("127.0.0.1")
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {"s": {"command": %q, "env": {%q: %q}}}, "supervisor": {"store": "unused.db"}}`, self, recordVar, filepath.Join(t.TempDir(), "called")), 0o600))
	end := listening(t, address, "--config", config)
	defer func() {
		if said := end(); t.Failed() {
			t.Log(said)
		}
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://" + address + "/mcp", MaxRetries: 20}, nil)
	require.NoError(t, err)
	defer session.Close()
	call := func() string {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "s__write"})
		require.NoError(t, err)
		require.Len(t, result.Content, 1)
		return result.Content[0].(*mcp.TextContent).Text
	}
	require.Equal(t, "write", call())
	require.Contains(t, end(), "its store is not used")
	end = listening(t, address, "--config", config)
	require.True(t, strings.HasPrefix(call(), "write\n\nNote: server \"s\" has a new session."))
	require.Equal(t, "write", call())

	// Another process at the same address does not take the store away.
	var said bytes.Buffer
	var program struct {
		Serve Serve `cmd:""`
	}
	p := &cli.Program{Name: "mcpactor", In: &said, Out: &said, Err: &said}
	require.NotEqual(t, cli.ExitOK, p.Run(&program, []string{"serve", "--listen", address, "--", self}))
	require.Contains(t, said.String(), "another mcpactor serve listens at "+address)

	require.NoError(t, filepath.WalkDir(filepath.Join(cache, "mcpactor"), func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		require.True(t, runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0, path)
		return nil
	}))
	end()
	end = listening(t, address, "--config", config, "--no-cache")
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "s__write"})
	require.Error(t, err, "nothing is kept without a store")
}
