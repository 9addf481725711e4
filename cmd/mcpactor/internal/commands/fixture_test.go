package commands

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
)

func TestMain(m *testing.M) {
	servertest.RunIfScripted()
	if os.Getenv(stdioVar) != "" {
		servertest.NewTools("plain", "bad.name").Run(context.Background(), &mcp.StdioTransport{})
		return
	}
	servertest.RunTests(m)
}

// run runs a command as a program does, and returns the exit status.
func run(args []string, in io.Reader, out, log io.Writer) (status int) {
	program := &cli.Program{Name: "mcpactor", In: in, Out: out, Err: log}
	return program.Run(&struct {
		Tools  Tools  `cmd:""`
		Call   Call   `cmd:""`
		Doctor Doctor `cmd:""`
		Login  Login  `cmd:""`
		Logout Logout `cmd:""`
		Pin    Pin    `cmd:""`
	}{}, args)
}
