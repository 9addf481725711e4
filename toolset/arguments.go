package toolset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/messages"
)

var errNoObject = errors.New("not a JSON object")

// noObject is the detail of a failure for arguments that are none.
const noObject = "arguments: are not a JSON object"

// argumentsOf returns the arguments of a call as a JSON object. They come from marshaled.
func argumentsOf(arguments any) (json.RawMessage, error) {
	var text []byte
	switch a := arguments.(type) {
	case json.RawMessage:
		text = bytes.Clone(a)
	case []byte:
		text = bytes.Clone(a)
	case string:
		text = []byte(a)
	case nil:
	default: // not from marshaled
		return nil, errNoObject
	}
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0, string(text) == "null":
		return json.RawMessage("{}"), nil
	case text[0] != '{' || !json.Valid(text):
		return nil, errNoObject
	}
	return text, nil
}

// marshaled returns arguments as text, or nil, and waits no longer than ctx: their MarshalJSON may block. A MarshalJSON that
// never returns keeps its goroutine. The error is a failure of the call of a tool.
func marshaled(ctx context.Context, name string, arguments any) (any, error) {
	switch arguments.(type) {
	case nil, json.RawMessage, []byte, string:
		return arguments, nil
	}
	type outcome struct {
		text json.RawMessage
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		o := outcome{err: &guard.Panic{Value: "the goroutine was ended"}}
		defer func() { done <- o }()
		o.text, o.err = guard.Call(func() (json.RawMessage, error) { return json.Marshal(arguments) })
	}()
	f := &messages.Failure{Op: "tools/call", Target: name}
	select {
	case o := <-done:
		panicked, is := errors.AsType[*guard.Panic](o.err)
		switch {
		case is:
			f.Code, f.Detail, f.Cause = messages.CodeInternal, "the arguments panicked", panicked
			return nil, f
		case o.err != nil:
			f.Code, f.Detail, f.Cause = messages.CodeInvalid, noObject, o.err
			return nil, f
		}
		return o.text, nil
	case <-ctx.Done():
		return nil, ended(ctx, f, "the arguments were not encoded in time")
	}
}
