package inputs_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
	"github.com/mcpactor/mcpactor/config"
)

// openTerminal returns the two ends of a terminal.
func openTerminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { user.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { program.Close() })
	return user, program
}

// The answer to a password is not shown, and what follows it is left for the requests.
func TestInputIsAskedForOnATerminal(t *testing.T) {
	user, program := openTerminal(t)
	loader := inputs.NewLoader(inputs.Flags{}, &cli.Program{In: program, Err: program})
	shown := bufio.NewReader(user)
	says := func(want, answer string) {
		prompt := make([]byte, len(want))
		for n := 0; n < len(want); {
			read, err := shown.Read(prompt[n:])
			require.NoError(t, err)
			n += read
		}
		require.Equal(t, want, string(prompt))
		_, err := user.WriteString(answer)
		require.NoError(t, err)
	}
	ask := func(in config.Input) <-chan string {
		value := make(chan string, 1)
		go func() {
			text, ok := loader.Value(in)
			value <- fmt.Sprint(text, " ", ok)
		}()
		return value
	}
	value := ask(config.Input{ID: "key", Description: "The\x1b key", Password: true})
	says("The key (key): ", "")
	require.Eventually(t, func() bool {
		mode, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
		return err == nil && mode.Lflag&unix.ECHO == 0
	}, 10*time.Second, time.Millisecond)
	_, err := user.WriteString("s3cret\n")
	require.NoError(t, err)
	require.Equal(t, "s3cret true", <-value)
	says("\r\n", "") // and no echo
	require.Equal(t, "s3cret true", <-ask(config.Input{ID: "key"}), "it is asked for once")

	mode := config.Input{ID: "mode", Default: "slow", Options: []string{"slow", "fast"}}
	value = ask(mode)
	says("mode, one of slow, fast, default slow: ", "none\n")
	says("none\r\nmode, one of slow, fast, default slow: ", "\nrest\n")
	require.Equal(t, "slow true", <-value)
	rest := make([]byte, 10)
	n, err := program.Read(rest)
	require.NoError(t, err)
	require.Equal(t, "rest", strings.TrimSpace(string(rest[:n])))
}

// A whole command on a terminal: it asks, and the server gets the answer, which is not shown.
func TestCommandOnATerminalAsksAndUsesTheAnswer(t *testing.T) {
	server := servertest.NewTools()
	mcp.AddTool(server, &mcp.Tool{Name: "key"}, func(_ context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: req.Extra.Header.Get("X-Key")}}}, nil, nil
	})
	config := servertest.File(t, fmt.Sprintf(`{"inputs": [{"id": "key", "type": "promptString", "description": "The key", "password": true}],
		"servers": {"one": {"url": %q, "headers": {"X-Key": "${input:key}"}}}}`, servertest.Serve(t, server)))
	user, program := openTerminal(t)
	var out strings.Builder
	status := make(chan int, 1)
	go func() { status <- run([]string{"call", "--config", config, "one", "key"}, program, &out, program) }()
	prompt := make([]byte, len("The key (key): "))
	_, err := io.ReadFull(user, prompt)
	require.NoError(t, err)
	require.Equal(t, "The key (key): ", string(prompt))
	require.Eventually(t, func() bool {
		mode, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
		return err == nil && mode.Lflag&unix.ECHO == 0
	}, 10*time.Second, time.Millisecond)
	_, err = user.WriteString("s3cret\n")
	require.NoError(t, err)
	require.Equal(t, cli.ExitOK, <-status)
	require.Equal(t, "s3cret\n", out.String())
	_, err = program.WriteString("END")
	require.NoError(t, err)
	shown, err := bufio.NewReader(user).ReadString('D')
	require.NoError(t, err)
	require.NotContains(t, shown, "s3cret")
}
