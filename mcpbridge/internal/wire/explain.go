package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// Explain returns what an error of the SDK means for the operation and for its session, whose id may
// be empty. ctx is the caller's. [mcpbridge.Error.MayHaveRun] lists the ways in which a request
// ends, and what is known then. If the server has accepted an earlier request of the operation, the operation may
// have run, whatever became of the last request.
func (ex *Exchange) Explain(ctx context.Context, err error, sessionID string, secrets ...string) *mcpbridge.Error {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	e := *ex.ending(ctx, err, sessionID, secrets)
	if ex.earlier {
		e.Begun = true
		if e.Class == mcpbridge.Expired || e.Class == mcpbridge.NotSent {
			e.Class = mcpbridge.Lost
		}
	}
	return &e
}

// ending returns how the last request has ended. The case with the most certain evidence comes first.
func (ex *Exchange) ending(ctx context.Context, err error, sessionID string, secrets []string) *mcpbridge.Error {
	var already *mcpbridge.Error
	var response *jsonrpc.Error
	isResponse := errors.As(ex.failure, &response) || errors.As(err, &response)
	e := &mcpbridge.Error{Sent: ex.sent || ex.accepted, Detail: redact.Describe(err, secrets...), Err: err}
	switch {
	case errors.As(err, &already):
		return already
	case ex.refusal != nil:
		return ex.refusal
	case ex.answered && (isResponse || !undelivered(err)) || ex.accepted && (isResponse || undecodable(err)):
		// A response has arrived: this is certain, whatever the error of the SDK says.
		e.Class = mcpbridge.ServerError
		if !isResponse {
			e.Class, e.Detail = mcpbridge.Protocol, "the answer could not be decoded"
		} else {
			e.Detail = redact.Clean(response.Message, secrets...)
			e.Shared = fmt.Sprint("JSON-RPC error ", response.Code)
			e.Status, e.Code, e.Own, e.Doubt = http.StatusOK, response.Code, true, !saysAlive(response.Code)
			e.Err = &Evidence{Digest: DigestOfError(response.Code, response.Message, response.Data, sessionID), Err: response}
			if response.Code == rpc.CodeInvalidParams || response.Code == rpc.CodeMethodNotFound {
				e.Class = mcpbridge.Invalid
			}
		}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Class = mcpbridge.Deadline
	case ctx.Err() != nil:
		e.Class = mcpbridge.Cancelled
	case !ex.sent && unmarshalable(err):
		e.Class = mcpbridge.Invalid
	case ex.unprocessed && !ex.accepted && !ex.begun:
		e.Class = mcpbridge.NotSent
	case !ex.sent && !ex.accepted && !ex.begun:
		e.Class, e.Session = mcpbridge.NotSent, mcpbridge.Broken
	default:
		e.Class, e.Session = mcpbridge.Lost, mcpbridge.Broken
	}
	return e
}

// undelivered reports whether err is about the end of a connection or of a context. Then a response that has
// arrived at that moment may not have reached its caller.
func undelivered(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, mcp.ErrConnectionClosed)
}

// undecodable reports whether err is about a result of an unexpected type.
func undecodable(err error) bool {
	var kind *json.UnmarshalTypeError
	return errors.As(err, &kind)
}

// unmarshalable reports whether err is about parameters that cannot be encoded as JSON.
func unmarshalable(err error) bool {
	var kind *json.UnsupportedTypeError
	var value *json.UnsupportedValueError
	var marshaler *json.MarshalerError
	var depth *json.SyntaxError // since Go 1.27, for what is nested too deep
	return errors.As(err, &kind) || errors.As(err, &value) || errors.As(err, &marshaler) || errors.As(err, &depth)
}
