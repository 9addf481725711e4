package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

const (
	// maxToolsets bounds the scopes whose lists of tools are kept. Past that, those of
	// the one that was not used for longest are listed again when they are needed.
	maxToolsets = 256
	// leastPrefix is how much of a safe name is never part of a hash.
	leastPrefix = 31
)

// toolsets are the toolsets of the scopes in use. Its methods may be called from
// any goroutine.
type toolsets struct {
	open func(toolset.Config) (*toolset.Toolset, error)

	mu      sync.Mutex
	servers []toolset.Server
	scopes  map[string]*kept
	clock   uint64 // counts uses
}

// kept is the toolset of a scope. It is closed when it is gone and nobody uses it.
type kept struct {
	*toolset.Toolset
	set   *toolset.Set // the last, or nil
	users int
	used  uint64
	gone  bool
}

func newToolsets(open func(toolset.Config) (*toolset.Toolset, error), servers []toolset.Server) *toolsets {
	return &toolsets{open: open, servers: servers, scopes: map[string]*kept{}}
}

// list lists the tools of a scope.
func (t *toolsets) list(ctx context.Context, scope string) (*toolset.Set, error) {
	k, err := t.take(ctx, scope)
	if err != nil {
		return nil, err
	}
	defer t.give(k)
	return t.listed(ctx, k)
}

// call returns the message that calls the tool of a safe name. It lists the tools
// when it does not know the name.
func (t *toolsets) call(ctx context.Context, scope, name string, arguments json.RawMessage) (*messages.CallTool, error) {
	k, err := t.take(ctx, scope)
	if err != nil {
		return nil, err
	}
	defer t.give(k)
	t.mu.Lock()
	set := k.set
	t.mu.Unlock()
	if set == nil || set.Tool(name) == nil {
		if set, err = t.listed(ctx, k); err != nil {
			return nil, err
		}
	}
	return set.Call(name, arguments)
}

func (t *toolsets) listed(ctx context.Context, k *kept) (*toolset.Set, error) {
	set, err := k.Tools(ctx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k.set = set
	return set, nil
}

// take returns the toolset of a scope, to be given back. It fails when ctx has
// ended: no session is opened then.
func (t *toolsets) take(ctx context.Context, scope string) (*kept, error) {
	if ctx.Err() != nil {
		code := messages.CodeCancelled
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			code = messages.CodeDeadline
		}
		return nil, &messages.Failure{Op: "tools/list", Code: code, Cause: context.Cause(ctx)}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.scopes[scope]
	if k == nil {
		opened, err := t.open(toolset.Config{Scope: scope, Servers: t.servers})
		if err != nil {
			return nil, &messages.Failure{Op: "tools/list", Code: messages.CodeInvalid, Detail: err.Error(), Cause: err}
		}
		k = &kept{Toolset: opened}
		t.makeRoom()
		t.scopes[scope] = k
	}
	t.clock++
	k.used = t.clock
	k.users++
	return k, nil
}

func (t *toolsets) give(k *kept) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k.users--
	k.closeIfUnused()
}

// makeRoom lets the least recently used toolset go if there are too many.
func (t *toolsets) makeRoom() {
	if len(t.scopes) < maxToolsets {
		return
	}
	oldest, used := "", t.clock+1
	for scope, k := range t.scopes {
		if k.used < used {
			oldest, used = scope, k.used
		}
	}
	t.drop(oldest)
}

func (t *toolsets) drop(scope string) {
	if k := t.scopes[scope]; k != nil {
		delete(t.scopes, scope)
		k.gone = true
		k.closeIfUnused()
	}
}

func (k *kept) closeIfUnused() {
	if k.gone && k.users == 0 {
		k.Close()
	}
}

// forget lets the toolset of a scope go.
func (t *toolsets) forget(scope string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(scope)
}

// forgetAll lets all toolsets go.
func (t *toolsets) forgetAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for scope := range t.scopes {
		t.drop(scope)
	}
}

// replace makes all toolsets anew, with other servers, when they are used next.
func (t *toolsets) replace(servers []toolset.Server) {
	t.mu.Lock()
	t.servers = servers
	t.mu.Unlock()
	t.forgetAll()
}

// owner returns the server whose tools have safe names such as this one. It is empty
// when that is not sure: when those of several servers begin so, or of none.
func (t *toolsets) owner(name string) (server string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, srv := range t.servers {
		prefix := strings.ReplaceAll(srv.Name, ".", "_") + "__" // all else in a server's name is safe
		if !strings.HasPrefix(name, prefix[:min(len(prefix), leastPrefix)]) {
			continue
		}
		if server != "" {
			return ""
		}
		server = srv.Name
	}
	return server
}

// toolList is the result of the op tools.
type toolList struct {
	Tools   []toolEntry    `json:"tools"`
	Missing []missingEntry `json:"missing"`
}

type toolEntry struct {
	Name         string               `json:"name"`
	Server       string               `json:"server"`
	Tool         string               `json:"tool"`
	Title        string               `json:"title,omitempty"`
	Description  string               `json:"description"`
	InputSchema  any                  `json:"inputSchema"`
	OutputSchema any                  `json:"outputSchema,omitempty"`
	Annotations  *mcp.ToolAnnotations `json:"annotations,omitempty"`
	Metadata     map[string]any       `json:"metadata"`
}

type missingEntry struct {
	Server string `json:"server"`
	Error  string `json:"error"`
}

// newToolList makes the result of a set. A title that is the tool's name is left out.
func newToolList(set *toolset.Set) *toolList {
	list := &toolList{Tools: []toolEntry{}, Missing: []missingEntry{}}
	for _, tool := range set.Tools {
		e := toolEntry{
			Name: tool.Name, Server: tool.Server, Tool: tool.Original, Title: tool.Title, Description: tool.Description,
			InputSchema: tool.InputSchema, OutputSchema: tool.OutputSchema, Annotations: tool.Annotations, Metadata: tool.Metadata,
		}
		if e.Title == e.Tool {
			e.Title = ""
		}
		list.Tools = append(list.Tools, e)
	}
	for _, missing := range set.Missing {
		list.Missing = append(list.Missing, missingEntry{missing.Server, missing.Err.Error()})
	}
	return list
}
