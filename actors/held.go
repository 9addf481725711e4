package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// held is what a server keeps for a session because it was told to, and what the
// next session is told again.
type held struct {
	roots         *messages.SetRoots // told while dialing
	level         *messages.SetLogLevel
	subscriptions []*messages.Subscribe
}

// note takes in an operation that went well. What it has returned before stays as
// it is.
func (h *held) note(op messages.Operation) {
	switch op := op.(type) {
	case *messages.SetRoots:
		h.roots = op
	case *messages.SetLogLevel:
		h.level = op
	case *messages.Subscribe:
		h.drop(op.URI, op.Subscriber)
		h.subscriptions = append(h.subscriptions, op)
	case *messages.Unsubscribe:
		h.drop(op.URI, op.Subscriber)
	}
}

// drop forgets the subscription of one subscriber.
func (h *held) drop(uri string, subscriber *actor.PID) {
	h.subscriptions = slices.DeleteFunc(slices.Clone(h.subscriptions), func(s *messages.Subscribe) bool {
		return s.URI == uri && same(s.Subscriber, subscriber)
	})
}

// has reports whether a subscriber has a subscription.
func (h *held) has(subscriber *actor.PID) bool {
	return slices.ContainsFunc(h.subscriptions, func(s *messages.Subscribe) bool { return same(s.Subscriber, subscriber) })
}

// leave forgets all subscriptions of a subscriber, which has stopped.
func (h *held) leave(subscriber *actor.PID) {
	h.subscriptions = slices.DeleteFunc(slices.Clone(h.subscriptions), func(s *messages.Subscribe) bool { return same(s.Subscriber, subscriber) })
}

func same(one, other *actor.PID) bool {
	return one == other || one != nil && other != nil && one.Equal(other)
}

// shared reports whether the server must not be told, because somebody else has
// subscribed to the same.
func (h *held) shared(op messages.Operation) bool {
	u, ok := op.(*messages.Unsubscribe)
	return ok && slices.ContainsFunc(h.subscriptions, func(s *messages.Subscribe) bool {
		return s.URI == u.URI && !same(s.Subscriber, u.Subscriber)
	})
}

// subscribers returns who wants to know that a resource has changed. It may be a
// part of the one that was subscribed to.
func (h *held) subscribers(uri string) (all []*actor.PID) {
	for _, s := range h.subscriptions {
		if s.Subscriber != nil && (uri == s.URI || strings.HasPrefix(uri, strings.TrimSuffix(s.URI, "/")+"/")) {
			all = append(all, s.Subscriber)
		}
	}
	return all
}

// ops returns the operations that put the rest of it back.
func (h *held) ops() (ops []messages.Operation) {
	if h.level != nil {
		ops = append(ops, h.level)
	}
	told := map[string]bool{}
	for _, s := range h.subscriptions {
		if !told[s.URI] {
			ops = append(ops, s)
		}
		told[s.URI] = true
	}
	return ops
}

// prepare makes a new session ready for calls: the server's set-up calls run, then
// what was held is put back. It may block. Held state that the server refuses now
// is left: it may be about something that is gone. A session that was attached to
// has all of it.
func prepare(ctx context.Context, conn mcpbridge.Conn, setup []*mcp.CallToolParams, ops []messages.Operation, left func(op messages.Operation, e *mcpbridge.Error)) error {
	if conn.Info().Attached {
		return nil
	}
	for _, params := range setup {
		result, err := conn.Do(ctx, &messages.CallTool{Params: params})
		if r, ok := result.(*messages.ToolResult); ok && err == nil && r.Result.IsError {
			err = errors.New("the tool returned an error")
		}
		if err != nil {
			return &mcpbridge.Error{
				Class: mcpbridge.Unavailable, Err: err,
				Detail: fmt.Sprintf("set-up call of %q: %s", params.Name, mcpbridge.AsError(err).Detail),
			}
		}
	}
	for _, op := range ops {
		_, err := conn.Do(ctx, op)
		var said *jsonrpc.Error
		e := mcpbridge.AsError(err)
		switch {
		case e == nil:
		case e.Class != mcpbridge.Invalid && !errors.As(err, &said): // neither is an answer to it
			return &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: op.Method() + " could not be put back: " + e.Detail, Err: e}
		default:
			left(op, e)
		}
	}
	return nil
}
