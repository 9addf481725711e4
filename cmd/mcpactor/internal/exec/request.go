package exec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/wellformed"
	"github.com/mcpactor/mcpactor/messages"
)

// request is a parsed line of input.
type request struct {
	id       json.RawMessage  // a string or a number, as the line has it
	timeout  time.Duration    // 0 stands for the configured timeout
	quiet    time.Duration    // 0 stands for timeout
	cmd      messages.Command // nil for cancel, tools, and calls by safe name
	key      messages.Key     // its server is empty for tools and calls by safe name
	progress bool             // print progress

	listsTools bool   // the op tools
	target     string // the id to cancel, of the op cancel

	name      string          // the safe name; empty unless this is a call by safe name
	arguments json.RawMessage // of a call by safe name
	replay    messages.Replay // of a call by safe name

	spans *keySet // the keys, if there may be several; else nil
}

// parseRequest parses a line. Even with an error it returns a request, which has the id if
// the line has a valid one. Errors name the field.
func parseRequest(line []byte) (*request, error) {
	var (
		r                                       request
		server, scope, tool, op, replay, scopes string
		id, target                              json.RawMessage
		given                                   map[string]json.RawMessage
	)
	if err := json.Unmarshal(line, &given); err != nil {
		return &r, readable(line, err)
	}
	if err := validID(given["id"]); err != nil {
		return &r, fieldErr("id", err)
	}
	if err := wellformed.JSON(given["id"]); err != nil {
		return &r, fieldErr("id", err)
	}
	r.id = given["id"]
	if err := wellformed.JSON(line); err != nil {
		return &r, err // encoding/json replaces invalid text, so that several scopes would become one
	}
	fields := map[string]any{}
	for name := range parameterOps {
		fields[name] = new(json.RawMessage) // newOperation decodes it
	}
	maps.Copy(fields, map[string]any{
		"id": &id, "server": &server, "scope": &scope, "tool": &tool, "name": &r.name, "arguments": &r.arguments,
		"op": &op, "timeout": &r.timeout, "quiet": &r.quiet, "replay": &replay, "progress": &r.progress, "target": &target, "scopes": &scopes,
	})
	if err := decodeFields(line, fields); err != nil {
		return &r, err
	}
	replayMode, known := map[string]messages.Replay{
		"": messages.ReplaySafe, "safe": messages.ReplaySafe, "never": messages.ReplayNever, "always": messages.ReplayAlways,
	}[replay]
	r.arguments = bytes.TrimSpace(r.arguments)
	switch {
	case !known:
		return &r, fieldErr("replay", fmt.Errorf("%q is not never, safe or always", replay))
	case r.timeout < 0:
		return &r, fieldErr("timeout", errors.New("is negative"))
	case r.quiet < 0:
		return &r, fieldErr("quiet", errors.New("is negative"))
	case tool == "" && r.name == "" && op == "":
		return &r, fieldErr("tool", errors.New("is missing: give tool, name or op"))
	case tool != "" && op != "":
		return &r, fieldErr("op", errors.New("conflicts with tool: give one of them"))
	case r.name != "" && (tool != "" || op != ""):
		return &r, fieldErr("name", errors.New("conflicts with tool and op: give one of them"))
	case (r.name != "" || op == "tools") && server != "":
		return &r, fieldErr("server", errors.New("is not allowed here: name and the op tools cover all servers"))
	case op != "" && !slices.Contains(parameterOps["arguments"], op) && len(r.arguments) > 0:
		return &r, fieldErr("arguments", errors.New("are only for tools and prompts"))
	case len(r.arguments) > 0 && r.arguments[0] != '{':
		return &r, fieldErr("arguments", errors.New("must be an object"))
	case op != "cancel" && len(target) > 0:
		return &r, fieldErr("target", errors.New("is only for cancel"))
	}
	for _, field := range slices.Sorted(maps.Keys(parameterOps)) {
		if field != "arguments" && given[field] != nil && !slices.Contains(parameterOps[field], op) {
			return &r, fieldErr(field, fmt.Errorf("is only for %s", strings.Join(parameterOps[field], ", ")))
		}
	}
	h := messages.To(server, scope)
	h.Replay, h.Quiet, h.Verbatim = replayMode, r.quiet, true
	r.key, r.replay = h.Key.Normal(), replayMode
	switch op {
	case "":
		if r.name != "" {
			return &r, nil
		}
		params := &mcp.CallToolParams{Name: tool}
		if len(r.arguments) > 0 {
			params.Arguments = r.arguments
		}
		r.cmd = &messages.CallTool{Header: h, Params: params}
	case "tools":
		r.listsTools, r.spans = true, &keySet{scope: r.key.Scope}
	case "inspect":
		r.cmd = &messages.Inspect{}
	case "cancel":
		if err := validID(target); err != nil {
			return &r, fieldErr("target", err)
		}
		r.target = string(target)
	case "close_scope":
		r.cmd = &messages.CloseScope{Scope: scope}
		r.spans = &keySet{scope: r.key.Scope}
	case "release_handles":
		r.cmd, r.spans = &messages.ReleaseHandles{Scope: scope}, &keySet{scope: r.key.Scope}
	case "list_handles":
		r.cmd, r.spans = &messages.ListHandles{Scope: scope}, &keySet{scope: r.key.Scope}
	case "close_server":
		r.cmd = &messages.CloseServer{Server: server}
		r.spans = &keySet{server: server}
	case "close_all":
		r.cmd = &messages.CloseAll{}
		r.spans = &keySet{}
	case "close_session":
		r.cmd = &messages.CloseSession{Key: r.key}
	case "close_matching":
		cmd := &messages.CloseMatching{Server: server, Scopes: scopes}
		if err := cmd.Validate(); err != nil {
			return &r, err
		}
		r.cmd, r.spans = cmd, &keySet{server: server}
	case "restart":
		r.cmd = &messages.Restart{Key: r.key}
	case "forget":
		r.cmd = &messages.Forget{Server: server}
		r.key = messages.Key{} // it waits for no other request: they may wait for the server
	default:
		operation, err := newOperation(h, op, given)
		if err != nil {
			return &r, err
		}
		r.cmd = operation
	}
	_, isOperation := r.cmd.(messages.Operation)
	switch {
	case (isOperation || slices.Contains([]string{"close_server", "close_session", "restart", "forget"}, op)) && server == "":
		return &r, fieldErr("server", errors.New(missingServer(tool)))
	case r.progress && !isOperation:
		return &r, fieldErr("progress", fmt.Errorf("is not allowed for %s", op))
	}
	return &r, nil
}

// missingServer says that a request names no server.
func missingServer(tool string) string {
	if tool == "" {
		return "is missing"
	}
	return "is missing: give it, or put a name that tools prints into name"
}

// validID returns an error unless id is a number or a string that is not empty.
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
	return errors.New("must be a string or a number")
}
