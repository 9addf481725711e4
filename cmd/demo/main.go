// Command demo shows supervised sessions at work: agents call tools on two servers while
// faults are injected. At the end it checks that every guarantee holds, and fails if one does not.
//
//	go run ./cmd/demo
//
// The batch runner is the command mcpactor.
package main

import (
	"os"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
)

// commands are the commands of the program.
type commands struct {
	Show  showCmd  `cmd:"" default:"withargs" help:"Run agents on two servers while faults are injected, and check that every guarantee holds. This is the default command."`
	Serve serveCmd `cmd:"" hidden:"" help:"Run the stdio server of the show."`
}

func main() { os.Exit(newProgram().Run(&commands{}, os.Args[1:])) }

func newProgram() *cli.Program {
	return &cli.Program{
		Name:        "demo",
		Description: "Shows supervised MCP sessions at work.",
		In:          os.Stdin, Out: os.Stdout, Err: os.Stderr,
	}
}
