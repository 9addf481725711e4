package redact

import (
	"slices"
	"strings"
	"sync"
)

// Recent is a bounded set of secrets that were sent recently. The zero value is empty.
type Recent struct {
	mu     sync.Mutex
	values []string // the newest one last
}

// Add adds a value. It replaces the oldest value if there are most of them. It reports whether the value is new. It keeps
// only as much of a value as is read of a text.
func (r *Recent) Add(value string, most int) bool {
	if len(value) > maxText {
		value = strings.Clone(value[:maxText])
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.values, value) {
		return false
	}
	r.values = append(r.values[max(0, len(r.values)-most+1):], value)
	return true
}

// AppendTo appends the values to a list of secrets.
func (r *Recent) AppendTo(all []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, value := range r.values {
		all = Append(all, value)
	}
	return all
}
