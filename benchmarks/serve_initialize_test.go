package benchmarks

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkServeInitialize measures how long mcpactor serve takes to answer initialize when the lists of its server are in the
// cache, while the server starts for an hour, or cannot be started. Over stdio, start-ms is the time until mcpactor itself has
// started: it answers a ping. Over HTTP it runs, and another client waits for the same server.
func BenchmarkServeInitialize(b *testing.B) {
	mcpactor, err := buildMcpactor()
	require.NoError(b, err)
	script := filepath.Join(b.TempDir(), "server.sh")
	become := func(line string) { require.NoError(b, os.WriteFile(script, []byte("#!/bin/sh\n"+line+"\n"), 0o700)) }
	b.Setenv("HOME", b.TempDir())
	b.Setenv("XDG_CACHE_HOME", b.TempDir())
	byCommand := []string{mcpactor, "serve", "--log-level", "error", "--", script}

	become("exec '" + self + "' " + serveStdio + ` "" ""`)
	first, err := overCommand(byCommand).open(b.Context())
	require.NoError(b, err)
	first.close()
	initializeOverStdio(b, byCommand) // another client: it says other things of itself, for which servers may list other things

	for name, line := range map[string]string{"starting": "exec sleep 3600", "down": "exit 1"} {
		become(line)
		b.Run("how=stdio/server="+name, func(b *testing.B) {
			var starts, answers []time.Duration
			for b.Loop() {
				start, answer := initializeOverStdio(b, byCommand)
				starts, answers = append(starts, start), append(answers, answer)
			}
			b.ReportMetric(medianOf(starts), "start-ms")
			b.ReportMetric(medianOf(answers), "initialize-ms")
			b.ReportMetric(0, "ns/op")
		})
		b.Run("how=http/server="+name, func(b *testing.B) {
			url, end, err := startListening(func(port string) []string {
				return []string{mcpactor, "serve", "--log-level", "error", "--listen", "127.0.0.1:" + port, "--", script}
			})
			require.NoError(b, err)
			defer end()
			open := dialsHTTP(url, tuned, false, protocolWithSessions)
			caller, err := open(b.Context())
			require.NoError(b, err)
			defer caller.close()
			go caller.call(context.Background())
			time.Sleep(time.Second) // the server is being started for the call
			var answers []time.Duration
			for b.Loop() {
				began := time.Now()
				s, err := open(b.Context())
				answers = append(answers, time.Since(began))
				require.NoError(b, err)
				s.close()
			}
			b.ReportMetric(medianOf(answers), "initialize-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// initializeOverStdio starts a gateway, and returns how long it takes to start, and then to answer initialize.
func initializeOverStdio(b *testing.B, command []string) (start, answer time.Duration) {
	cmd := exec.Command(command[0], command[1:]...)
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	lines := bufio.NewScanner(out)
	ask := func(line string) time.Duration {
		began := time.Now()
		_, err := io.WriteString(in, line+"\n")
		require.NoError(b, err)
		require.True(b, lines.Scan())
		require.Contains(b, lines.Text(), `"result"`)
		return time.Since(began)
	}
	began := time.Now()
	require.NoError(b, cmd.Start())
	ask(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	start = time.Since(began)
	answer = ask(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	require.Contains(b, lines.Text(), `"name":"bench"`, "the lists are known")
	in.Close()
	cmd.Wait()
	return start, answer
}

// medianOf returns the median of durations, in milliseconds.
func medianOf(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Microseconds()) / 1000
}
