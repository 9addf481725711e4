package main

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

// request is one line of input.
type request struct {
	id      json.RawMessage  // as it was given: a string or a number
	timeout time.Duration    // 0 is the configured one
	cmd     messages.Command // nil for cancel, tools, and calls by safe name
	key     messages.Key     // of an operation
	target  string           // of a cancel: the id to cancel

	lists     bool            // the op tools
	name      string          // of a call by safe name: the name
	arguments json.RawMessage // of a call by safe name
	replay    messages.Replay // of a call by safe name
	progress  bool            // whether progress is to be told

	spans *pattern // what it is about, if that may be several keys; else nil
}

// parseRequest parses a line. The id is returned as far as it could be read,
// also with an error. Errors name the field.
func parseRequest(line []byte) (*request, error) {
	var (
		r                               request
		server, scope, tool, op, replay string
		id, target                      json.RawMessage
		given                           map[string]json.RawMessage
		about                           subject
	)
	if err := json.Unmarshal(line, &given); err != nil {
		return &r, plainer(line, err)
	}
	if err := validID(given["id"]); err != nil {
		return &r, named("id", err)
	}
	if err := wellformed.JSON(given["id"]); err != nil {
		return &r, named("id", err)
	}
	r.id = given["id"]
	if err := wellformed.JSON(line); err != nil {
		return &r, err // encoding/json would make one scope of several
	}
	err := decode(line, map[string]any{
		"id": &id, "server": &server, "scope": &scope, "tool": &tool, "name": &r.name, "arguments": &r.arguments,
		"op": &op, "timeout": &r.timeout, "replay": &replay, "progress": &r.progress, "target": &target, "roots": &about.roots,
		"uri": &about.uri, "prompt": &about.prompt, "level": &about.level, "ref": &about.ref, "argument": &about.argument,
	})
	if err != nil {
		return &r, err
	}
	how, known := map[string]messages.Replay{
		"": messages.ReplaySafe, "safe": messages.ReplaySafe, "never": messages.ReplayNever, "always": messages.ReplayAlways,
	}[replay]
	r.arguments = bytes.TrimSpace(r.arguments)
	switch {
	case !known:
		return &r, named("replay", fmt.Errorf("%q is none of never, safe and always", replay))
	case r.timeout < 0:
		return &r, named("timeout", errors.New("is negative"))
	case tool == "" && r.name == "" && op == "":
		return &r, named("tool", errors.New("is missing, and there is no op and no name"))
	case tool != "" && op != "":
		return &r, named("op", errors.New("is given, and so is tool: give one of them"))
	case r.name != "" && (tool != "" || op != ""):
		return &r, named("name", errors.New("is given, and so is tool or op: give one of them"))
	case (r.name != "" || op == "tools") && server != "":
		return &r, named("server", errors.New("is not for tools and calls by name: they are about all servers"))
	case op != "" && op != "get_prompt" && len(r.arguments) > 0:
		return &r, named("arguments", errors.New("are for tools and prompts only"))
	case len(r.arguments) > 0 && r.arguments[0] != '{':
		return &r, named("arguments", errors.New("want an object"))
	case op != "cancel" && len(target) > 0:
		return &r, named("target", errors.New("is for cancel only"))
	}
	for _, field := range slices.Sorted(maps.Keys(subjects)) {
		if given[field] != nil && !slices.Contains(subjects[field], op) {
			return &r, named(field, fmt.Errorf("is for %s only", strings.Join(subjects[field], ", ")))
		}
	}
	h := messages.To(server, scope)
	h.Replay = how
	r.key, r.replay = h.Key.Normal(), how
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
		r.lists, r.spans = true, &pattern{scope: r.key.Scope}
	case "inspect":
		r.cmd = &messages.Inspect{}
	case "cancel":
		if err := validID(target); err != nil {
			return &r, named("target", err)
		}
		r.target = string(target)
	case "close_scope":
		r.cmd = &messages.CloseScope{Scope: scope}
		r.spans = &pattern{scope: r.key.Scope}
	case "close_server":
		r.cmd = &messages.CloseServer{Server: server}
		r.spans = &pattern{server: server}
	case "close_all":
		r.cmd = &messages.CloseAll{}
		r.spans = &pattern{}
	default:
		operation, err := about.operation(h, op, r.arguments)
		if err != nil {
			return &r, err
		}
		r.cmd = operation
	}
	_, isOperation := r.cmd.(messages.Operation)
	switch {
	case (isOperation || op == "close_server") && server == "":
		return &r, named("server", errors.New("is missing"))
	case r.progress && !isOperation:
		return &r, named("progress", fmt.Errorf("is not for %s", op))
	}
	return &r, nil
}

// subjects are the fields that some operations have, with these.
var subjects = map[string][]string{
	"uri": {"read_resource", "subscribe", "unsubscribe"}, "prompt": {"get_prompt"}, "level": {"set_log_level"},
	"ref": {"complete"}, "argument": {"complete"}, "roots": {"set_roots"},
}

// subject is what an operation is about, beside a tool.
type subject struct {
	uri, prompt, level string
	ref                mcp.CompleteReference
	argument           struct{ Name, Value string }
	roots              []*mcp.Root
}

// operation returns the operation that op names.
func (s *subject) operation(h messages.Header, op string, arguments json.RawMessage) (messages.Operation, error) {
	missing := func(field, value string) error {
		if value == "" {
			return named(field, errors.New("is missing"))
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
		return &messages.ReadResource{Header: h, Params: &mcp.ReadResourceParams{URI: s.uri}}, missing("uri", s.uri)
	case "subscribe":
		return &messages.Subscribe{Header: h, URI: s.uri}, missing("uri", s.uri)
	case "unsubscribe":
		return &messages.Unsubscribe{Header: h, URI: s.uri}, missing("uri", s.uri)
	case "set_log_level":
		return &messages.SetLogLevel{Header: h, Level: s.level}, missing("level", s.level)
	case "set_roots":
		if s.roots == nil {
			return nil, named("roots", errors.New("are missing: give an empty list for none"))
		}
		return &messages.SetRoots{Header: h, Roots: s.roots}, nil
	case "get_prompt":
		params := &mcp.GetPromptParams{Name: s.prompt}
		if len(arguments) > 0 {
			if err := decodeMap(arguments, &params.Arguments); err != nil {
				return nil, named("arguments", err)
			}
		}
		return &messages.GetPrompt{Header: h, Params: params}, missing("prompt", s.prompt)
	case "complete":
		argument := mcp.CompleteParamsArgument{Name: s.argument.Name, Value: s.argument.Value}
		return &messages.Complete{Header: h, Params: &mcp.CompleteParams{Ref: &s.ref, Argument: argument}}, missing("ref", s.ref.Type)
	case "ping":
		return &messages.Ping{Header: h}, nil
	case "open":
		return &messages.Open{Header: h}, nil
	}
	return nil, named("op", fmt.Errorf("%q is none of %s", op, strings.Join(operations, ", ")))
}

// operations are the values of op.
var operations = []string{
	"list_tools", "list_resources", "list_resource_templates", "read_resource", "list_prompts", "get_prompt", "complete",
	"subscribe", "unsubscribe", "set_log_level", "set_roots", "ping", "open", "tools",
	"close_scope", "close_server", "close_all", "inspect", "cancel",
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
