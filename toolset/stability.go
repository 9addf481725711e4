package toolset

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcpactor/mcpactor/internal/repeats"
	"github.com/mcpactor/mcpactor/internal/schemas"
	"github.com/mcpactor/mcpactor/internal/shown"
	"github.com/mcpactor/mcpactor/messages"
)

// Stability says how the tools that a model is shown follow what servers have. The caches of model APIs need a list that begins with
// the one before, byte for byte: they charge a request anew from the first byte that differs.
type Stability string

const (
	// Append leaves tools where they are, and adds new ones at the end. Tools of a server that is away stay, and so do those that a
	// server has removed: a call of one fails, and says so. A definition that has changed takes the place of the old one.
	Append Stability = "append"
	// Freeze is [Append], but a definition that has changed is not shown: the old one stays, until [Toolset.NewConversation]. A call is
	// sent if its arguments fit the input schema that the server has now. Otherwise it fails, and the model gets that schema. A [Policy]
	// decides about the definition that the server has now.
	Freeze Stability = "freeze"
	// Follow lists the tools that servers have, by name. A tool that is added or removed changes the list in the middle.
	Follow Stability = "follow"
)

// Validate returns an error for a value that is none of these.
func (s Stability) Validate() error {
	if all := []Stability{Append, Freeze, Follow}; !slices.Contains(all, s) {
		return fmt.Errorf("stability: %q is none of %q", s, all)
	}
	return nil
}

// conversation is what a model was shown. The toolset's mutex guards it.
type conversation struct {
	all      shown.List[*Tool] // by [Toolset.Tools]
	of       *catalog          // that all follows
	reads    bool              // all has [ReadTool]
	ignores  bool              // an older definition that a server may have again, see confirmed
	selected shown.List[*Tool] // by [Toolset.Select], for the query
	query    string
}

func (c conversation) lists() []shown.List[*Tool] { return []shown.List[*Tool]{c.all, c.selected} }

func (c conversation) isEmpty() bool { return len(c.all.Tools())+len(c.selected.Tools()) == 0 }

// NewConversation forgets what the model was shown and told, and what it has found: the next list begins anew, with the tools that servers
// have then. Results that were cut can no longer be read. Call it if the toolset outlives a conversation. A toolset of a [Pool] is one of a scope, and so of one conversation.
func (t *Toolset) NewConversation() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conversation, t.found, t.rest, t.told, t.repeats = conversation{}, nil, rest{}, sessions{}, repeats.Row{}
}

// show makes a set one that the model is shown, as it is.
func (t *Toolset) show(set *Set) *Set {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, reads := &t.conversation, len(t.rest.texts) > 0
	if c.of != set.catalog || c.reads != reads { // or else it is the same as before
		c.all = t.next(c.all, t.rest.with(set.catalog.tools), nil)
		c.of, c.reads = set.catalog, reads
	}
	set.Tools = valuesOf(c.all)
	return set
}

// next returns what the model is shown after it was shown a list. The caller holds the mutex.
func (t *Toolset) next(was shown.List[*Tool], now []*Tool, adds func(*Tool) bool) shown.List[*Tool] {
	facts := shown.Now[*Tool]{
		Tools: shownOf(now),
		Keeps: func(tool shown.Tool[*Tool]) bool { return t.keeps(tool.Value) },
	}
	if adds != nil {
		facts.Adds = func(tool shown.Tool[*Tool]) bool { return adds(tool.Value) }
	}
	next := was.Next(shown.Mode(t.cfg.Stability), facts)
	t.conversation.ignores = was.Ignores(facts.Tools)
	for i, tool := range next.Tools() {
		if now := facts.Tools.Find(tool.ID); now != nil && now.Value.Stale != tool.Value.Stale {
			same := *tool.Value
			same.Stale = now.Value.Stale
			next.Tools()[i].Value = &same
		}
	}
	return next
}

// keeps reports whether a tool that is not offered now stays shown: unless the supervisor no longer knows the server, or the policy does not
// accept the definition that the tool has now. The caller holds the mutex.
func (t *Toolset) keeps(tool *Tool) bool {
	isOwn := tool.Server == ""
	return isOwn || slices.ContainsFunc(t.lists, func(l *list) bool { return l.key.Server == tool.Server && !l.unknown && !l.refuses(tool) })
}

func shownOf(tools []*Tool) shown.List[*Tool] {
	all := make([]shown.Tool[*Tool], len(tools))
	for i, tool := range tools {
		all[i] = shown.Tool[*Tool]{ID: tool.Name, Digest: tool.Digest, Value: tool, At: tool.listed}
	}
	return shown.Of(all)
}

func valuesOf(l shown.List[*Tool]) []*Tool {
	tools := make([]*Tool, len(l.Tools()))
	for i, tool := range l.Tools() {
		tools[i] = tool.Value
	}
	return tools
}

// wasShown returns the tool of a name that the model was shown, or nil.
func (t *Toolset) wasShown(name string) *Tool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, list := range t.conversation.lists() {
		if tool := list.Find(name); tool != nil {
			return tool.Value
		}
	}
	return nil
}

// wasRedefined reports whether the model was shown a definition of a tool that has to be compared with the one that the server has now.
func (t *Toolset) wasRedefined(tool *Tool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.conversation.lists(), func(list shown.List[*Tool]) bool {
		return list.Redefined(shown.Mode(t.cfg.Stability), shown.Tool[*Tool]{ID: tool.Name, Digest: tool.Digest, At: tool.listed})
	})
}

// redefined is why a call is not sent whose arguments fit only the definition that the model was shown.
type redefined struct {
	schema json.RawMessage // that the server has now
	cause  error
}

func (r *redefined) Error() string {
	return "the definition of the tool has changed: " + r.cause.Error()
}

func (r *redefined) Unwrap() error { return r.cause }

// misfit returns the failure of a call that a model has made by an old definition of the tool, if its arguments do not fit the one that
// the server has now.
func (t *Toolset) misfit(call *messages.CallTool, tool *Tool) error {
	if !t.wasRedefined(tool) {
		return nil
	}
	schema, err := json.Marshal(tool.InputSchema)
	if err != nil {
		return nil
	}
	arguments, _ := call.Params.Arguments.(json.RawMessage)
	if err = schemas.CheckArguments(schema, arguments); err == nil {
		return nil
	}
	f := messages.NewFailure(call, messages.CodeInvalid, "")
	f.Cause = &redefined{tool.parameters, err}
	f.Detail = f.Cause.Error()
	return f
}
