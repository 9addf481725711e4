package tests

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/internal/stdioserver"
)

// ownerVar is an environment variable with which this test binary runs runOwner. Its value
// is the directory for the records of the server.
const ownerVar = "MCPACTOR_TEST_OWNER"

// runOwner is a program with a supervisor. It opens a session with a process that ignores
// SIGTERM, prints the process ids of that process and of its child, and waits to be killed.
func runOwner(dir string) {
	os.Unsetenv(ownerVar)
	server, err := stdioserver.New(dir, stdioserver.Stubborn).Server("s")
	exitOnError(err)
	sup, err := supervisor.Start(actor.NewActorSystem(quietLog), supervisor.Config{Servers: []mcpbridge.Server{server}})
	exitOnError(err)
	for _, tool := range []string{"pid", "spawn"} {
		r, err := sup.Client().CallTool(context.Background(), "s", "a", &mcp.CallToolParams{Name: tool})
		exitOnError(err)
		fmt.Println(r.Result.Content[0].(*mcp.TextContent).Text)
	}
	select {}
}

func exitOnError(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// E9
func TestNoServerOutlivesOurOwnDeath(t *testing.T) {
	before := resourcesInUse()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVar+"="+t.TempDir())
	out, err := owner.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	var pids []int
	for lines := bufio.NewScanner(out); len(pids) < 2 && lines.Scan(); {
		pid, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
		require.NoError(t, err, lines.Text())
		require.True(t, alive(pid))
		pids = append(pids, pid)
	}
	require.Len(t, pids, 2)
	require.NoError(t, owner.Process.Kill())
	require.Error(t, owner.Wait())
	for _, pid := range pids {
		requireExit(t, pid)
	}
	before.verify(t)
}
