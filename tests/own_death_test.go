package tests

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/tests/internal/stdioserver"
	"github.com/mcpactor/mcpactor/tests/taskserver"
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

// askerVar is an environment variable with which this test binary runs runAsker. Its value is the URL of a server of tasks,
// a space, and the file of a store.
const askerVar = "MCPACTOR_TEST_ASKER"

// runAsker is a program with a supervisor, which calls a tool that becomes a task. It prints a line when the task is
// followed, and waits to be killed.
func runAsker(value string) {
	url, file, _ := strings.Cut(value, " ")
	store, err := resume.Open(file, resume.Config{})
	exitOnError(err)
	system := actor.NewActorSystem(quietLog)
	system.EventStream.Subscribe(func(event any) {
		if e, is := event.(*messages.TaskChanged); is && e.Message != "" {
			fmt.Println("at it")
		}
	})
	sup, err := supervisor.Start(system, askerConfig(url, store))
	exitOnError(err)
	_, err = sup.Client().Do(context.Background(), theReport())
	exitOnError(err)
}

// askerConfig is the configuration of the program, and of the one after it.
func askerConfig(url string, store mcpbridge.Store) supervisor.Config {
	return supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", URL: url}}, Capabilities: declaring(), Store: store, CallTimeout: time.Minute}
}

// theReport is the call of both.
func theReport() *messages.CallTool {
	report := &messages.CallTool{Header: messages.To("s", "a"), Durable: true, Params: &mcp.CallToolParams{
		Name: "report", Arguments: map[string]any{"call": "report-7", "scope": "a"},
	}}
	report.ID = "report-7"
	return report
}

// E10
func TestDurableCallOutlivesOurOwnDeath(t *testing.T) {
	tasks := taskserver.New()
	tasks.Poll = 50 * time.Millisecond
	server, err := faults.Serve(tasks.Handler)
	require.NoError(t, err)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "store")
	asker := exec.Command(os.Args[0])
	asker.Env = append(os.Environ(), askerVar+"="+server.URL()+"/mcp "+file)
	out, err := asker.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, asker.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "at it\n", line)
	require.NoError(t, asker.Process.Kill())
	require.Error(t, asker.Wait())
	require.NoError(t, server.Restart(), "the server dies as well")

	store, err := resume.Open(file, resume.Config{})
	require.NoError(t, err)
	h := start(t, askerConfig(server.URL()+"/mcp", store))
	p := h.send(theReport())
	require.Equal(t, "worked", p.text())
	h.executed = nil // the run was asked for by the other process
	h.stopAndVerify()
	require.NoError(t, store.Close())
	require.Equal(t, 1, tasks.Runs()["report-7"])
	require.Empty(t, tasks.Wrong())
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
