package commands

import (
	"errors"
	"fmt"
	"time"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// connectWithin makes a server that does not answer fail a little before a command gives up, so that the failure says what the
// server does instead.
func connectWithin(file *config.File, limit time.Duration) {
	limit -= limit / 10
	for i := range file.Supervisor.Servers {
		own := &file.Supervisor.Servers[i].Limits.ConnectTimeout
		*own = min(*own, limit)
	}
	if all := &file.Supervisor.ConnectTimeout; *all == 0 || *all > limit {
		*all = limit
	}
}

// causeOf returns why a server or a call failed, and what to change, as one line. limit is how long the command waits.
func causeOf(srv mcpbridge.Server, err error, limit time.Duration) string {
	failure, ok := errors.AsType[*messages.Failure](err)
	if !ok {
		return cli.Printable(err.Error())
	}
	text := string(failure.Code)
	switch {
	case failure.Detail != "":
		text += ": " + failure.Detail
	case failure.Code == messages.CodeDeadline:
		text += fmt.Sprintf(": there was no answer in %v", limit)
	}
	isCall := failure.Op == "tools/call" || failure.Op == ""
	if failure.MayHaveRun && isCall {
		text += "; the call may have run"
	}
	switch {
	case failure.Remedy != "":
		text += "; " + failure.Remedy
	case failure.MayHaveRun || failure.Code != messages.CodeUnavailable && failure.Code != messages.CodeDeadline:
	case srv.URL != "":
		text += "; check that it runs, and url"
	default:
		text += "; run its command by hand to see what it says"
	}
	return cli.Printable(text)
}
