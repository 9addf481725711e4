package batch

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
		params                                  parameters
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
	err := decodeFields(line, map[string]any{
		"id": &id, "server": &server, "scope": &scope, "tool": &tool, "name": &r.name, "arguments": &r.arguments,
		"op": &op, "timeout": &r.timeout, "replay": &replay, "progress": &r.progress, "target": &target, "roots": &params.roots, "scopes": &scopes,
		"uri": &params.uri, "prompt": &params.prompt, "level": &params.level, "ref": &params.ref, "argument": &params.argument,
		"method": &params.method, "params": &params.params,
	})
	if err != nil {
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
	case tool == "" && r.name == "" && op == "":
		return &r, fieldErr("tool", errors.New("is missing: give tool, name or op"))
	case tool != "" && op != "":
		return &r, fieldErr("op", errors.New("conflicts with tool: give one of them"))
	case r.name != "" && (tool != "" || op != ""):
		return &r, fieldErr("name", errors.New("conflicts with tool and op: give one of them"))
	case (r.name != "" || op == "tools") && server != "":
		return &r, fieldErr("server", errors.New("is not allowed here: name and the op tools cover all servers"))
	case op != "" && op != "get_prompt" && len(r.arguments) > 0:
		return &r, fieldErr("arguments", errors.New("are only for tools and prompts"))
	case len(r.arguments) > 0 && r.arguments[0] != '{':
		return &r, fieldErr("arguments", errors.New("must be an object"))
	case op != "cancel" && len(target) > 0:
		return &r, fieldErr("target", errors.New("is only for cancel"))
	}
	for _, field := range slices.Sorted(maps.Keys(parameterOps)) {
		if given[field] != nil && !slices.Contains(parameterOps[field], op) {
			return &r, fieldErr(field, fmt.Errorf("is only for %s", strings.Join(parameterOps[field], ", ")))
		}
	}
	h := messages.To(server, scope)
	h.Replay = replayMode
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
		operation, err := params.operation(h, op, r.arguments)
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

// parameterOps has the fields that only some operations take, with these operations.
var parameterOps = map[string][]string{
	"uri": {"read_resource", "subscribe", "unsubscribe"}, "prompt": {"get_prompt"}, "level": {"set_log_level"},
	"ref": {"complete"}, "argument": {"complete"}, "roots": {"set_roots"}, "method": {"custom"}, "params": {"custom"},
	"scopes": {"close_matching"},
}

// parameters are the fields that only some operations take.
type parameters struct {
	uri, prompt, level string
	method             string          // of custom
	params             json.RawMessage // of custom, or nil
	ref                mcp.CompleteReference
	argument           struct{ Name, Value string }
	roots              []*mcp.Root
}

// operation returns the operation with the name op.
func (p *parameters) operation(h messages.Header, op string, arguments json.RawMessage) (messages.Operation, error) {
	missing := func(field, value string) error {
		if value == "" {
			return fieldErr(field, errors.New("is missing"))
		}
		return nil
	}
	switch op {
	case "list_tools":
		return &messages.ListTools{Header: h}, nil
	case "list_resources":
		return &messages.ListResources{Header: h}, nil
	case "list_resource_templates":
		return &messages.ListResourceTemplates{Header: h}, nil
	case "list_prompts":
		return &messages.ListPrompts{Header: h}, nil
	case "read_resource":
		return &messages.ReadResource{Header: h, Params: &mcp.ReadResourceParams{URI: p.uri}}, missing("uri", p.uri)
	case "subscribe":
		return &messages.Subscribe{Header: h, URI: p.uri}, missing("uri", p.uri)
	case "unsubscribe":
		return &messages.Unsubscribe{Header: h, URI: p.uri}, missing("uri", p.uri)
	case "set_log_level":
		return &messages.SetLogLevel{Header: h, Level: p.level}, missing("level", p.level)
	case "set_roots":
		if p.roots == nil {
			return nil, fieldErr("roots", errors.New("are missing: give an empty list to set none"))
		}
		return &messages.SetRoots{Header: h, Roots: p.roots}, nil
	case "get_prompt":
		params := &mcp.GetPromptParams{Name: p.prompt}
		if len(arguments) > 0 {
			if err := decodeStrings(arguments, &params.Arguments); err != nil {
				return nil, fieldErr("arguments", err)
			}
		}
		return &messages.GetPrompt{Header: h, Params: params}, missing("prompt", p.prompt)
	case "complete":
		argument := mcp.CompleteParamsArgument{Name: p.argument.Name, Value: p.argument.Value}
		return &messages.Complete{Header: h, Params: &mcp.CompleteParams{Ref: &p.ref, Argument: argument}}, missing("ref", p.ref.Type)
	case "ping":
		return &messages.Ping{Header: h}, nil
	case "open":
		return &messages.Open{Header: h}, nil
	case "custom":
		op := &messages.Custom{Header: h, Name: p.method}
		if len(p.params) > 0 {
			op.Params = p.params
		}
		return op, missing("method", p.method)
	}
	return nil, fieldErr("op", fmt.Errorf("%q is unknown; the operations are %s", op, strings.Join(operations, ", ")))
}

// operations are the values of op.
var operations = []string{
	"list_tools", "list_resources", "list_resource_templates", "read_resource", "list_prompts", "get_prompt", "complete",
	"subscribe", "unsubscribe", "set_log_level", "set_roots", "ping", "open", "custom", "tools",
	"close_session", "close_scope", "close_server", "close_matching", "close_all", "restart", "forget", "inspect", "cancel",
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
