package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// request is one line of input.
type request struct {
	id      json.RawMessage // as it was given: a string or a number
	timeout time.Duration   // 0 is the configured one
	cmd     messages.Command
	key     messages.Key // of an operation
	target  string       // of a cancel: the id to cancel

	closes *pattern // what a close command is about; nil for all others
}

// parseRequest parses a line. The id is returned as far as it could be read,
// also with an error. Errors name the field.
func parseRequest(line []byte) (*request, error) {
	var (
		r                                       request
		server, scope, tool, op, replay, target string
		id, arguments, rawTarget                json.RawMessage
		given                                   map[string]json.RawMessage
	)
	if err := json.Unmarshal(line, &given); err != nil {
		return &r, plainer(line, err)
	}
	if err := validID(given["id"]); err != nil {
		return &r, named("id", err)
	}
	r.id = given["id"]
	err := decode(line, true, map[string]any{
		"id": &id, "server": &server, "scope": &scope, "tool": &tool, "arguments": &arguments,
		"op": &op, "timeout": &r.timeout, "replay": &replay, "target": &rawTarget,
	})
	if err != nil {
		return &r, err
	}
	target = string(rawTarget)
	how, known := map[string]messages.Replay{
		"": messages.ReplaySafe, "safe": messages.ReplaySafe, "never": messages.ReplayNever, "always": messages.ReplayAlways,
	}[replay]
	arguments = bytes.TrimSpace(arguments)
	switch {
	case !known:
		return &r, named("replay", fmt.Errorf("%q is none of never, safe and always", replay))
	case r.timeout < 0:
		return &r, named("timeout", errors.New("is negative"))
	case tool == "" && op == "":
		return &r, named("tool", errors.New("is missing, and there is no op"))
	case tool != "" && op != "":
		return &r, named("op", errors.New("is given, and so is tool: give one of them"))
	case tool == "" && len(arguments) > 0:
		return &r, named("arguments", errors.New("are for tools only"))
	case len(arguments) > 0 && arguments[0] != '{':
		return &r, named("arguments", errors.New("want an object"))
	case op != "cancel" && target != "":
		return &r, named("target", errors.New("is for cancel only"))
	}
	h := messages.To(server, scope)
	h.Replay = how
	r.key = h.Key.Normal()
	switch op {
	case "":
		params := &mcp.CallToolParams{Name: tool}
		if len(arguments) > 0 {
			params.Arguments = json.RawMessage(arguments)
		}
		r.cmd = &messages.CallTool{Header: h, Params: params}
	case "list_tools":
		r.cmd = &messages.ListTools{Header: h}
	case "ping":
		r.cmd = &messages.Ping{Header: h}
	case "open":
		r.cmd = &messages.Open{Header: h}
	case "inspect":
		r.cmd = &messages.Inspect{}
	case "cancel":
		if err := validID(rawTarget); err != nil {
			return &r, named("target", err)
		}
		r.target = target
	case "close_scope":
		r.cmd = &messages.CloseScope{Scope: scope}
		r.closes = &pattern{scope: r.key.Scope}
	case "close_server":
		r.cmd = &messages.CloseServer{Server: server}
		r.closes = &pattern{server: server}
	case "close_all":
		r.cmd = &messages.CloseAll{}
		r.closes = &pattern{}
	default:
		return &r, named("op", fmt.Errorf("%q is none of list_tools, ping, open, close_scope, close_server, close_all, inspect and cancel", op))
	}
	if _, ok := r.cmd.(messages.Operation); (ok || op == "close_server") && server == "" {
		return &r, named("server", errors.New("is missing"))
	}
	return &r, nil
}

// validID accepts strings that are not empty, and numbers.
func validID(id json.RawMessage) error {
	var number json.Number
	var text string
	switch {
	case len(id) == 0 || string(id) == "null":
		return errors.New("is missing")
	case id[0] == '"' && json.Unmarshal(id, &text) == nil && text != "":
		return nil
	case id[0] != '"' && json.Unmarshal(id, &number) == nil:
		return nil
	}
	return errors.New("want a string or a number")
}
