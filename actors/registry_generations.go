package actors

import (
	"container/list"

	"github.com/mcpactor/mcpactor/messages"
)

// generations remembers which generation the last session of each key without one had, so
// that it grows also from an evicted session to its successor. It remembers a
// bounded number of keys. One that it has forgotten goes on after the highest
// generation that was ever forgotten, which is higher than its own.
type generations struct {
	limit int
	floor uint64
	keys  map[messages.Key]*list.Element
	order list.List // of lastOf, the oldest first
}

type lastOf struct {
	key        messages.Key
	generation uint64
}

// of returns the last generation of a key.
func (g *generations) of(key messages.Key) uint64 {
	if e := g.keys[key]; e != nil {
		return e.Value.(*lastOf).generation
	}
	return g.floor
}

// set remembers the last generation of a key.
func (g *generations) set(key messages.Key, generation uint64) {
	if e := g.keys[key]; e != nil {
		e.Value.(*lastOf).generation = generation
		g.order.MoveToBack(e)
		return
	}
	if g.keys == nil {
		g.keys = map[messages.Key]*list.Element{}
	}
	g.keys[key] = g.order.PushBack(&lastOf{key, generation})
	if g.order.Len() > g.limit {
		old := g.order.Remove(g.order.Front()).(*lastOf)
		delete(g.keys, old.key)
		g.floor = max(g.floor, old.generation)
	}
}
