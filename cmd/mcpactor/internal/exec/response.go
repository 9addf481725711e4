package exec

import (
	"encoding/json"
	"errors"

	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/commands"
	"github.com/mcpactor/mcpactor/messages"
)

// response is the line of output for one request.
type response struct {
	ID         json.RawMessage `json:"id"`
	OK         bool            `json:"ok"`
	Generation uint64          `json:"generation,omitempty"`
	Replayed   *bool           `json:"replayed,omitempty"`
	Result     any             `json:"result,omitempty"`
	Odd        []string        `json:"odd,omitempty"`
	Incomplete string          `json:"incomplete,omitempty"`
	Code       messages.Code   `json:"code,omitempty"`
	Error      string          `json:"error,omitempty"`
	MayHaveRun bool            `json:"mayHaveRun,omitempty"`
	RetryAfter string          `json:"retryAfter,omitempty"`
}

// null is the id of the response to a line whose id cannot be read.
var null = json.RawMessage("null")

// invalidResponse returns the response to a line that is not a valid request.
func invalidResponse(id json.RawMessage, text string) *response {
	return failedResponse(id, messages.CodeInvalid, text)
}

// failedResponse returns the response to a request that failed.
func failedResponse(id json.RawMessage, code messages.Code, text string) *response {
	if id == nil {
		id = null
	}
	return &response{ID: id, Code: code, Error: text}
}

// responseTo returns the response with the outcome of a command: a reply or an error.
func responseTo(id json.RawMessage, reply messages.Reply, err error) *response {
	var failure *messages.Failure
	switch {
	case errors.As(err, &failure):
		r := failedResponse(id, failure.Code, failure.Error())
		r.Generation, r.MayHaveRun = failure.Generation, failure.MayHaveRun
		if failure.RetryAfter > 0 {
			r.RetryAfter = failure.RetryAfter.String()
		}
		if failure.Generation > 0 {
			r.Replayed = &failure.Replayed
		}
		return r
	case err != nil:
		return failedResponse(id, messages.CodeInternal, err.Error())
	}
	r := &response{ID: id, OK: true}
	switch reply := reply.(type) {
	case messages.Result:
		receipt := reply.GetReceipt()
		r.Generation, r.Replayed, r.Result = receipt.Generation, &receipt.Replayed, commands.ContentOf(reply)
		r.Odd, r.Incomplete = receipt.Odd, receipt.Incomplete
	case *messages.Closed:
		r.Result = map[string]any{"sessions": reply.Sessions, "left": append([]messages.Left{}, reply.Left...)}
	case *messages.HandlesReleased:
		r.Result = map[string]any{"released": reply.Released, "left": append([]messages.Left{}, reply.Left...)}
	case *messages.HandleList:
		r.Result = map[string]any{"handles": append([]messages.HeldHandle{}, reply.Handles...)}
	case *messages.Snapshot:
		r.Result = reply
	default:
		r.Result = struct{}{}
	}
	return r
}
