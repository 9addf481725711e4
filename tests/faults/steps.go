package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Steps say what happens to the calls of one tool: the first call meets the first step, the
// second call the second one. The last step is for all further calls, too. A tool without
// steps returns an empty text.
//
// All methods but Replace add to the steps that there are: a second Returns is for a later call, and replaces nothing. In a
// bubble of testing/synctest, a test whose call has met a step that waits for ever fails with "deadlock".
//
// A step is an answer or a fault. If a fault lets the tool run, as [LostAfterRun] does, the
// tool runs the answer that follows next in the steps, and the next call meets that answer
// again.
type Steps struct {
	script *Script
	tool   string
	label  string          // for messages
	when   func(Call) bool // nil for all calls

	steps []*step
	next  int // the step for the next call, if there is one
}

// step is an answer, or a fault.
type step struct {
	label string
	name  Name  // of the fault
	fault Fault // nil for an answer
	run   func(context.Context, *Run) (*mcp.CallToolResult, error)
	used  bool
}

// Tool returns the steps of a tool, which are for all calls without steps of their own: see
// [Steps.When]. On first use it adds the tool to the server, with a schema that allows all
// arguments. Sessions that are open are told that the tools have changed.
func (s *Script) Tool(name string) *Steps {
	s.mu.Lock()
	steps := s.tools[name]
	s.mu.Unlock()
	if steps != nil {
		return steps
	}
	return s.Define(&mcp.Tool{Name: name})
}

// Define is [Script.Tool] for a tool with a description, a schema or annotations. A
// definition replaces an earlier one, and keeps the steps. Without a schema all arguments
// are allowed. The script does not check arguments.
func (s *Script) Define(tool *mcp.Tool) *Steps {
	defined := *tool
	if defined.InputSchema == nil {
		defined.InputSchema = map[string]any{"type": "object"}
	}
	s.mcp.AddTool(&defined, s.call)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools[tool.Name] == nil {
		s.tools[tool.Name] = &Steps{script: s, tool: tool.Name, label: tool.Name}
	}
	return s.tools[tool.Name]
}

// When returns new steps for the calls of the tool for which the condition holds. If
// several conditions hold for a call, the first one counts. The condition may be called from
// several goroutines at once.
func (p *Steps) When(holds func(Call) bool) *Steps {
	s := p.script
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.conditional[p.tool]) + 1
	steps := &Steps{script: s, tool: p.tool, label: fmt.Sprintf("%s, condition %d", p.tool, n), when: holds}
	if before := p.when; before != nil {
		steps.when = func(c Call) bool { return before(c) && holds(c) }
	}
	s.conditional[p.tool] = append(s.conditional[p.tool], steps)
	return steps
}

// In returns new steps for the calls of one scope. See [Steps.When].
func (p *Steps) In(scope string) *Steps {
	return p.When(func(c Call) bool { return c.Key.Scope == scope })
}

// Replace removes the steps, so that those that are added next take their place. A call that has met a step keeps it: a
// tool that waits for something goes on waiting.
func (p *Steps) Replace() *Steps {
	p.script.mu.Lock()
	defer p.script.mu.Unlock()
	p.steps, p.next = nil, 0
	return p
}

// Returns adds an answer: a string is a text, a [*mcp.CallToolResult] is the result itself,
// and any other value is structured content, with its JSON as text.
func (p *Steps) Returns(result any) *Steps {
	return p.Does(func(context.Context, *Run) (any, error) { return result, nil })
}

// ReturnsError adds an answer in which the tool itself reports an error.
func (p *Steps) ReturnsError(text string) *Steps {
	return p.Does(func(context.Context, *Run) (any, error) { return nil, errors.New(text) })
}

// Does adds an answer by a function, which runs in a goroutine of the server. Its result is
// that of [Steps.Returns]. An error is one that the tool reports, unless it is a
// [*jsonrpc.Error], which the server reports. ctx ends when the call is cancelled, and when
// the server restarts.
func (p *Steps) Does(f func(ctx context.Context, run *Run) (any, error)) *Steps {
	return p.add(&step{label: "an answer", run: func(ctx context.Context, run *Run) (*mcp.CallToolResult, error) {
		value, err := f(ctx, run)
		var refusal *jsonrpc.Error
		switch {
		case errors.As(err, &refusal):
			return nil, refusal
		case err != nil:
			failed := textOf(err.Error())
			failed.IsError = true
			return failed, nil
		}
		return resultOf(value)
	}})
}

// Fails adds a fault by its name. If there is no such fault, the test fails, with all names.
func (p *Steps) Fails(name Name) *Steps {
	p.script.t.Helper()
	fault, err := Named(name)
	if err != nil {
		p.script.t.Fatalf("%s: %v", p.label, err)
		return p
	}
	return p.add(&step{label: string(name), name: name, fault: fault})
}

// Meets adds any other fault, such as [Delay], or [Server.Forget] with one of the forms in
// [Expiries].
func (p *Steps) Meets(fault Fault) *Steps {
	return p.add(&step{label: string(otherFault), name: otherFault, fault: fault})
}

// otherFault is the name of a fault without a name.
const otherFault Name = "other"

func (p *Steps) add(one *step) *Steps {
	p.script.mu.Lock()
	defer p.script.mu.Unlock()
	p.steps = append(p.steps, one)
	return p
}

// take returns the step for the next call, and the answer for a tool that runs. Both may be
// nil. A fault that was chosen comes before the next step. It is called with the script's
// lock held.
func (p *Steps) take(chosen *step) (now, answer *step) {
	if len(p.steps) == 0 {
		return chosen, nil
	}
	at := min(p.next, len(p.steps)-1)
	if now = chosen; now == nil {
		p.next = at + 1
		now = p.steps[at]
		now.used = true
	}
	for _, one := range p.steps[at:] {
		if one.fault == nil {
			answer = one
			break
		}
	}
	return now, answer
}

// unused returns the steps that no call has met, in words. It is called with the script's
// lock held.
func (p *Steps) unused() (unused []string) {
	for i, one := range p.steps {
		if !one.used {
			unused = append(unused, fmt.Sprintf("%s: step %d of %d, %s", p.label, i+1, len(p.steps), one.label))
		}
	}
	return unused
}

// textOf returns a result that is a text.
func textOf(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// resultOf returns a value as the result of a tool.
func resultOf(value any) (*mcp.CallToolResult, error) {
	switch value := value.(type) {
	case nil:
		return textOf(""), nil
	case string:
		return textOf(value), nil
	case *mcp.CallToolResult:
		return value, nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("faults: the result of the tool is not JSON: %w", err)
	}
	result := textOf(string(text))
	result.StructuredContent = json.RawMessage(text)
	return result, nil
}
