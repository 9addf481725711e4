package main

import (
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// sessions are what the results of calls say of the sessions: on which member each one lives, and whether its state was kept.
type sessions struct {
	of    map[string]*session // by scope
	moves int                 // sessions that were answered by another member than before
	reset []string            // scopes whose state was lost
	waits []time.Duration     // of the last act: from the first call of a moved session to its first result
}

// session is one session.
type session struct {
	member  string
	total   int       // the last value of its counter
	awaited bool      // its member has gone, and no other one has answered yet
	since   time.Time // when a call has waited for that since, or zero
}

// called notes a call to a session.
func (all *sessions) called(scope string) {
	if s := all.of[scope]; s != nil && s.awaited && s.since.IsZero() {
		s.since = time.Now()
	}
}

// answered notes what the result of a call says of its session.
func (all *sessions) answered(op *messages.CallTool, result *messages.ToolResult) {
	scope := op.Key.Scope
	now := all.of[scope]
	if now == nil {
		now = &session{member: result.Supervisor}
		all.of[scope] = now
	}
	if now.member != result.Supervisor {
		now.member = result.Supervisor
		all.moves++
		if now.awaited {
			now.awaited = false
			all.waits = append(all.waits, time.Since(now.since))
		}
	}
	total, least := totalOf(result.Result), now.total
	if op.Params.Name == "add" {
		least++
	}
	if total < least {
		all.reset = append(all.reset, scope)
	}
	now.total = total
}

// totalOf returns the counter in a result.
func totalOf(result *mcp.CallToolResult) int {
	if len(result.Content) == 1 {
		if text, ok := result.Content[0].(*mcp.TextContent); ok {
			n, _ := strconv.Atoi(text.Text) // 0 if it is no number, which is too small
			return n
		}
	}
	return 0
}

// expect begins an act in which the sessions of a member move, and returns how many these are.
func (all *sessions) expect(member string) (sessions int) {
	all.waits = nil
	for _, s := range all.of {
		s.since = time.Time{}
		if s.awaited = s.member == member; s.awaited {
			sessions++
		}
	}
	return sessions
}

// moved returns how many sessions have not moved yet since expect, and how long the others took
// from their first call to their first result, in order.
func (all *sessions) moved() (awaited int, waits []time.Duration) {
	for _, s := range all.of {
		if s.awaited {
			awaited++
		}
	}
	return awaited, slices.Sorted(slices.Values(all.waits))
}
