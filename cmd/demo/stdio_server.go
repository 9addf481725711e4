package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
)

// processLogVar is the environment variable with the path of the process log.
const processLogVar = "MCPACTOR_DEMO_PROCESS_LOG"

// serveCmd makes this program the stdio server of the show.
type serveCmd struct{}

// Run serves until stdin ends.
func (*serveCmd) Run() error {
	log, err := os.OpenFile(os.Getenv(processLogVar), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return &cli.UsageError{Err: errors.New("the command serve is started only by the show")}
	}
	defer log.Close()
	fmt.Fprintln(log, "pid", os.Getpid())
	server := newCounterServer(func(call string) { fmt.Fprintln(log, "run", call) })
	return server.Run(context.Background(), &mcp.StdioTransport{})
}
