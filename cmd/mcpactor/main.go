// Command mcpactor uses MCP servers through supervised sessions, which are replaced when they expire or break.
//
//	mcpactor serve -- COMMAND         stand between a client and its servers
//	mcpactor adopt CLIENT             put serve before the servers of a client
//	mcpactor call TOOL …              call one tool
//	mcpactor doctor                   try each server, or one
//	mcpactor exec --config FILE       run calls: JSON lines in, JSON lines out
//	mcpactor login URL                log in to a server, and keep the login
//	mcpactor logout URL               forget a login
//	mcpactor pin                      pin what servers say of their tools, and show what has changed
//	mcpactor tools                    list the tools of all servers, or of one
//	mcpactor version                  print the version
//	mcpactor completion SHELL         print a completion script for bash, zsh or fish
//
// Install it with:
//
//	go install github.com/mcpactor/mcpactor/cmd/mcpactor@latest
package main

import (
	"os"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/adopt"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/commands"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/exec"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/serve"
)

// subcommands are the commands of the program.
type subcommands struct {
	Serve      serve.Serve     `cmd:"" help:"Stand between a client, such as Cursor, and its servers."`
	Adopt      adopt.Adopt     `cmd:"" help:"Put serve before the servers of a client, such as Cursor."`
	Call       commands.Call   `cmd:"" help:"Call one tool, and print its result."`
	Doctor     commands.Doctor `cmd:"" help:"Try each server, and say what to change where it fails."`
	Exec       exec.Exec       `cmd:"" help:"Run many calls: a JSON request per line in, a response out."`
	Login      commands.Login  `cmd:"" help:"Log in to a hosted server, in the browser or as a client."`
	Logout     commands.Logout `cmd:"" help:"Forget the login to a hosted server."`
	Pin        commands.Pin    `cmd:"" help:"Pin what servers say of their tools, and show what has changed."`
	Tools      commands.Tools  `cmd:"" help:"List the tools of all servers, or describe one."`
	Version    cli.Version     `cmd:"" help:"Print the version of this program."`
	Completion cli.Completion  `cmd:"" help:"Print a completion script for a shell."`
}

func main() { os.Exit(newProgram().Run(&subcommands{}, os.Args[1:])) }

func newProgram() *cli.Program {
	return &cli.Program{
		Name:        "mcpactor",
		Description: "Uses MCP servers through sessions that are replaced when they expire or break.",
		In:          os.Stdin, Out: os.Stdout, Err: os.Stderr,
	}
}
