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

// connectLimit is how long a server may take to answer: a little less than the command waits, so that the failure says what the server
// does instead.
func connectLimit(limit time.Duration) time.Duration {
	return limit - max(limit/10, min(limit/2, 500*time.Millisecond))
}

// connectWithin makes a server that does not answer fail within a limit.
func connectWithin(file *config.File, limit time.Duration) {
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
	cause, next := explain(srv, err, limit)
	if next == "" {
		return cause
	}
	return cause + "; " + next
}

// explain returns why a server or a call failed, and what a person would do next.
func explain(srv mcpbridge.Server, err error, limit time.Duration) (cause, next string) {
	failure, ok := errors.AsType[*messages.Failure](err)
	if !ok {
		return cli.Printable(err.Error()), ""
	}
	cause, next = string(failure.Code), failure.Remedy
	isCall := failure.Op == "tools/call" || failure.Op == ""
	switch {
	case failure.Detail != "":
		cause += ": " + failure.Detail
	case failure.Code == messages.CodeDeadline && isCall:
		cause += fmt.Sprintf(": there was no answer in %v", limit)
	case failure.Code == messages.CodeDeadline:
		cause += fmt.Sprintf(": there was no answer to %s in %v", failure.Op, limit)
	}
	if failure.MayHaveRun && isCall {
		cause += "; the call may have run"
	} else if next == "" {
		next = nextAfter(srv, failure)
	}
	return cli.Printable(cause), cli.Printable(next)
}

// nextAfter returns what a person would do next about a failure that has no remedy of its own, or "" if its text says it.
func nextAfter(srv mcpbridge.Server, failure *messages.Failure) string {
	const byHand = "run its command by hand to see what it says"
	switch failure.Code {
	case messages.CodeRateLimited:
		return "wait, and try again"
	case messages.CodeUnavailable, messages.CodeDeadline:
		switch {
		case failure.MayHaveRun:
			return "" // it runs, and is slow
		case srv.URL != "":
			return "check that it runs, and its URL"
		}
		return byHand
	case messages.CodeLost:
		if srv.URL == "" {
			return byHand
		}
		fallthrough
	case messages.CodeExpired, messages.CodeServerError, messages.CodeProtocol:
		return "read the log of the server, or tell its author"
	}
	return ""
}
