package inputs_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/commands"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/exec"
)

func TestMain(m *testing.M) {
	os.Setenv("XDG_CONFIG_HOME", filepath.Join(os.TempDir(), "mcpactor-without-logins")) // one of the user may be for the port of a test
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"))
}

// run runs a command as a program does, and returns the exit status.
func run(args []string, in io.Reader, out, log io.Writer) (status int) {
	program := &cli.Program{Name: "mcpactor", In: in, Out: out, Err: log}
	return program.Run(&struct {
		Exec  exec.Exec      `cmd:""`
		Tools commands.Tools `cmd:""`
		Call  commands.Call  `cmd:""`
	}{}, args)
}
