package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/internal/leaktest"
)

func TestMain(m *testing.M) {
	if os.Getenv(processLogVar) != "" { // the show starts this binary as its stdio server
		os.Exit(newProgram().Run(&commands{}, []string{"serve"}))
	}
	goleak.VerifyTestMain(m, leaktest.Throttle...)
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
	require.Contains(t, stdout, "✓  no call ran twice")
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
	require.Contains(t, report.String(), "✓  every call got exactly one reply")
	require.Contains(t, report.String(), "✓  no goroutine was left over")
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
		"the port must be a number":      {"--listen", "127.0.0.1:none"},
	} {
		status, stdout, stderr := run(args...)
		require.Equal(t, cli.ExitUsage, status, want)
		require.Contains(t, stderr, want)
		require.Empty(t, stdout, want)
	}
}

func TestHelpExplainsTheFlagsOfTheShowsOnly(t *testing.T) {
	status, stdout, _ := run("--help")
	require.Equal(t, cli.ExitOK, status)
	for _, flag := range []string{"--duration", "--agents", "--max-sessions", "--seed", "--plain"} {
		require.Contains(t, stdout, flag)
	}
	for _, hidden := range []string{"demo serve"} {
		require.NotContains(t, stdout, hidden)
	}
}
