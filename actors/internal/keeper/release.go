package keeper

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/handles"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// release releases a handle, in a goroutine.
func (k *Keeper) release(h *handles.Handle, until time.Time) {
	a, caller := h.Attempt(), k.callerUntil(h.Name.Server, until)
	caller.guard = guard{a}
	number, known := k.numbers[a.Kind]
	k.Jobs.Await(func() (then func()) {
		if !known {
			number, known = caller.isNumber(a)
		}
		caller.run(a, number)
		return func() {
			if known {
				k.numbers[a.Kind] = number
			}
			k.book.Released(h, a.Outcome, time.Now())
			k.closeUnneeded(a.By)
		}
	})
}

// look asks which handles of a kind there are, in a goroutine.
func (k *Keeper) look(kind *handles.Kind, by messages.Key) {
	caller := k.callerUntil(kind.Server, time.Time{})
	k.Jobs.Await(func() (then func()) {
		ids, known := caller.list(kind, by)
		return func() {
			k.book.Listed(kind, ids, known, time.Now())
			k.closeUnneeded(by)
		}
	})
}

// closeUnneeded closes the session of a key if it was opened for calls of the keeper only, and has none.
func (k *Keeper) closeUnneeded(key messages.Key) {
	if reg := k.Table.Current(key); reg != nil && reg.OnlyReleases && reg.Outstanding == 0 && !reg.Pinned {
		k.Unneeded(reg)
	}
}

// caller calls tools for the keeper. It may block.
type caller struct {
	*Keeper
	until time.Time
	guard contract.Mint // nil if there is none
}

// guard keeps a call from being sent that releases a handle whose id may be another one's by then.
type guard struct{ *handles.Attempt }

func (guard) Answered(messages.Result, uint64) {}

// callerUntil returns a caller whose calls end by a time, or if that is zero, after as long as a session may take to open and to answer.
func (k *Keeper) callerUntil(server string, until time.Time) caller {
	if until.IsZero() {
		limits := k.Table.Limits(server)
		until = time.Now().Add(limits.ConnectTimeout + limits.CloseTimeout)
	}
	return caller{Keeper: k, until: until}
}

// do runs an operation of the keeper.
func (c caller) do(op messages.Operation) (messages.Result, *messages.Failure) {
	future := protocol.NewFuture(c.system, nil)
	defer future.Close()
	call := &contract.Call{
		Op: op, Key: op.Head().Key.Normal(), Supervisor: c.Cfg.Name, Caller: future.PID, Accepted: time.Now(), Deadline: c.until,
		Serial: math.MaxUint64, PassedOn: true, Intercepted: true, Releases: true, Mint: c.guard,
	}
	c.Mailbox.PostUserMessage(&ownCall{call})
	switch reply := (<-future.Reply).(type) {
	case *messages.Failure:
		return nil, reply
	case messages.Result:
		return reply, nil
	}
	return nil, call.Failure(messages.CodeClosed, "the supervisor has stopped") // a dead letter
}

// call calls a tool.
func (c caller) call(by messages.Key, tool string, args any) (*mcp.CallToolResult, *messages.Failure) {
	header := messages.Header{Key: by, Deadline: c.until, Replay: messages.ReplayNever}
	reply, f := c.do(&messages.CallTool{Header: header, Params: &mcp.CallToolParams{Name: tool, Arguments: args}})
	if r, is := reply.(*messages.ToolResult); is {
		return r.Result, nil
	}
	return nil, f
}

// list returns the handles of a kind that there are.
func (c caller) list(kind *handles.Kind, by messages.Key) (ids []string, known bool) {
	r, f := c.call(by, kind.List, map[string]any{})
	if f != nil || r.IsError {
		return nil, false
	}
	return kind.ListedIn(r), true
}

// retryAfter is how long it is waited at least before a call is repeated.
const retryAfter = 100 * time.Millisecond

// run releases a handle.
func (c caller) run(a *handles.Attempt, number bool) {
	var id any = a.ID
	if number && mayBeNumber(a.ID) {
		id = json.Number(a.ID)
	}
	for a.Next() != handles.Finished {
		if a.Next() == handles.List {
			a.Listed(c.list(a.Kind, a.By))
			continue
		}
		r, f := c.call(a.By, a.Kind.Release, map[string]any{a.Kind.Argument: id})
		if f == nil {
			a.Answered(a.Kind.Used(r, true))
			continue
		}
		if a.Failed(f); a.Next() == handles.Call {
			c.pause(max(f.RetryAfter, retryAfter))
		}
	}
}

// pause waits, but not beyond the end.
func (c caller) pause(d time.Duration) {
	ctx, cancel := context.WithDeadline(context.Background(), c.until)
	defer cancel()
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// mayBeNumber reports whether a handle is a number of JSON: 007 is none, and Inf is none.
func mayBeNumber(id string) bool {
	_, err := json.Number(id).Float64()
	return err == nil && json.Valid([]byte(id))
}

// isNumber reports whether the tool that releases takes a number, if a handle may be one. known is false if the server has not said so.
func (c caller) isNumber(a *handles.Attempt) (number, known bool) {
	if !mayBeNumber(a.ID) {
		return false, false
	}
	reply, _ := c.do(&messages.ListTools{Header: messages.Header{Key: a.By, Deadline: c.until}})
	tools, is := reply.(*messages.ToolList)
	if !is {
		return false, false
	}
	for _, tool := range tools.Result.Tools {
		if tool.Name == a.Kind.Release {
			return a.Kind.NumberIn(tool.InputSchema), true
		}
	}
	return false, false
}
