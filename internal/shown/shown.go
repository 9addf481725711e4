// Package shown decides what becomes of tools that somebody was shown. The beginning of a request must not change, or the cache of
// a model's API is of no use. It decides and does nothing: it knows no server and no client.
package shown

import (
	"slices"
	"time"
)

// Mode says how a list follows what servers have.
type Mode string

const (
	// Append leaves what was shown in its place, and appends what is new. A definition that has changed takes the place of the old one.
	Append Mode = "append"
	// Freeze is Append, but an old definition stays.
	Freeze Mode = "freeze"
	// Follow takes the tools as servers have them.
	Follow Mode = "follow"
)

// Tool is a tool in a list.
type Tool[V any] struct {
	ID     string    // no other tool of the list has it
	Digest string    // equal definitions have equal digests
	At     time.Time // when its server has listed it, or zero if that is not known
	Value  V
}

// redefines reports whether the tool has another definition than the one that was shown, and not an older one. After a restart, and after the
// end of its session, a scope gets the list that all share, which may be older than the one that it had.
func (t Tool[V]) redefines(was Tool[V]) bool {
	return t.Digest != was.Digest && (t.At.IsZero() || !t.At.Before(was.At))
}

// List is the tools that somebody was shown, in their order. The zero value is a list of nothing. It does not change.
type List[V any] struct {
	tools []Tool[V]
	at    map[string]int // by ID
}

// Of returns a list of tools. Of those with the same ID it has the first.
func Of[V any](tools []Tool[V]) List[V] {
	l := List[V]{at: make(map[string]int, len(tools))}
	for _, tool := range tools {
		l.add(tool)
	}
	return l
}

func (l *List[V]) add(tool Tool[V]) {
	if _, has := l.at[tool.ID]; !has {
		l.at[tool.ID] = len(l.tools)
		l.tools = append(l.tools, tool)
	}
}

// Tools returns the tools. They are read-only.
func (l List[V]) Tools() []Tool[V] { return l.tools }

// Find returns the tool with an ID, or nil.
func (l List[V]) Find(id string) *Tool[V] {
	if i, has := l.at[id]; has {
		return &l.tools[i]
	}
	return nil
}

// Equal reports whether two lists have the same tools, in whatever order: nobody is told of another order.
func (l List[V]) Equal(other List[V]) bool {
	return len(l.tools) == len(other.tools) && !slices.ContainsFunc(l.tools, func(tool Tool[V]) bool {
		same := other.Find(tool.ID)
		return same == nil || same.Digest != tool.Digest
	})
}

// Now is what there is now.
type Now[V any] struct {
	// Tools are the tools of all servers, in their order.
	Tools List[V]
	// Adds reports whether a tool is to be shown that was not shown. With nil, all are.
	Adds func(Tool[V]) bool
	// Keeps reports whether a tool that was shown, and that no server has now, is still to be shown: its server is away, or has removed
	// it. It is not if the user has removed it. With nil, none is.
	Keeps func(Tool[V]) bool
}

// maxGone bounds the tools that stay although no server has them now. Beyond it, those go that were shown first: a server that names its tools
// anew all the time would fill the context.
const maxGone = 256

// Next returns the list that follows one.
func (l List[V]) Next(mode Mode, now Now[V]) List[V] {
	next := List[V]{at: make(map[string]int, len(now.Tools.tools))}
	gone := 0
	for _, was := range l.tools {
		if now.Tools.Find(was.ID) == nil {
			gone++
		}
	}
	for _, was := range l.tools {
		is := now.Tools.Find(was.ID)
		if is == nil {
			gone--
		}
		switch {
		case mode == Follow:
		case is != nil && is.Digest == was.Digest:
			if is.At.After(was.At) { // it was confirmed since
				was.At = is.At
			}
			next.add(was)
		case is != nil && (mode == Freeze || !is.redefines(was)):
			next.add(was)
		case is != nil:
			next.add(*is)
		case gone < maxGone && now.Keeps != nil && now.Keeps(was):
			next.add(was)
		}
	}
	for _, is := range now.Tools.tools {
		if now.Adds == nil || now.Adds(is) {
			next.add(is)
		}
	}
	return next
}

// Redefined reports whether a call by somebody who was shown this list must be compared with a tool, which is what the server has now: an old
// definition was shown. Such a call is sent only if its arguments fit the tool.
func (l List[V]) Redefined(mode Mode, is Tool[V]) bool {
	was := l.Find(is.ID)
	return mode == Freeze && was != nil && is.redefines(*was)
}

// Ignores reports whether an older definition of a tool is among others, which does not take the place of the newer one that was shown.
func (l List[V]) Ignores(now List[V]) bool {
	return slices.ContainsFunc(now.tools, func(is Tool[V]) bool {
		was := l.Find(is.ID)
		return was != nil && is.Digest != was.Digest && !is.redefines(*was)
	})
}
