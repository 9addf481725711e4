package inputs_test

import (
	"io"
	"testing"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/commands"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/exec"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
)

func TestMain(m *testing.M) { servertest.RunTests(m) }

// run runs a command as a program does, and returns the exit status.
func run(args []string, in io.Reader, out, log io.Writer) (status int) {
	program := &cli.Program{Name: "mcpactor", In: in, Out: out, Err: log}
	return program.Run(&struct {
		Exec  exec.Exec      `cmd:""`
		Tools commands.Tools `cmd:""`
		Call  commands.Call  `cmd:""`
	}{}, args)
}
