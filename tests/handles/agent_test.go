//go:build handles && linux

package handles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// uses is how often an agent uses its handle, and between two uses it thinks.
const uses = 4

func think() { pause(20*time.Millisecond + rand.N(30*time.Millisecond)) }

// run is an agent. If its handle is no more, it mints another one, and begins anew.
func (p *platform) run(ctx context.Context, n int) {
	scope := fmt.Sprint("agent-", n)
	defer p.end(scope)
	id, began := p.found(ctx, scope), time.Now()
	for {
		if id == "" && !p.mint(ctx, scope, &id) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.said.Starved++
			return
		}
		waited := time.Since(began)
		if p.work(ctx, scope, id, uses) {
			p.mu.Lock()
			p.said.Served++
			p.said.Longest = max(p.said.Longest, waited)
			p.mu.Unlock()
			break
		}
		p.mu.Lock()
		p.said.Missing++
		p.mu.Unlock()
		id, began = "", time.Now()
	}
	switch {
	case n%2 == 0:
		if _, err := p.call(ctx, scope, closeTool, input{id, p.by(scope)}); err == nil {
			p.move()
		}
	case n%4 == 3:
		p.lend(ctx, n, id)
	}
}

// found returns the handle that an agent of an earlier platform with this scope held, or "".
func (p *platform) found(ctx context.Context, scope string) string {
	if p.role.Bound == undeclared || p.role.Life == 1 {
		return ""
	}
	list, err := p.client.ListHandles(ctx, scope)
	if err != nil || len(list.Handles) == 0 {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said.Back++
	return list.Handles[0].Handle
}

// mint mints a handle, in as many calls as it takes, and reports whether it has one.
func (p *platform) mint(ctx context.Context, scope string, id *string) bool {
	for ctx.Err() == nil && !p.isStill() {
		text, err := p.call(ctx, scope, openTool, input{By: p.by(scope)})
		var out output
		if err == nil && json.Unmarshal([]byte(text), &out) == nil && out.ID != "" {
			p.move()
			*id = out.ID
			return true
		}
		pause(100*time.Millisecond + rand.N(200*time.Millisecond)) // it may have been lost, or there are too many
	}
	return false
}

// work uses a handle a few times, and reports whether it was there.
func (p *platform) work(ctx context.Context, scope, id string, times int) bool {
	for range times {
		for { // a use may be repeated
			_, err := p.call(ctx, scope, useTool, input{id, p.by(scope)})
			if err == nil {
				break
			}
			if ctx.Err() != nil || isGone(err) {
				return false
			}
			pause(100 * time.Millisecond)
		}
		think()
	}
	return true
}

// isGone reports whether there is no such handle: the server says so, or the supervisor knows.
func isGone(err error) bool {
	return strings.Contains(err.Error(), errGone.Error()) || errors.Is(err, messages.CodeRefused) || errors.Is(err, messages.CodeInvalid)
}

// lend lets another agent use a handle. It still does so when this one has ended.
func (p *platform) lend(ctx context.Context, n int, id string) {
	borrower := fmt.Sprint("borrower-", n)
	if !p.work(ctx, borrower, id, 1) {
		return
	}
	p.end(fmt.Sprint("agent-", n))
	defer p.end(borrower)
	think()
	if !p.work(ctx, borrower, id, 2) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.said.Missing++
	}
}

// end ends an agent.
func (p *platform) end(scope string) {
	if resp, err := http.Post("http://"+p.role.Addr+"/ended?by="+url.QueryEscape(p.by(scope)), "", nil); err == nil {
		resp.Body.Close()
	} // or the server was killed, and knows nothing of the agent
	p.client.CloseScope(context.Background(), scope)
}

// call calls a tool, and returns its text. An error of the tool is an error.
func (p *platform) call(ctx context.Context, scope, tool string, in input) (string, error) {
	result, err := p.client.CallTool(ctx, serverName, scope, &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		return "", err
	}
	text := ""
	for _, content := range result.Result.Content {
		if c, is := content.(*mcp.TextContent); is {
			text += c.Text
		}
	}
	if result.Result.IsError {
		return "", errors.New(text)
	}
	return text, nil
}
