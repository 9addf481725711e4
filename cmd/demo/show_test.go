package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/internal/cli"
)

func TestMain(m *testing.M) {
	if os.Getenv(processLogVar) != "" { // the show starts this binary as its stdio server
		os.Exit(newProgram().Run(&commands{}, []string{"serve"}))
	}
	if os.Getenv(memberVar) != "" { // and as the members of its cluster
		os.Exit(newProgram().Run(&commands{}, []string{"member"}))
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"))
}

// run runs the program, and returns its exit status and its output.
func run(args ...string) (status int, stdout, stderr string) {
	var out, log bytes.Buffer
	program := newProgram()
	program.In, program.Out, program.Err = &bytes.Buffer{}, &out, &log
	status = program.Run(&commands{}, args)
	return status, out.String(), log.String()
}

func TestShowHoldsItsClaims(t *testing.T) {
	status, stdout, stderr := run("--duration", "2s", "--agents", "12", "--max-sessions", "8")
	require.Equal(t, cli.ExitOK, status, stdout+stderr)
	require.Contains(t, stdout, "ok        no call ran twice")
}

// The show with --listen goes on until it is stopped.
func TestShowListensUntilItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out, print := io.Pipe()
	program := newProgram()
	program.Out, program.Err = print, print
	show := &showCmd{Agents: 6, MaxSessions: 4, Listen: "127.0.0.1:0"}
	ended := make(chan error, 1)
	go func() {
		defer print.Close()
		ended <- show.run(ctx, program)
	}()
	defer func() { // also when the test fails
		stop()
		io.Copy(io.Discard, out)
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var report strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		report.WriteString(line + "\n")
		if _, url, found := strings.Cut(line, "the sessions are shown at "); found {
			resp, err := client.Get(url)
			require.NoError(t, err)
			resp.Body.Close()
			require.Equal(t, http.StatusOK, resp.StatusCode)
		}
		if strings.Contains(line, "rebuilt after") { // a fault was injected, and the session is back
			stop()
		}
	}
	stop()
	require.NoError(t, <-ended, report.String())
	require.Contains(t, report.String(), "ok        every call got exactly one reply")
	require.Contains(t, report.String(), "ok        no goroutine was left over")
}

// While the HTTP server restarts, its port is nobody else's.
func TestHTTPServerKeepsItsPort(t *testing.T) {
	s, err := newHTTPServer(func(string) {})
	require.NoError(t, err)
	get := func() error {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + s.addr)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	require.NoError(t, get())
	s.stop()
	_, err = net.Listen("tcp", s.addr)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.NoError(t, s.start())
	require.NoError(t, get())
	require.NoError(t, s.restart())
	require.NoError(t, get())
	s.close()
	require.ErrorIs(t, get(), syscall.ECONNREFUSED)
}

func TestInvalidUsageExitsWithTwo(t *testing.T) {
	for want, args := range map[string][]string{
		"unknown flag --nonsense":        {"--nonsense"},
		"--agents: 1 is not from 3":      {"--agents", "1"},
		"--duration: 1ms is not from 1s": {"--duration", "1ms"},
		"the command serve is started":   {"serve"},
		"the command member is started":  {"member"},
		"--agents: 2 is not from 3":      {"cluster", "--agents", "2"},
		"--listen: address none":         {"cluster", "--listen", "none"},
		"--listen: listen tcp":           {"--listen", "127.0.0.1:none"},
	} {
		status, stdout, stderr := run(args...)
		require.Equal(t, cli.ExitUsage, status, want)
		require.Contains(t, stderr, want)
		require.Empty(t, stdout, want)
	}
}

func TestMovedCommandsWorkAndNameTheNewProgram(t *testing.T) {
	server := newCounterServer(func(string) {})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	config := filepath.Join(t.TempDir(), "servers.json")
	require.NoError(t, os.WriteFile(config, []byte(fmt.Sprintf(`{"mcpServers": {"s": {"url": %q}}}`, web.URL)), 0o600))
	for name, c := range map[string]struct {
		args   []string
		status int
		stdout string
	}{
		"exec":  {[]string{"--config", config}, cli.ExitOK, `{"id":1,"ok":true,"generation":1,"replayed":false,"result":{"content":[{"type":"text","text":"1"}]}}`},
		"tools": {[]string{"--config", config, "--json"}, cli.ExitOK, `"name":"s__add"`},
		"bench": {[]string{"report", "/no/such/file"}, cli.ExitFailed, ""},
	} {
		var out, log bytes.Buffer
		program := newProgram()
		program.In, program.Out, program.Err = strings.NewReader(`{"id":1,"server":"s","tool":"add","arguments":{"call":"x"}}`), &out, &log
		require.Equal(t, c.status, program.Run(&commands{}, append([]string{name}, c.args...)), log.String())
		require.Contains(t, out.String(), c.stdout)
		require.Equal(t, 1, strings.Count(log.String(), fmt.Sprintf(`demo: "demo %s" is deprecated: use "mcpactor %[1]s"`, name)), log.String())
	}
}

func TestHelpExplainsTheFlagsOfTheShowsOnly(t *testing.T) {
	status, stdout, _ := run("--help")
	require.Equal(t, cli.ExitOK, status)
	for _, flag := range []string{"--duration", "--agents", "--max-sessions", "--seed", "--plain", "demo show [flags]", "demo cluster [flags]"} {
		require.Contains(t, stdout, flag)
	}
	for _, hidden := range []string{"exec", "tools", "bench", "--config", "demo serve", "demo member"} {
		require.NotContains(t, stdout, hidden)
	}
}
