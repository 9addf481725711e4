// Package view has the list of tools that one client of the gateway is shown. It stays the same in front, see package shown, and has a
// part of the tools if the client finds the others.
package view

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/schemas"
	"github.com/mcpactor/mcpactor/internal/shown"
)

// Client is what a view needs of its client. Only Changed and Keep may call the view: the others are called while its mutex is held.
type Client struct {
	// Tools returns the tools of all servers, as far as they are known.
	Tools func() []Tool
	// Keeps reports whether a tool that its server does not have now stays shown: the user has not removed it.
	Keeps func(Tool) bool
	// Used returns when clients have last used tools of a server, by name.
	Used func(server string) map[string]time.Time
	// Changed tells the client that it would be shown another list.
	Changed func()
	// Keep keeps the list that the client is shown from now on.
	Keep func([]Tool)
}

// View is what one client was shown. Its methods may be called from any goroutine.
type View struct {
	cfg Config
	of  Client

	mu   sync.Mutex // held while the client's tools are read: a list that comes later is compared with what was shown
	list shown.List[Tool]
	told shown.List[Tool] // the list that the client was shown, or told of
	has  bool             // the client has asked
	// added has the IDs of the tools that a client which finds tools is shown: those that clients have used last, once they are recalled, and
	// those that it has found or called itself.
	added    map[string]bool
	recalled bool
}

// New returns the view of a client that was shown nothing.
func New(cfg Config, of Client) *View { return &View{cfg: cfg, of: of, added: map[string]bool{}} }

// Restore makes the view one of a client that was shown tools before.
func (v *View) Restore(tools []Tool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.list, v.has, v.recalled = listOf(tools), true, true
	v.told = v.list
	for _, tool := range tools {
		v.added[tool.ID] = true
	}
}

// Forget makes the view one of a client that was shown nothing.
func (v *View) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.list, v.told, v.has, v.added, v.recalled = shown.List[Tool]{}, shown.List[Tool]{}, false, map[string]bool{}, false
}

// Has reports whether the client was shown a list.
func (v *View) Has() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.has
}

// Show returns the list that the client is shown now, as JSON.
func (v *View) Show() []json.RawMessage {
	v.mu.Lock()
	next := v.next()
	isNew := !v.has || !next.Equal(v.list)
	v.list, v.told, v.has = next, next, true
	v.mu.Unlock()
	tools := toolsOf(next)
	if isNew {
		v.of.Keep(tools)
	}
	all := make([]json.RawMessage, len(tools))
	for i, tool := range tools {
		all[i] = tool.Raw
	}
	return all
}

// IsShown reports whether a list is the one that the client was shown last.
func (v *View) IsShown(tools []Tool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return listOf(tools).Equal(v.list)
}

// News reports whether the client is to be told of a change: it would be shown another list than it was shown or told of. Of a client that was
// shown none, it reports false.
func (v *View) News() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.news()
}

// news is News for a caller that holds the mutex.
func (v *View) news() bool {
	if !v.has {
		return false
	}
	next := v.next()
	isNew := !next.Equal(v.told)
	v.told = next
	return isNew
}

// Note notes that the client uses a tool, or has found some. If it finds tools, it is shown them from now on, and told so.
func (v *View) Note(ids ...string) {
	if v.cfg.Find == 0 {
		return
	}
	v.mu.Lock()
	before := len(v.added)
	for _, id := range ids {
		v.added[id] = true
	}
	tells := len(v.added) > before && v.news()
	v.mu.Unlock()
	if tells {
		v.of.Changed()
	}
}

// next returns what the client is shown now. The caller holds the mutex.
func (v *View) next() shown.List[Tool] {
	now := shown.Now[Tool]{Keeps: func(tool shown.Tool[Tool]) bool {
		if tool.Value.isOwn() {
			return v.cfg.Find > 0 && slices.ContainsFunc(v.cfg.own(), func(own Tool) bool { return own.ID == tool.ID })
		}
		return v.of.Keeps(tool.Value)
	}}
	tools := v.of.Tools()
	if v.finds(tools) {
		if !v.recalled {
			v.recalled = true
			for _, id := range lastUsed(tools, v.of.Used, v.cfg.Find) {
				v.added[id] = true
			}
		}
		tools = slices.Concat(v.cfg.own(), tools)
		now.Adds = func(tool shown.Tool[Tool]) bool { return tool.Value.isOwn() || v.added[tool.ID] }
	}
	now.Tools = listOf(tools)
	return v.list.Next(v.cfg.Mode, now)
}

// finds reports whether the client finds tools: there are more than it is shown at once, and no server has a tool with the name of one of the
// gateway.
func (v *View) finds(tools []Tool) bool {
	return v.cfg.Find > 0 && len(tools) > v.cfg.Find && !slices.ContainsFunc(tools, func(tool Tool) bool {
		return slices.ContainsFunc(v.cfg.own(), func(own Tool) bool { return own.ID == tool.ID })
	})
}

// Misfit returns why a call does not fit a tool that a server has now, and the input schema of that, if the client was shown an old definition.
// Otherwise the error is nil.
func (v *View) Misfit(now Tool, arguments json.RawMessage) (schema json.RawMessage, err error) {
	v.mu.Lock()
	isOld := v.list.Redefined(v.cfg.Mode, shownOf(now))
	v.mu.Unlock()
	if !isOld {
		return nil, nil
	}
	schema = mcpserver.ObjectOf(now.Raw)["inputSchema"]
	return schema, schemas.CheckArguments(schema, arguments)
}

// Shown returns the tool with an ID that the client was shown, or nil.
func (v *View) Shown(id string) *Tool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if tool := v.list.Find(id); tool != nil {
		return &tool.Value
	}
	return nil
}

func shownOf(tool Tool) shown.Tool[Tool] {
	return shown.Tool[Tool]{ID: tool.ID, Digest: tool.Digest, At: tool.At, Value: tool}
}

func listOf(tools []Tool) shown.List[Tool] {
	all := make([]shown.Tool[Tool], len(tools))
	for i, tool := range tools {
		all[i] = shownOf(tool)
	}
	return shown.Of(all)
}

func toolsOf(list shown.List[Tool]) []Tool {
	tools := make([]Tool, len(list.Tools()))
	for i, tool := range list.Tools() {
		tools[i] = tool.Value
		tools[i].At = tool.At
	}
	return tools
}
