package mcpbridge

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/mcpactor/mcpactor/internal/limits"
	"github.com/mcpactor/mcpactor/internal/pattern"
)

// Bound bounds how often tools of a server are called. A call beyond it is not sent, and fails at once: with
// [messages.CodeRateLimited] beyond PerMinute, and the time until the next call; with [messages.CodeBusy] beyond InFlight; and with
// [messages.CodeRefused] beyond Total. Such a call does not count for the other bounds. A repetition by the supervisor does not count again, nor does a
// later round. If several bounds refuse a call, the failure is that of the one that does so for longest. In a cluster each member counts
// the calls of its own sessions.
//
// At least one number is greater than 0; 0 is no bound.
type Bound struct {
	// Tool is a tool, by the name that the server gives it, or a pattern of [path.Match] in which "*" and "?" match a slash as well. The
	// calls of all tools that match count together. Defaults to all tools.
	Tool string
	// Shared counts the calls of all scopes together. Defaults to false: each scope has a count of its own.
	Shared bool
	// PerMinute is how many calls may begin in a minute: 60 are 60 at once, and then one a second.
	PerMinute int
	// Total is how many calls may be sent in all. Those that wait count, too. A count begins anew when nothing was counted for 24 hours, when the Bound is changed, and
	// with the supervisor.
	Total int
	// InFlight is how many calls may be without a reply, those that wait included.
	InFlight int
}

// Validate returns an error that names the first field that is wrong, or nil.
func (b Bound) Validate() error {
	if err := pattern.Check(b.Tool); err != nil {
		return fmt.Errorf("tool: %q is not a pattern: %w", b.Tool, err)
	}
	most := limits.Of(-1)
	for _, number := range []struct {
		name  string
		value int
	}{{"perMinute", b.PerMinute}, {"total", b.Total}, {"inFlight", b.InFlight}} {
		switch {
		case number.value < 0:
			return fmt.Errorf("%s: %d is negative: 0 is no bound", number.name, number.value)
		case number.value > most:
			return fmt.Errorf("%s: %d is more than %d: 0 is no bound", number.name, number.value, most)
		}
	}
	if cmp.Or(b.PerMinute, b.Total, b.InFlight) == 0 {
		return errors.New("perMinute, total and inFlight are all 0: it bounds nothing")
	}
	return nil
}

// Counts reports whether the calls of a tool count for the bound.
func (b Bound) Counts(tool string) bool {
	return b.Tool == "" || b.Tool == tool || pattern.Match(b.Tool, tool)
}
