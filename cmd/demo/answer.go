package main

import (
	"encoding/json"
	"errors"

	"github.com/mcpactor/mcpactor/messages"
)

// answer is one line of output.
type answer struct {
	ID         json.RawMessage `json:"id"`
	OK         bool            `json:"ok"`
	Generation uint64          `json:"generation,omitempty"`
	Replayed   *bool           `json:"replayed,omitempty"`
	Result     any             `json:"result,omitempty"`
	Code       messages.Code   `json:"code,omitempty"`
	Error      string          `json:"error,omitempty"`
	MayHaveRun bool            `json:"mayHaveRun,omitempty"`
	RetryAfter string          `json:"retryAfter,omitempty"`
}

// null is the id of a line whose id could not be read.
var null = json.RawMessage("null")

// invalid answers a line that is wrong.
func invalid(id json.RawMessage, text string) *answer {
	return refused(id, messages.CodeInvalid, text)
}

// refused answers a line that came to nothing.
func refused(id json.RawMessage, code messages.Code, text string) *answer {
	if id == nil {
		id = null
	}
	return &answer{ID: id, Code: code, Error: text}
}

// answerTo makes the answer of what a command came to.
func answerTo(id json.RawMessage, reply messages.Reply, err error) *answer {
	var f *messages.Failure
	switch {
	case errors.As(err, &f):
		a := refused(id, f.Code, f.Error())
		a.Generation, a.MayHaveRun = f.Generation, f.MayHaveRun
		if f.RetryAfter > 0 {
			a.RetryAfter = f.RetryAfter.String()
		}
		if f.Generation > 0 {
			a.Replayed = &f.Replayed
		}
		return a
	case err != nil:
		return refused(id, messages.CodeInternal, err.Error())
	}
	a := &answer{ID: id, OK: true}
	if result, ok := reply.(messages.Result); ok {
		receipt := result.GetReceipt()
		a.Generation, a.Replayed = receipt.Generation, &receipt.Replayed
	}
	switch reply := reply.(type) {
	case *messages.ToolResult:
		a.Result = reply.Result
	case *messages.ToolList:
		a.Result = reply.Result
	case *messages.ResourceList:
		a.Result = reply.Result
	case *messages.ResourceTemplateList:
		a.Result = reply.Result
	case *messages.ResourceContents:
		a.Result = reply.Result
	case *messages.PromptList:
		a.Result = reply.Result
	case *messages.Prompt:
		a.Result = reply.Result
	case *messages.Completion:
		a.Result = reply.Result
	case *messages.SessionInfo:
		a.Result = map[string]any{"server": reply.Server, "stateless": reply.Stateless}
	case *messages.Closed:
		a.Result = map[string]any{"sessions": reply.Sessions, "left": append([]messages.Left{}, reply.Left...)}
	case *messages.Snapshot:
		a.Result = reply
	default:
		a.Result = struct{}{}
	}
	return a
}
