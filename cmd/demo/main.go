// Command demo shows supervised sessions at work: agents call tools on two servers while
// faults are injected. At the end it checks that every guarantee holds, and fails if one does not.
//
//	go run ./cmd/demo
//	go run ./cmd/demo cluster
//
// The second one shows three processes that share their sessions, while one is killed, one is
// paused and one leaves.
//
// The batch runner is the command mcpactor.
package main

import (
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcpactor/mcpactor/internal/cli"
	"github.com/mcpactor/mcpactor/internal/cli/batch"
	"github.com/mcpactor/mcpactor/internal/cli/benchmark"
)

// commands are the commands of the program. The last three are aliases for one release.
type commands struct {
	Show  showCmd  `cmd:"" default:"withargs" help:"Run agents on two servers while faults are injected, and check that every guarantee holds. This is the default command."`
	Serve serveCmd `cmd:"" hidden:"" help:"Run the stdio server of the show."`

	Cluster clusterCmd `cmd:"" help:"Run agents on a cluster of three processes, of which one is killed, one is paused and one leaves, and check that the sessions move."`
	Member  memberCmd  `cmd:"" hidden:"" help:"Run a member of the cluster."`

	Exec struct {
		moved
		batch.Exec
	} `cmd:"" hidden:"" help:"Use mcpactor exec instead."`
	Tools struct {
		moved
		batch.Tools
	} `cmd:"" hidden:"" help:"Use mcpactor tools instead."`
	Bench struct {
		moved
		benchmark.Bench
	} `cmd:"" hidden:"" help:"Use mcpactor bench instead."`
}

// moved makes a command say that it is part of mcpactor now.
type moved struct{}

// AfterApply runs before the command.
func (moved) AfterApply(p *cli.Program, ctx *kong.Context) error {
	name, rest, _ := strings.Cut(ctx.Command(), " ")
	if strings.HasPrefix(rest, "serve") {
		return nil // the server of bench, which no user starts
	}
	p.Errorf("%q is deprecated: use %q, which you install with go install github.com/mcpactor/mcpactor/cmd/mcpactor@latest", "demo "+name, "mcpactor "+name)
	return nil
}

func main() { os.Exit(newProgram().Run(&commands{}, os.Args[1:])) }

func newProgram() *cli.Program {
	return &cli.Program{
		Name:        "demo",
		Description: "Shows supervised MCP sessions at work.",
		In:          os.Stdin, Out: os.Stdout, Err: os.Stderr,
	}
}
