// Command mcpactor runs batches of MCP calls on supervised sessions, against the servers of a
// configuration file.
//
//	mcpactor serve -- COMMAND         be an MCP server in front of another one, or of all of a file
//	mcpactor call --config FILE …     call one tool
//	mcpactor doctor --config FILE     try each server
//	mcpactor exec --config FILE       run calls: JSON lines in, JSON lines out
//	mcpactor login URL                log in to a server, and keep the login
//	mcpactor logout URL               forget a login
//	mcpactor tools --config FILE      list the tools of all servers
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
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/batch"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/serve"
)

// commands are the commands of the program.
type commands struct {
	Serve      serve.Serve    `cmd:"" help:"Be an MCP server in front of others, whose sessions are opened again when they expire or break."`
	Call       batch.Call     `cmd:"" help:"Call one tool, and print its result."`
	Doctor     batch.Doctor   `cmd:"" help:"Try each server: whether it starts, its revision, its tools, the time, and what to change where it fails."`
	Exec       batch.Exec     `cmd:"" help:"Run calls. Reads one JSON request per line from stdin, and writes one JSON response per line to stdout."`
	Login      batch.Login    `cmd:"" help:"Log in to a hosted server in the browser. All commands use the login that is kept."`
	Logout     batch.Logout   `cmd:"" help:"Forget the login at a server."`
	Tools      batch.Tools    `cmd:"" help:"List the tools of all servers, with the safe names by which exec calls them."`
	Version    cli.Version    `cmd:"" help:"Print the version of this program."`
	Completion cli.Completion `cmd:"" help:"Print a completion script for a shell."`
}

func main() { os.Exit(newProgram().Run(&commands{}, os.Args[1:])) }

func newProgram() *cli.Program {
	return &cli.Program{
		Name:        "mcpactor",
		Description: "Runs MCP calls against the servers of a configuration file, on supervised sessions.",
		In:          os.Stdin, Out: os.Stdout, Err: os.Stderr,
	}
}
