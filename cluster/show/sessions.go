package main

import (
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// session is what the results of calls say of a session: on which member it lives, and whether its state was kept.
type session struct {
	member  string
	total   int       // the last value of its counter
	awaited bool      // its member has gone, and no other one has answered yet
	since   time.Time // when a call has waited for that since, or zero
}

// called notes a call to a session. The caller holds mu.
func (v *verifier) called(scope string) {
	if s := v.sessions[scope]; s != nil && s.awaited && s.since.IsZero() {
		s.since = time.Now()
	}
}

// locate notes what the result of a call says of its session. The caller holds mu.
func (v *verifier) locate(op *messages.CallTool, result *messages.ToolResult) {
	scope := op.Key.Scope
	now := v.sessions[scope]
	if now == nil {
		now = &session{member: result.Supervisor}
		v.sessions[scope] = now
	}
	if now.member != result.Supervisor {
		now.member = result.Supervisor
		v.moves++
		if now.awaited {
			now.awaited = false
			v.waits = append(v.waits, time.Since(now.since))
		}
	}
	total, least := totalOf(result.Result), now.total
	if op.Params.Name == "add" {
		least++
	}
	if total < least {
		v.reset = append(v.reset, scope)
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
func (v *verifier) expect(member string) (sessions int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waits = nil
	for _, s := range v.sessions {
		s.since = time.Time{}
		if s.awaited = s.member == member; s.awaited {
			sessions++
		}
	}
	for _, c := range v.calls {
		if c.replies == 0 {
			v.called(c.op.Key.Scope)
		}
	}
	return sessions
}

// moved returns how many sessions have not moved yet since expect, and how long the others took
// from their first call to their first result, in order.
func (v *verifier) moved() (awaited int, waits []time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.sessions {
		if s.awaited {
			awaited++
		}
	}
	return awaited, slices.Sorted(slices.Values(v.waits))
}

// known returns how many sessions have answered.
func (v *verifier) known() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.sessions)
}
