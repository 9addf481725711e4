package bridge

import (
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolHints are the annotations of the tools that a session has listed.
type toolHints struct {
	mu      sync.Mutex
	safe    map[string]bool // by tool: whether it may run twice; nil: not listed yet
	changes int             // how often the server has said that the tools have changed
}

// of reports whether a tool may run twice. See [dial.Conn].
func (h *toolHints) of(tool string) (safe, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.safe[tool], h.safe != nil
}

// changed returns how often the tools have changed.
func (h *toolHints) changed() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changes
}

// set remembers which tools may run twice. changes is the result of changed before the first page of the list was
// requested. If the tools have changed since, parts of the list may be outdated, and it is not used.
func (h *toolHints) set(tools []*mcp.Tool, changes int) {
	all := make(map[string]bool, len(tools))
	for _, tool := range tools {
		a := tool.Annotations
		other, twice := all[tool.Name] // which of two tools with one name is called, only the server knows
		all[tool.Name] = a != nil && (a.ReadOnlyHint || a.IdempotentHint) && (other || !twice)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changes == changes {
		h.safe = all
	}
}

// clear forgets which tools may run twice: the tools have changed.
func (h *toolHints) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.safe = nil
	h.changes++
}
