//go:build conformance

package conformance

import (
	"context"
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

// serverSuites are the suites for servers: all scenarios for protocols with sessions.
var serverSuites = map[string][]string{
	"0.1.16":         {"--suite", "all"},
	"0.2.0-alpha.12": {"--requirements", "2025-11-25"},
}

// The official suites for servers find behind mcpactor serve what they find when they connect to the server itself,
// whether serve starts the server or connects to it: each check that passes there passes here, and no other one fails.
func TestServeConformsAsTheServerItself(t *testing.T) {
	folder := t.TempDir()
	server, mcpactor := filepath.Join(folder, "server"), filepath.Join(folder, "mcpactor")
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	for program, pkg := range map[string]string{server: exampleServer, mcpactor: "../../cmd/mcpactor"} {
		said, err := exec.CommandContext(ctx, "go", "build", "-o", program, pkg).CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
	addresses := make([]string, 3)
	for i := range addresses {
		address, err := freeport.Addr("127.0.0.1")
		require.NoError(t, err)
		addresses[i] = address
	}
	listen(t, addresses[0], server, "-http", addresses[0], "-stateless=false")
	listen(t, addresses[1], mcpactor, "serve", "--no-cache", "--listen", addresses[1], "--", server)
	listen(t, addresses[2], mcpactor, "serve", "--no-cache", "--listen", addresses[2], "http://"+addresses[0]+"/")
	for release, suite := range serverSuites {
		itself := statuses(t, release, suite, "http://"+addresses[0]+"/")
		require.Greater(t, len(itself), 35)
		for name, address := range map[string]string{"a command": addresses[1], "a URL": addresses[2]} {
			t.Run(release+"/"+name, func(t *testing.T) {
				served := statuses(t, release, suite, "http://"+address+"/mcp")
				wrong := map[string]string{}
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
				require.Empty(t, wrong)
				t.Logf("%d checks", len(served))
			})
		}
	}
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
