package table

import (
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpactor/mcpactor/messages"
)

// Generations remembers the generation of the last MCP session of keys without a session,
// so that the next generation is higher. It remembers a bounded number of keys. The next
// generation of a key that it has forgotten is higher than all that it has forgotten, unless the
// store has a record of the key.
type Generations struct {
	last  *simplelru.LRU[messages.Key, uint64]
	Floor uint64 // the highest generation that was forgotten
}

// newGenerations returns Generations that remember the given number of keys.
func newGenerations(keys int) *Generations {
	g := &Generations{}
	g.last, _ = simplelru.NewLRU(keys, func(_ messages.Key, generation uint64) { g.Floor = max(g.Floor, generation) })
	return g
}

// Of returns the last generation of a key, or 0 if there is none or it was forgotten.
func (g *Generations) Of(key messages.Key) uint64 {
	generation, _ := g.last.Peek(key)
	return generation
}

// set remembers the last generation of a key.
func (g *Generations) set(key messages.Key, generation uint64) { g.last.Add(key, generation) }
