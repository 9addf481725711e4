package toolset

import "github.com/mcpactor/mcpactor/messages"

// OnChange has changed called whenever [Toolset.Tools] may return other tools than before, until cancel is called or the toolset is
// closed. It is called in the goroutines that handle events and fetch lists, several at once, and must not block.
func (t *Toolset) OnChange(changed func()) (cancel func()) {
	cancel = t.feed.watch(t, changed)
	if t.ctx.Err() != nil { // or else Close ends it
		cancel()
	}
	return cancel
}

// Scope returns the scope of the toolset, see [Config.Scope].
func (t *Toolset) Scope() string { return messages.Key{Scope: t.cfg.Scope}.Normal().Scope }

// Filters returns the filters of the servers that are wanted now, in the order of the configuration: each has the name of one server,
// and the scope whose sessions are used.
func (t *Toolset) Filters() (all []Filter) {
	for _, l := range t.current() {
		all = append(all, l.filter)
	}
	return all
}
