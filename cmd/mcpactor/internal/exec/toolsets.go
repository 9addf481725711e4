package exec

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

const (
	// maxToolsets bounds the toolsets. Past that, the least recently used one is closed.
	maxToolsets = 256
	// minPrefix is the number of leading characters of a safe name that are never part of
	// a hash.
	minPrefix = 31
)

// toolsets has a toolset for each scope in use. Its methods may be called from any goroutine.
type toolsets struct {
	open func(toolset.Config) (*toolset.Toolset, error)

	mu      sync.Mutex
	servers []toolset.Filter
	scopes  map[string]*scopeToolset
	uses    uint64 // counts the calls of acquire
}

// scopeToolset is the toolset of a scope. It is closed when it has been dropped and nobody
// uses it. The mutex of toolsets guards its fields.
type scopeToolset struct {
	*toolset.Toolset
	users   int    // acquired and not released
	lastUse uint64 // the value of uses
	dropped bool
}

func newToolsets(open func(toolset.Config) (*toolset.Toolset, error), servers []toolset.Filter) *toolsets {
	return &toolsets{open: open, servers: servers, scopes: map[string]*scopeToolset{}}
}

// list lists the tools of a scope.
func (t *toolsets) list(ctx context.Context, scope string) (*toolset.Set, error) {
	st, err := t.acquire(ctx, scope)
	if err != nil {
		return nil, err
	}
	defer t.release(st)
	return st.Tools(ctx)
}

// call returns the command that calls the tool with a safe name. If the name is unknown, it lists
// the tools of the servers that the name fits.
func (t *toolsets) call(ctx context.Context, scope, name string, arguments json.RawMessage) (*messages.CallTool, error) {
	st, err := t.acquire(ctx, scope)
	if err != nil {
		return nil, err
	}
	defer t.release(st)
	call, err := st.Approve(ctx, name, arguments)
	if err == nil {
		call.Verbatim = true
	}
	return call, err
}

// acquire returns the toolset of a scope. The caller releases it. If ctx has ended, acquire
// fails, so that a cancelled request opens no session.
func (t *toolsets) acquire(ctx context.Context, scope string) (*scopeToolset, error) {
	if ctx.Err() != nil {
		code := messages.CodeCancelled
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			code = messages.CodeDeadline
		}
		return nil, &messages.Failure{Op: "tools/list", Code: code, Cause: context.Cause(ctx)}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	st := t.scopes[scope]
	if st == nil {
		opened, err := t.open(toolset.Config{Scope: scope, Servers: t.servers})
		if err != nil {
			return nil, &messages.Failure{Op: "tools/list", Code: messages.CodeInvalid, Detail: err.Error(), Cause: err}
		}
		st = &scopeToolset{Toolset: opened}
		t.makeRoom()
		t.scopes[scope] = st
	}
	t.uses++
	st.lastUse = t.uses
	st.users++
	return st, nil
}

func (t *toolsets) release(st *scopeToolset) {
	t.mu.Lock()
	defer t.mu.Unlock()
	st.users--
	st.closeIfUnused()
}

// makeRoom drops the least recently used toolset if there are maxToolsets.
func (t *toolsets) makeRoom() {
	if len(t.scopes) < maxToolsets {
		return
	}
	oldest, lastUse := "", t.uses+1
	for scope, st := range t.scopes {
		if st.lastUse < lastUse {
			oldest, lastUse = scope, st.lastUse
		}
	}
	t.drop(oldest)
}

// drop removes a toolset, and closes it when its last user has released it.
func (t *toolsets) drop(scope string) {
	if st := t.scopes[scope]; st != nil {
		delete(t.scopes, scope)
		st.dropped = true
		st.closeIfUnused()
	}
}

func (st *scopeToolset) closeIfUnused() {
	if st.dropped && st.users == 0 {
		st.Close()
	}
}

// close drops the toolset of a scope.
func (t *toolsets) close(scope string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(scope)
}

// closeAll drops all toolsets.
func (t *toolsets) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for scope := range t.scopes {
		t.drop(scope)
	}
}

// replace drops all toolsets. New ones use the given servers.
func (t *toolsets) replace(servers []toolset.Filter) {
	t.mu.Lock()
	t.servers = servers
	t.mu.Unlock()
	t.closeAll()
}

// owner returns the server to which the tool with a safe name belongs. It returns "" if
// the name fits the tools of several servers, or of none.
func (t *toolsets) owner(name string) (server string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, srv := range t.servers {
		prefix := strings.ReplaceAll(srv.Name, ".", "_") + "__" // a dot is the only unsafe character in the name of a server
		if !strings.HasPrefix(name, prefix[:min(len(prefix), minPrefix)]) {
			continue
		}
		if server != "" {
			return ""
		}
		server = srv.Name
	}
	return server
}
