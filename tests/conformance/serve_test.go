//go:build conformance

package conformance

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/freeport"
)

// exampleServer is the server of the SDK for Go that has what the suites for servers ask for.
const exampleServer = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"

// serverSuites are the suites for servers: all scenarios for protocols with sessions, and those of 2026-07-28, which has none.
var serverSuites = []struct {
	release   string
	args      []string
	stateless bool
	checks    int // at least
}{
	{"0.1.16", []string{"--suite", "all"}, false, 35},
	{"0.2.0-alpha.12", []string{"--requirements", "2025-11-25"}, false, 35},
	{"0.2.0-alpha.12", []string{"--requirements", "2026-07-28"}, true, 100},
}

// The official suites for servers find behind mcpactor serve what they find when they connect to the server itself,
// whether serve starts the server or connects to it: each check that passes there passes here, and no other one fails.
func TestServeConformsAsTheServerItself(t *testing.T) {
	server, mcpactor := build(t, exampleServer), build(t, "../../cmd/mcpactor")
	for _, suite := range serverSuites {
		t.Run(suite.release+"/"+suite.args[1], func(t *testing.T) {
			stateless := fmt.Sprintf("-stateless=%v", suite.stateless)
			itself, behind, command, url := freeAddress(t), freeAddress(t), freeAddress(t), freeAddress(t)
			listen(t, itself, server, "-http", itself, stateless)
			listen(t, behind, server, "-http", behind, stateless)
			listen(t, command, mcpactor, "serve", "--no-cache", "--listen", command, "--", server)
			listen(t, url, mcpactor, "serve", "--no-cache", "--listen", url, "http://"+behind+"/")
			want := statuses(t, suite.release, suite.args, "http://"+itself+"/")
			require.Greater(t, len(want), suite.checks)
			for name, address := range map[string]string{"a command": command, "a URL": url} {
				t.Run(name, func(t *testing.T) {
					served := statuses(t, suite.release, suite.args, "http://"+address+"/mcp")
					require.Empty(t, differences(want, served))
					t.Logf("%d checks", len(served))
				})
			}
		})
	}
}

// The scenarios of tasks find behind mcpactor serve what they find at the server of tasks itself.
func TestServeConformsWithTasks(t *testing.T) {
	itself := taskServer(t)
	address := freeAddress(t)
	listen(t, address, build(t, "../../cmd/mcpactor"), "serve", "--no-cache", "--listen", address, itself)
	for _, scenario := range taskScenarios(t) {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			args := []string{"--scenario", scenario}
			require.Empty(t, differences(statuses(t, tasksRelease, args, itself), statuses(t, tasksRelease, args, "http://"+address+"/mcp")))
		})
	}
}

// different are the checks that may have another status behind mcpactor serve, each with its reason.
var different = map[string]struct{ status, reason string }{
	"server-sse-multiple-streams server-sse-streams-functional": {statusNote, "serve answers with JSON if nothing comes before the result: then the suite has no streams to check"},
	"server-stateless sep-2575-server-sends-tools-list-changed-on-subscription": {
		"WARNING", "the tool that the suite adds is there since another check has added it, and serve does not say that a list has changed that is the same",
	},
}

// differences returns the checks that are worse behind mcpactor serve than at the server itself.
func differences(itself, served map[string]string) map[string]string {
	wrong := map[string]string{}
	for check, status := range served {
		if allowed, is := different[check]; is && allowed.status == status {
			served[check] = itself[check]
		}
	}
	for check, status := range itself {
		if status == statusPassed && served[check] != statusPassed {
			wrong[check] = served[check]
		}
	}
	for check, status := range served {
		if status != statusPassed && status != statusNote && itself[check] != status {
			wrong[check] = status
		}
	}
	return wrong
}

// build builds a program, and returns its path.
func build(t *testing.T, pkg string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	said, err := exec.CommandContext(ctx, "go", "build", "-o", program, pkg).CombinedOutput()
	require.NoError(t, err, "%s", said)
	return program
}

// freeAddress returns an address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.Addr("127.0.0.1")
	require.NoError(t, err)
	return address
}

// listen starts a program that listens on an address, until the end of the test.
func listen(t *testing.T, address, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		return err == nil && conn.Close() == nil
	}, 20*time.Second, 20*time.Millisecond)
}

// statuses runs a suite against a server, and returns the status of each check: of those that are reported more than once,
// the worst.
func statuses(t *testing.T, release string, suite []string, url string) map[string]string {
	t.Helper()
	outcomes, said := runSuite(t, ".", release, append([]string{"server", "--url", url}, suite...))
	require.NotEmpty(t, outcomes, "%s", said)
	all := map[string]string{}
	for _, o := range outcomes {
		for _, c := range o.checks {
			name := strings.TrimPrefix(o.scenario, "server-") + " " + c.ID
			if before := all[name]; before == "" || before == statusPassed {
				all[name] = c.Status
			}
		}
	}
	return all
}
